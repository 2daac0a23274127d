package datasets

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/pkg/errors"
)

// The values of a pickle are nil, bool, int64, float64, string, and these.
type (
	pickleDict  map[string]any
	pickleList  struct{ items []any } // a pointer, since items are appended after it is referenced
	pickleTuple []any
	pickleName  string // module.name of a callable
	pickleMark  struct{}
	// pickleArray is a NumPy array of unsigned bytes.
	pickleArray struct {
		shape  []int
		values string
	}
	pickleType struct{} // NumPy's dtype of unsigned bytes
)

// unpickle reads a Python pickle with the instructions that CIFAR's files use (protocol 2; see
// Python's module pickletools). It calls and imports nothing: a NumPy array of bytes is recognised
// by the names of the functions that would construct it, and other names are errors. Memory is a
// small multiple of the content's size.
func unpickle(content []byte) (any, error) {
	p := &unpickler{content: content, memo: map[uint32]any{}}
	for {
		at := p.at
		value, done, err := p.step()
		if err != nil {
			return nil, errors.WithMessagef(err, "offset %d: pickle", at)
		}
		if done {
			return value, nil
		}
	}
}

type unpickler struct {
	content []byte
	at      int
	stack   []any
	memo    map[uint32]any
}

func (p *unpickler) push(value any) { p.stack = append(p.stack, value) }

func (p *unpickler) pop() (any, error) {
	if len(p.stack) == 0 {
		return nil, errors.New("pops a value from an empty stack")
	}
	value := p.stack[len(p.stack)-1]
	p.stack = p.stack[:len(p.stack)-1]
	if value == (any)(pickleMark{}) {
		return nil, errors.New("pops a mark as a value")
	}
	return value, nil
}

