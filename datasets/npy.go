package datasets

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pkg/errors"
)

// npyArray is an array as written by numpy.save.
type npyArray struct {
	shape []int
	bytes []byte   // the values, if they are unsigned bytes, or booleans as 0 and 255
	wide  []int64  // the values of other types, or the numbers of names
	names []string // the values of an array of text, each once; nil for numbers
}

// Limits of .npy files.
const (
	npyMaxHeader = 1 << 16
	npyMaxRank   = 4
	npyMaxText   = 1 << 12 // characters of a label
	npyMaxSize   = 1 << 35 // bytes
)

// The header is a Python dictionary, which NumPy writes with repr. Keys can be in any order
// (numpy.lib.format).
var (
	npyDescr   = regexp.MustCompile(`['"]descr['"]\s*:\s*['"]([<>|=]?)([a-zA-Z]\d*)[^'"]*['"]`)
	npyFortran = regexp.MustCompile(`['"]fortran_order['"]\s*:\s*(True|False)`)
	npyShape   = regexp.MustCompile(`['"]shape['"]\s*:\s*\(([\d,\sL]*)\)`)
)

// readNPY reads an array in NumPy's format, versions 1 to 3, in C order, up to the end of r. limit
// is the maximum number of bytes of values. Memory grows with the bytes that arrive. name is for
// errors.
func readNPY(name string, r io.Reader, limit int64, use npyUse) (npyArray, error) {
	header, offset, err := readNPYHeader(r)
	if err != nil {
		return npyArray{}, errors.Wrapf(err, "datasets: %s", name)
	}
	array, kind, err := parseNPYHeader(header, limit, use)
	if err != nil {
		return npyArray{}, errors.WithMessagef(err, "datasets: %s: header %q", name, strings.TrimSpace(header))
	}
	count, size := 1, kind.size
	for _, n := range array.shape {
		count *= n
	}
	values, err := readGrowing(r, count*size)
	if err != nil {
		return npyArray{}, errors.Wrapf(err, "datasets: %s: offset %d: got %d of %d bytes of values of %v",
			name, offset+len(values), len(values), count*size, array.shape)
	}
	var more [1]byte
	if n, err := io.ReadFull(r, more[:]); n > 0 || err != io.EOF {
		if n > 0 {
			err = errors.New("more data")
		}
		return npyArray{}, errors.Wrapf(err, "datasets: %s: offset %d: must end after the values of %v",
			name, offset+len(values), array.shape)
	}
	if array.bytes != nil {
		array.bytes = values
		if kind.boolean {
			widen(values)
		}
		return array, nil
	}
	if kind.pixelMax > 0 {
		if array.bytes, err = kind.pixels(values, array.shape); err != nil {
			return npyArray{}, errors.WithMessagef(err, "datasets: %s", name)
		}
		return array, nil
	}
	array.wide = make([]int64, count)
	if kind.text != 0 {
		if array.names, err = kind.number(values, array.wide); err != nil {
			return npyArray{}, errors.WithMessagef(err, "datasets: %s", name)
		}
		return array, nil
	}
	for i := range array.wide {
		value, err := kind.value(values[i*size : (i+1)*size])
		if err != nil {
			return npyArray{}, errors.WithMessagef(err, "datasets: %s: value %d", name, i)
		}
		array.wide[i] = value
	}
	return array, nil
}

// readNPYHeader returns the header's text and the offset of the values.
func readNPYHeader(r io.Reader) (string, int, error) {
	start := make([]byte, 10)
	if n, err := io.ReadFull(r, start); err == io.EOF {
		return "", 0, errors.New("must be a NumPy array (.npy), got an empty file")
	} else if err != nil {
		return "", 0, errors.Wrapf(noEOF(err), "offset %d: the start of a .npy file", n)
	}
	if string(start[:6]) != "\x93NUMPY" || start[6] < 1 || start[6] > 3 {
		return "", 0, errors.Errorf(`offset 0: must begin with 93 "NUMPY" and a version of 1 to 3, got % x`, start[:8])
	}
	length, offset := int64(binary.LittleEndian.Uint16(start[8:])), 10
	if start[6] > 1 {
		var rest [2]byte
		if _, err := io.ReadFull(r, rest[:]); err != nil {
			return "", 0, errors.Wrap(noEOF(err), "offset 10: length of the header")
		}
		length |= int64(binary.LittleEndian.Uint16(rest[:])) << 16
		offset += 2
	}
	if length > npyMaxHeader {
		return "", 0, errors.Errorf("offset 8: header must have at most %[2]d bytes, got %[1]d", length, npyMaxHeader)
	}
	text := make([]byte, length)
	if n, err := io.ReadFull(r, text); err != nil {
		return "", 0, errors.Wrapf(noEOF(err), "offset %d: got %d of %d bytes of the header", offset+n, n, length)
	}
	return string(text), offset + int(length), nil
}

