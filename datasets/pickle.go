package datasets

import (
	"bytes"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/pkg/errors"
)

// The values of a pickle are nil, bool, int64, string, and these.
type (
	pickleDict  map[string]any
	pickleList  struct{ items []any } // appended to after others refer to it
	pickleTuple []any
	pickleName  string // module.name of what would be called
	pickleMark  struct{}
	// A pickleArray is a numpy array of unsigned bytes.
	pickleArray struct {
		shape  []int
		values string
	}
	pickleType struct{} // numpy's type of unsigned bytes
)

// unpickle reads what Python's pickle wrote, with the instructions that the files of CIFAR need
// (protocol 2; module pickletools of Python describes them). Nothing is called or imported: a numpy
// array of bytes is recognised by the names of the functions that would make it, and other names
// are errors. Memory is a small multiple of the content's size.
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
		return nil, errors.New("takes a value where there is none")
	}
	value := p.stack[len(p.stack)-1]
	p.stack = p.stack[:len(p.stack)-1]
	if value == (any)(pickleMark{}) {
		return nil, errors.New("takes a mark for a value")
	}
	return value, nil
}

// popN takes the last n values.
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

// popMark takes the values down to the last mark, and the mark.
func (p *unpickler) popMark() ([]any, error) {
	for i := len(p.stack) - 1; i >= 0; i-- {
		if _, is := p.stack[i].(pickleMark); is {
			values := append([]any(nil), p.stack[i+1:]...)
			p.stack = p.stack[:i]
			return values, nil
		}
	}
	return nil, errors.New("no mark, want one")
}

// take returns the next n bytes.
func (p *unpickler) take(n uint64) ([]byte, error) {
	if n > uint64(len(p.content)-p.at) {
		return nil, errors.Errorf("%d bytes wanted, %d there", n, len(p.content)-p.at)
	}
	taken := p.content[p.at : p.at+int(n)]
	p.at += int(n)
	return taken, nil
}

// number takes a little-endian number of 1, 2 or 4 bytes.
func (p *unpickler) number(size uint64) (uint32, error) {
	taken, err := p.take(size)
	if err != nil {
		return 0, err
	}
	var word [4]byte
	copy(word[:], taken)
	return binary.LittleEndian.Uint32(word[:]), nil
}

// line takes the bytes up to the next line break.
func (p *unpickler) line() (string, error) {
	n := bytes.IndexByte(p.content[p.at:], '\n')
	if n < 0 {
		return "", errors.New("a line without an end")
	}
	taken, err := p.take(uint64(n + 1))
	return string(taken[:max(len(taken)-1, 0)]), err
}

// numberSizes are the bytes of the number that follows an instruction.
var numberSizes = map[byte]uint64{
	'K': 1, 'M': 2, 'J': 4, // whole numbers
	'U': 1, 'T': 4, 'X': 4, 'C': 1, 'B': 4, // lengths of strings
	'q': 1, 'r': 4, 'h': 1, 'j': 4, // places in the memo
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
			err = errors.Errorf("protocol %d, want at most 3", n)
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
			return nil, false, errors.New("keeps a value where there is none")
		}
		p.memo[n] = p.stack[len(p.stack)-1]
	case 'h', 'j':
		value, known := p.memo[n]
		if !known {
			return nil, false, errors.Errorf("value %d, which was not kept", n)
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
		err = errors.Errorf("instruction %q, which is not one of those that CIFAR's files have", code)
	}
	return nil, false, err
}

// decimal takes a number written in digits.
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

// long takes a number of n bytes, least significant first.
func (p *unpickler) long(n uint32) error {
	taken, err := p.take(uint64(n))
	if err != nil {
		return err
	}
	if n > 8 {
		return errors.Errorf("a number of %d bytes, want at most 8", n)
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

// extend adds to the list or the dictionary below: one item (a, s) or all
// down to the mark (e, u).
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
		return errors.New("adds to a list where there is none")
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
			return errors.Errorf("a %T as a key, want a string", items[i])
		}
		dict[key] = items[i+1]
	}
	return nil
}

// pickleNames are the names that may occur; none of them is called.
var pickleNames = map[string]bool{
	"numpy.core.multiarray._reconstruct": true, "numpy._core.multiarray._reconstruct": true,
	"numpy.ndarray": true, "numpy.dtype": true,
}

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
		return errors.Errorf("%q, want arrays of numpy's and nothing else: it would have to be called", module+"."+name)
	}
	p.push(pickleName(module + "." + name))
	return nil
}

// reduce makes the array or the type that a call would make.
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
		return errors.Errorf("calls a %T, want a name", value)
	case name == "numpy.dtype":
		if len(arguments) < 1 || arguments[0] != any("u1") && arguments[0] != any("uint8") {
			return errors.New("an array of another type, want unsigned bytes (u1)")
		}
		p.push(pickleType{})
	case name != "numpy.ndarray":
		p.push(&pickleArray{})
	default:
		return errors.Errorf("calls %s", name)
	}
	return nil
}

// build gives the array below its state: version, shape, type, whether it is
// in Fortran's order, values.
func (p *unpickler) build() error {
	value, err := p.pop()
	if err != nil {
		return err
	}
	if len(p.stack) == 0 {
		return errors.New("gives a state to nothing")
	}
	array, ok := p.stack[len(p.stack)-1].(*pickleArray)
	if !ok {
		if _, ok = p.stack[len(p.stack)-1].(pickleType); !ok {
			return errors.Errorf("gives a state to a %T, want an array", p.stack[len(p.stack)-1])
		}
		return nil // the type's alignment
	}
	state, ok := value.(pickleTuple)
	if !ok || len(state) != 5 {
		return errors.New("a state of an array that is not a tuple of 5")
	}
	shape, isShape := state[1].(pickleTuple)
	_, isBytes := state[2].(pickleType)
	values, isString := state[4].(string)
	if !isShape || !isBytes || state[3] != any(false) || !isString {
		return errors.New("a state of an array that is not one of unsigned bytes in C's order")
	}
	size := int64(1)
	array.shape, array.values = nil, values
	for _, dimension := range shape {
		n, ok := dimension.(int64)
		if !ok || n < 1 || n > int64(len(values))/size {
			return errors.Errorf("a dimension (%T) that does not fit an array of %d bytes", dimension, len(values))
		}
		size *= n
		array.shape = append(array.shape, int(n))
	}
	if size != int64(len(values)) {
		return errors.Errorf("dimensions %v for %d bytes", array.shape, len(values))
	}
	return nil
}