// popN pops the last n values.
func (p *unpickler) popN(n int) ([]any, error) {
	values := make([]any, n)
	for i := n - 1; i >= 0; i-- {
		var err error
		if values[i], err = p.pop(); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// popMark pops the values down to the last mark, and the mark.
func (p *unpickler) popMark() ([]any, error) {
	for i := len(p.stack) - 1; i >= 0; i-- {
		if _, is := p.stack[i].(pickleMark); is {
			values := append([]any(nil), p.stack[i+1:]...)
			p.stack = p.stack[:i]
			return values, nil
		}
	}
	return nil, errors.New("must have a mark on the stack")
}

// take returns the next n bytes.
func (p *unpickler) take(n uint64) ([]byte, error) {
	if n > uint64(len(p.content)-p.at) {
		return nil, errors.Errorf("must have %d more bytes, got %d", n, len(p.content)-p.at)
	}
	taken := p.content[p.at : p.at+int(n)]
	p.at += int(n)
	return taken, nil
}

// number reads a little-endian number of 1, 2 or 4 bytes.
func (p *unpickler) number(size uint64) (uint32, error) {
	taken, err := p.take(size)
	if err != nil {
		return 0, err
	}
	var word [4]byte
	copy(word[:], taken)
	return binary.LittleEndian.Uint32(word[:]), nil
}

// line reads the bytes up to the next line break.
func (p *unpickler) line() (string, error) {
	n := bytes.IndexByte(p.content[p.at:], '\n')
	if n < 0 {
		return "", errors.New("unterminated line")
	}
	taken, err := p.take(uint64(n + 1))
	return string(taken[:max(len(taken)-1, 0)]), err
}

// numberSizes maps an instruction to the size of the number that follows it, in bytes.
var numberSizes = map[byte]uint64{
	'K': 1, 'M': 2, 'J': 4, // integers
	'U': 1, 'T': 4, 'X': 4, 'C': 1, 'B': 4, // lengths of strings
	'q': 1, 'r': 4, 'h': 1, 'j': 4, // memo indices
	0x80: 1, 0x8a: 1, // the protocol; the length of a long number
}

// step carries out one instruction.
func (p *unpickler) step() (result any, done bool, err error) {
	taken, err := p.take(1)
	if err != nil {
		return nil, false, err
	}
	code := taken[0]
	var n uint32
	if size := numberSizes[code]; size > 0 {
		if n, err = p.number(size); err != nil {
			return nil, false, err
		}
	}
	switch code {
	case 0x80:
		if n > 3 {
			err = errors.Errorf("protocol must be at most 3, got %d", n)
		}
	case '.':
		result, err = p.pop()
		return result, true, err
	case 'N':
		p.push(nil)
	case 0x88, 0x89:
		p.push(code == 0x88)
	case 'K', 'M':
		p.push(int64(n))
	case 'J':
		p.push(int64(int32(n)))
	case 'G':
		if taken, err = p.take(8); err == nil {
			p.push(math.Float64frombits(binary.BigEndian.Uint64(taken)))
		}
	case 'I', 'L':
		err = p.decimal()
	case 0x8a:
		err = p.long(n)
	case 'U', 'T', 'X', 'C', 'B':
		if taken, err = p.take(uint64(n)); err == nil {
			p.push(string(taken))
		}
	case 'q', 'r':
		if len(p.stack) == 0 {
			return nil, false, errors.New("memoizes a value of an empty stack")
		}
		p.memo[n] = p.stack[len(p.stack)-1]
	case 'h', 'j':
		value, known := p.memo[n]
		if !known {
			return nil, false, errors.Errorf("memo has no value %d", n)
		}
		p.push(value)
	case '(':
		p.push(pickleMark{})
	case '}':
		p.push(pickleDict{})
	case ']':
		p.push(&pickleList{})
	case ')':
		p.push(pickleTuple(nil))
	case 't', 0x85, 0x86, 0x87:
		err = p.tuple(code)
	case 'a', 'e', 's', 'u':
		err = p.extend(code)
	case 'c':
		err = p.global()
	case 'R':
		err = p.reduce()
	case 'b':
		err = p.build()
	default:
		err = errors.Errorf("instruction must be one of those of CIFAR's files, got %q", code)
	}
	return nil, false, err
}

// decimal reads a number written in digits.
func (p *unpickler) decimal() error {
	text, err := p.line()
	if err != nil {
		return err
	}
	if len(text) > 0 && text[len(text)-1] == 'L' {
		text = text[:len(text)-1]
	}
	value, err := strconv.ParseInt(text, 10, 64)
	p.push(value)
	return errors.Wrap(err, "number")
}

// long reads a little-endian number of n bytes.
func (p *unpickler) long(n uint32) error {
	taken, err := p.take(uint64(n))
	if err != nil {
		return err
	}
	if n > 8 {
		return errors.Errorf("number must have at most 8 bytes, got %d", n)
	}
	value := int64(0)
	for i, b := range taken {
		value |= int64(b) << (8 * i)
	}
	if n > 0 {
		shift := 64 - 8*n
		value = value << shift >> shift
	}
	p.push(value)
	return nil
}

func (p *unpickler) tuple(code byte) error {
	if code == 't' {
		items, err := p.popMark()
		p.push(pickleTuple(items))
		return err
	}
	items, err := p.popN(int(code-0x85) + 1)
	p.push(pickleTuple(items))
	return err
}

// extend adds to the list or dictionary on the stack: one item (a, s) or all down to the mark (e,
// u).
func (p *unpickler) extend(code byte) error {
	var items []any
	var err error
	switch code {
	case 'e', 'u':
		items, err = p.popMark()
	case 'a':
		items, err = p.popN(1)
	case 's':
		items, err = p.popN(2)
	}
	if err != nil {
		return err
	}
	if len(p.stack) == 0 {
		return errors.New("adds to a list on an empty stack")
	}
	below := p.stack[len(p.stack)-1]
	if list, ok := below.(*pickleList); ok && (code == 'a' || code == 'e') {
		list.items = append(list.items, items...)
		return nil
	}
	dict, ok := below.(pickleDict)
	if !ok || code == 'a' || code == 'e' || len(items)%2 != 0 {
		return errors.Errorf("adds %d items to a %T", len(items), below)
	}
	for i := 0; i < len(items); i += 2 {
		key, ok := items[i].(string)
		if !ok {
			return errors.Errorf("keys must be strings, got %T", items[i])
		}
		dict[key] = items[i+1]
	}
	return nil
}

// pickleNames are the accepted names of callables. None of them is called.
var pickleNames = map[string]bool{
	"numpy.core.multiarray._reconstruct": true, "numpy._core.multiarray._reconstruct": true,
	"numpy.ndarray": true, "numpy.dtype": true,
}

// global pushes a callable by name. Only NumPy's constructors of arrays are allowed: a pickle may
// name any function of Python, and unpickling would call it.
func (p *unpickler) global() error {
	module, err := p.line()
	if err != nil {
		return err
	}
	name, err := p.line()
	if err != nil {
		return err
	}
	if !pickleNames[module+"."+name] {
		return errors.Errorf("callables must be those of NumPy arrays, got %q", module+"."+name)
	}
	p.push(pickleName(module + "." + name))
	return nil
}

// reduce pushes the array or dtype that a call would construct.
func (p *unpickler) reduce() error {
	value, err := p.pop()
	if err != nil {
		return err
	}
	arguments, ok := value.(pickleTuple)
	if value, err = p.pop(); err != nil {
		return err
	}
	name, isName := value.(pickleName)
	switch {
	case !ok || !isName:
		return errors.Errorf("must call a name, got %T", value)
	case name == "numpy.dtype":
		if len(arguments) < 1 || arguments[0] != any("u1") && arguments[0] != any("uint8") {
			return errors.New("array must be of unsigned bytes (u1)")
		}
		p.push(pickleType{})
	case name != "numpy.ndarray":
		p.push(&pickleArray{})
	default:
		return errors.Errorf("calls %s", name)
	}
	return nil
}

// build sets the state of the array on the stack: version, shape, dtype, Fortran order, values.
func (p *unpickler) build() error {
	value, err := p.pop()
	if err != nil {
		return err
	}
	if len(p.stack) == 0 {
		return errors.New("sets the state of an empty stack")
	}
	array, ok := p.stack[len(p.stack)-1].(*pickleArray)
	if !ok {
		if _, ok = p.stack[len(p.stack)-1].(pickleType); !ok {
			return errors.Errorf("must set the state of an array, got %T", p.stack[len(p.stack)-1])
		}
		return nil // the dtype's alignment
	}
	state, ok := value.(pickleTuple)
	if !ok || len(state) != 5 {
		return errors.New("state of an array must be a tuple of 5")
	}
	shape, isShape := state[1].(pickleTuple)
	_, isBytes := state[2].(pickleType)
	values, isString := state[4].(string)
	if !isShape || !isBytes || state[3] != any(false) || !isString {
		return errors.New("array must be of unsigned bytes in C order")
	}
	size := int64(1)
	array.shape, array.values = nil, values
	for _, dimension := range shape {
		n, ok := dimension.(int64)
		if !ok || n < 1 || n > int64(len(values))/size {
			return errors.Errorf("dimension must fit an array of %[2]d bytes, got %[1]T", dimension, len(values))
		}
		size *= n
		array.shape = append(array.shape, int(n))
	}
	if size != int64(len(values)) {
		return errors.Errorf("dimensions %v do not fit %d bytes", array.shape, len(values))
	}
	return nil
}