// npyType is the encoding of a number in a file.
type npyType struct {
	size     int // bytes
	signed   bool
	boolean  bool
	float    bool
	pixelMax float64 // the value of pixels that becomes 255; 0 for bytes and labels
	text     byte    // 'U' for UTF-32, 'S' for bytes, 0 for numbers
	order    binary.ByteOrder
}

// parseNPYHeader returns the array without its values, and their type. bytes is not nil if the
// values are bytes.
func parseNPYHeader(header string, limit int64, use npyUse) (npyArray, npyType, error) {
	var array npyArray
	descr, fortran, shape := npyDescr.FindStringSubmatch(header), npyFortran.FindStringSubmatch(header), npyShape.FindStringSubmatch(header)
	if descr == nil || fortran == nil || shape == nil {
		return array, npyType{}, errors.New("must have 'descr' of numbers, 'fortran_order' and 'shape'")
	}
	kind := npyType{size: npyTypes[descr[2]], signed: descr[2][0] == 'i', order: binary.LittleEndian}
	if err := use.check(descr[2]); err != nil {
		return array, kind, err
	}
	switch {
	case use.labels:
	case npyFloats[descr[2]] > 0:
		kind.size, kind.float, kind.pixelMax = npyFloats[descr[2]], true, use.floatMax
	case descr[2] == "u2":
		kind.pixelMax = float64(int(1)<<use.bits - 1)
	}
	if isText(descr[2]) {
		length, err := strconv.Atoi(descr[2][1:])
		if err != nil || length < 1 || length > npyMaxText {
			return array, kind, errors.Errorf("text must have 1 to %d characters, got %s", npyMaxText, descr[2])
		}
		kind.text, kind.size = descr[2][0], length
		if kind.text == 'U' {
			kind.size = 4 * length
		}
	}
	if descr[1] == ">" {
		kind.order = binary.BigEndian
	}
	total := int64(kind.size)
	for field := range strings.SplitSeq(shape[1], ",") {
		field = strings.TrimSuffix(strings.TrimSpace(field), "L") // Python 2 wrote 3L
		if field == "" {
			continue
		}
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil || n < 1 {
			return array, kind, errors.Errorf("dimension must be positive, got %q", field)
		}
		if n > limit/total {
			return array, kind, errors.Errorf("values must have at most %d bytes", limit)
		}
		total *= n
		array.shape = append(array.shape, int(n))
	}
	if len(array.shape) < 1 || len(array.shape) > npyMaxRank {
		return array, kind, errors.Errorf("must have 1 to %[2]d dimensions, got %[1]d", len(array.shape), npyMaxRank)
	}
	if fortran[1] == "True" && len(array.shape) > 1 {
		return array, kind, errors.New("values must be in C order, got Fortran order: save numpy.ascontiguousarray(x)")
	}
	kind.boolean = descr[2] == "b1" && !use.labels
	if descr[2] == "u1" || kind.boolean {
		array.bytes = []byte{}
	}
	return array, kind, nil
}

// number writes the number of each text into numbers, and returns the texts that these are numbers
// of, in the order of their first use. Texts that are not valid Unicode, and more different ones
// than a data set can have classes, are errors.
func (t npyType) number(values []byte, numbers []int64) (names []string, err error) {
	known := map[string]int64{}
	for i := range numbers {
		raw := values[i*t.size:][:t.size]
		at, found := known[string(raw)]
		if !found {
			if len(names) == maxClasses {
				return nil, errors.Errorf("must have at most %d classes, got more in values 0 to %d", maxClasses, i)
			}
			name, err := t.textValue(raw)
			if err != nil {
				return nil, errors.WithMessagef(err, "value %d", i)
			}
			at = int64(len(names))
			known[string(raw)] = at
			names = append(names, name)
		}
		numbers[i] = at
	}
	return names, nil
}

