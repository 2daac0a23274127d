package onnx

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/pkg/errors"
)

// storedTensor is a constant of a model. Its values stay in the bytes of the file until they are
// needed.
type storedTensor struct {
	Name  string
	Type  ElementType
	Shape []int

	// One of these has the values: raw is little-endian, integers also hold the bits of 16-bit
	// floats.
	raw      []byte
	floats   []float64
	integers []int64
	external *location
}

// location is a part of another file.
type location struct {
	location       string
	offset, length int64 // a length of -1 extends to the end of the file
}

func readTensor(message []byte) (*storedTensor, error) {
	t := &storedTensor{}
	var dims []int64
	elsewhere := false
	entries := map[string]string{}
	err := fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			dims, err = f.integers(dims)
		case 2:
			t.Type = ElementType(f.value)
		case 3:
			err = errors.New("tensors in segments are not supported")
		case 4:
			t.floats, err = f.floats(t.floats)
		case 5, 7, 11:
			t.integers, err = f.integers(t.integers)
		case 8:
			t.Name = string(f.bytes)
		case 9:
			t.raw = f.bytes
		case 10:
			t.floats, err = f.doubles(t.floats)
		case 13:
			var key, value string
			if key, value, err = pair(f.bytes); err == nil {
				entries[key] = value
			}
		case 14:
			elsewhere = f.value == 1
		}
		return err
	})
	if err != nil {
		return nil, errors.WithMessagef(err, "tensor %s", t.Name)
	}
	for _, d := range dims {
		t.Shape = append(t.Shape, int(d))
	}
	if elsewhere {
		if t.external, err = readLocation(entries); err != nil {
			return nil, errors.WithMessagef(err, "tensor %s", t.Name)
		}
		return t, nil
	}
	return t, errors.WithMessagef(t.check(), "tensor %s", t.Name)
}

func readLocation(entries map[string]string) (*location, error) {
	l := &location{location: entries["location"], length: -1}
	if l.location == "" {
		return nil, errors.New("external data must name its file")
	}
	for key, to := range map[string]*int64{"offset": &l.offset, "length": &l.length} {
		text, ok := entries[key]
		if !ok {
			continue
		}
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < 0 {
			return nil, errors.Errorf("external data: %s must be at least 0, got %q", key, text)
		}
		*to = v
	}
	return l, nil
}

// attach makes a part of a file the tensor's values.
func (t *storedTensor) attach(content []byte) error {
	l, size := t.external, int64(len(content))
	if l.length < 0 {
		l.length = size - l.offset
	}
	if l.offset > size || l.length < 0 || l.length > size-l.offset {
		return errors.Errorf("bytes %d to %d must be in the file %q, which has %d", l.offset, l.offset+l.length, l.location, size)
	}
	t.raw = content[l.offset : l.offset+l.length : l.offset+l.length]
	return nil
}

// check returns an error unless the number of values equals the shape's number of elements.
func (t *storedTensor) check() error {
	known, ok := elementTypes[t.Type]
	if !ok {
		return errors.Errorf("elements of %v are not supported", t.Type)
	}
	n, err := elements(t.Shape)
	if err != nil {
		return err
	}
	have := max(len(t.floats), len(t.integers))
	if t.raw != nil {
		if len(t.raw)%known.size != 0 {
			return errors.Errorf("%d bytes are not whole elements of %s", len(t.raw), known.name)
		}
		have = len(t.raw) / known.size
	}
	if have != n {
		return errors.Errorf("shape %v needs %d elements, the file has %d", t.Shape, n, have)
	}
	return nil
}

// values decodes the elements to dst, which must have room for all of them.
func (t *storedTensor) values(dst []float64) {
	switch {
	case t.raw == nil && t.floats != nil:
		copy(dst, t.floats)
	case t.raw == nil && t.Type == Float16:
		for i, v := range t.integers {
			dst[i] = halfToFloat(uint16(v))
		}
	case t.raw == nil && t.Type == BFloat16:
		for i, v := range t.integers {
			dst[i] = float64(math.Float32frombits(uint32(v) << 16))
		}
	case t.raw == nil:
		for i, v := range t.integers {
			dst[i] = float64(v)
		}
	default:
		t.decodeRaw(dst)
	}
}

func (t *storedTensor) decodeRaw(dst []float64) {
	raw, size := t.raw, elementTypes[t.Type].size
	for i := range len(raw) / size {
		b := raw[i*size : (i+1)*size]
		switch t.Type {
		case Float32:
			dst[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		case Float64:
			dst[i] = math.Float64frombits(binary.LittleEndian.Uint64(b))
		case Float16:
			dst[i] = halfToFloat(binary.LittleEndian.Uint16(b))
		case BFloat16:
			dst[i] = float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(b)) << 16))
		case Int8:
			dst[i] = float64(int8(b[0]))
		case Uint8, Bool:
			dst[i] = float64(b[0])
		case Int16:
			dst[i] = float64(int16(binary.LittleEndian.Uint16(b)))
		case Uint16:
			dst[i] = float64(binary.LittleEndian.Uint16(b))
		case Int32:
			dst[i] = float64(int32(binary.LittleEndian.Uint32(b)))
		case Uint32:
			dst[i] = float64(binary.LittleEndian.Uint32(b))
		case Int64:
			dst[i] = float64(int64(binary.LittleEndian.Uint64(b)))
		case Uint64:
			dst[i] = float64(binary.LittleEndian.Uint64(b))
		}
	}
}

// halfToFloat converts IEEE 754's binary16.
func halfToFloat(h uint16) float64 {
	sign := 1.0
	if h>>15 == 1 {
		sign = -1
	}
	exponent, fraction := int(h>>10&31), float64(h&1023)
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		if fraction != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

// array decodes the tensor.
func (t *storedTensor) array() *ndarray {
	n, _ := elements(t.Shape)
	a := &ndarray{shape: t.Shape, kind: t.Type, values: make([]float64, n)}
	t.values(a.values)
	return a
}
