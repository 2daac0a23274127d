package onnx

import (
	"encoding/binary"
	"math"

	"github.com/pkg/errors"
	"google.golang.org/protobuf/encoding/protowire"
)

// field is one field of a protocol buffer's message. A varint or a fixed-size field has a value; a
// length-delimited one has bytes, which alias the message.
type field struct {
	number int
	kind   protowire.Type
	value  uint64
	bytes  []byte
}

// fields calls use for each field of a message.
func fields(message []byte, use func(f field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errors.Wrap(protowire.ParseError(n), "not a protocol buffer's message")
		}
		message = message[n:]
		f := field{number: int(number), kind: kind}
		switch kind {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(message)
			f.value = uint64(v)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return errors.Wrapf(protowire.ParseError(n), "field %d is cut off or damaged", number)
		}
		message = message[n:]
		if err := use(f); err != nil {
			return err
		}
	}
	return nil
}

// integers appends the integers of a repeated field, of which f is one element or a packed part.
func (f field) integers(to []int64) ([]int64, error) {
	if f.kind != protowire.BytesType {
		return append(to, int64(f.value)), nil
	}
	for rest := f.bytes; len(rest) > 0; {
		v, n := protowire.ConsumeVarint(rest)
		if n < 0 {
			return nil, errors.Wrapf(protowire.ParseError(n), "field %d", f.number)
		}
		to, rest = append(to, int64(v)), rest[n:]
	}
	return to, nil
}

// floats appends the float32 of a repeated field, of which f is one element or a packed part.
func (f field) floats(to []float64) ([]float64, error) {
	if f.kind != protowire.BytesType {
		return append(to, float64(math.Float32frombits(uint32(f.value)))), nil
	}
	for rest := f.bytes; len(rest) > 0; {
		v, n := protowire.ConsumeFixed32(rest)
		if n < 0 {
			return nil, errors.Wrapf(protowire.ParseError(n), "field %d", f.number)
		}
		to, rest = append(to, float64(math.Float32frombits(v))), rest[n:]
	}
	return to, nil
}

// doubles appends the float64 of a repeated field, of which f is one element or a packed part.
func (f field) doubles(to []float64) ([]float64, error) {
	if f.kind != protowire.BytesType {
		return append(to, math.Float64frombits(f.value)), nil
	}
	for rest := f.bytes; len(rest) > 0; {
		v, n := protowire.ConsumeFixed64(rest)
		if n < 0 {
			return nil, errors.Wrapf(protowire.ParseError(n), "field %d", f.number)
		}
		to, rest = append(to, math.Float64frombits(v)), rest[n:]
	}
	return to, nil
}

// message returns a field whose content is a message, or bytes, given in parts.
func message(number protowire.Number, content ...[]byte) []byte {
	size := 0
	for _, part := range content {
		size += len(part)
	}
	all := protowire.AppendTag(make([]byte, 0, size+2*binary.MaxVarintLen64), number, protowire.BytesType)
	all = protowire.AppendVarint(all, uint64(size))
	for _, part := range content {
		all = append(all, part...)
	}
	return all
}

// text returns a field with a string.
func text(number protowire.Number, s string) []byte { return message(number, []byte(s)) }

// whole returns a field with an integer.
func whole(number protowire.Number, v int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), uint64(v))
}

// float returns a field with a float32.
func float(number protowire.Number, v float64) []byte {
	return protowire.AppendFixed32(protowire.AppendTag(nil, number, protowire.Fixed32Type), math.Float32bits(float32(v)))
}

// pair reads an entry of strings, key and value.
func pair(message []byte) (key, value string, err error) {
	err = fields(message, func(f field) error {
		switch f.number {
		case 1:
			key = string(f.bytes)
		case 2:
			value = string(f.bytes)
		}
		return nil
	})
	return key, value, err
}