// textValue returns the text that the bytes represent, without the zeros that NumPy pads it with.
func (t npyType) textValue(raw []byte) (string, error) {
	if t.text == 'S' {
		raw = bytes.TrimRight(raw, "\x00")
		if !utf8.Valid(raw) {
			return "", errors.Errorf("text must be UTF-8, got %q: save numpy.char.decode(labels, 'latin-1'), or with another encoding", raw)
		}
		return string(raw), nil
	}
	var text []byte
	for ; len(raw) > 0; raw = raw[4:] {
		code := t.order.Uint32(raw)
		if code > unicode.MaxRune || !utf8.ValidRune(rune(code)) {
			return "", errors.Errorf("text must be valid Unicode, got the character %#x after %q: "+
				"decode the labels with their encoding, and save labels.astype(str)", code, text)
		}
		text = utf8.AppendRune(text, rune(code))
	}
	return strings.TrimRight(string(text), "\x00"), nil
}

// pixels returns the bytes for pixels that are floats, or integers of 16 bits.
func (t npyType) pixels(values []byte, shape []int) ([]byte, error) {
	pixels := make([]byte, len(values)/t.size)
	for i := range pixels {
		raw, value := values[i*t.size:(i+1)*t.size], 0.0
		if t.float {
			value = t.floatValue(raw)
		} else {
			value = float64(t.order.Uint16(raw))
		}
		if value-value != 0 {
			return nil, t.notFinite(values, shape, i)
		}
		var err error
		if pixels[i], err = pixelByte(value, t.pixelMax); err != nil {
			return nil, errors.WithMessagef(err, "value %v", placeOf(i, shape))
		}
	}
	return pixels, nil
}

// notFinite returns an error that counts the images with values that are NaN or infinite, of which
// the first has the given index.
func (t npyType) notFinite(values []byte, shape []int, first int) error {
	size, images := t.size, 0
	for _, n := range shape[1:] {
		size *= n
	}
	for image := range slices.Chunk(values, size) {
		for raw := range slices.Chunk(image, t.size) {
			if v := t.floatValue(raw); v-v != 0 {
				images++
				break
			}
		}
	}
	return errors.Errorf("value %v: must be from 0 to %g, got %v; NaN or infinite values are in %d of %d images: "+
		"save images[ok] and labels[ok] with ok = numpy.isfinite(images).reshape(len(images), -1).all(1), or numpy.nan_to_num(images)",
		placeOf(first, shape), t.pixelMax, t.floatValue(values[first*t.size:][:t.size]), images, shape[0])
}

// placeOf returns the indices of a value of an array.
func placeOf(value int, shape []int) []int {
	place := make([]int, len(shape))
	for i := len(shape) - 1; i >= 0; i-- {
		place[i] = value % shape[i]
		value /= shape[i]
	}
	return place
}

// floatValue returns the float that the bytes represent.
func (t npyType) floatValue(bytes []byte) float64 {
	switch t.size {
	case 2:
		return halfValue(t.order.Uint16(bytes))
	case 4:
		return float64(math.Float32frombits(t.order.Uint32(bytes)))
	}
	return math.Float64frombits(t.order.Uint64(bytes))
}

// halfValue returns the value of a float16: a sign, 5 bits of exponent and 10 of fraction.
func halfValue(bits uint16) float64 {
	exponent, fraction := int(bits>>10&31), float64(bits&1023)
	value := 0.0
	switch exponent {
	case 0:
		value = math.Ldexp(fraction, -24)
	case 31:
		value = math.Inf(1)
		if fraction != 0 {
			value = math.NaN()
		}
	default:
		value = math.Ldexp(1024+fraction, exponent-25)
	}
	if bits>>15 == 1 {
		value = -value
	}
	return value
}

// value returns the integer that the bytes represent.
func (t npyType) value(bytes []byte) (int64, error) {
	var bits uint64
	switch t.size {
	case 1:
		bits = uint64(bytes[0])
	case 2:
		bits = uint64(t.order.Uint16(bytes))
	case 4:
		bits = uint64(t.order.Uint32(bytes))
	default:
		bits = t.order.Uint64(bytes)
	}
	if t.signed {
		shift := 64 - 8*t.size
		return int64(bits<<shift) >> shift, nil
	}
	if bits > math.MaxInt64 {
		return 0, errors.Errorf("must fit int64, got %d", bits)
	}
	return int64(bits), nil
}
