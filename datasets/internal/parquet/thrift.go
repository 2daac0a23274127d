package parquet

import (
	"encoding/binary"
	"io"

	"github.com/pkg/errors"
)

// maxDepth limits the depth of structs in metadata, and of the schema.
const maxDepth = 32

// thriftType is the type of a value in Thrift's compact protocol.
type thriftType byte

const (
	thriftTrue thriftType = iota + 1
	thriftFalse
	thriftByte
	thriftInt16
	thriftInt32
	thriftInt64
	thriftDouble
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
)

// thrift reads values in Thrift's compact protocol. After an error, which is in err, it returns
// zero values. It allocates nothing: a list has no more elements than there are bytes left.
type thrift struct {
	data  []byte // not read yet
	depth int
	err   error
}

func (t *thrift) fail(err error) {
	if t.err == nil {
		t.err = err
	}
	t.data = nil
}

// take returns the next n bytes.
func (t *thrift) take(n uint64) []byte {
	if n > uint64(len(t.data)) {
		t.fail(io.ErrUnexpectedEOF)
		return nil
	}
	taken := t.data[:n:n]
	t.data = t.data[n:]
	return taken
}

func (t *thrift) byte() byte {
	if b := t.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (t *thrift) uvarint() uint64 {
	value, n := binary.Uvarint(t.data)
	if n <= 0 {
		t.fail(io.ErrUnexpectedEOF)
		if n < 0 {
			t.err = errors.New("an integer must have at most 64 bits")
		}
		return 0
	}
	t.data = t.data[n:]
	return value
}

func (t *thrift) varint() int64 {
	value := t.uvarint()
	return int64(value>>1) ^ -int64(value&1)
}

// want fails unless a value has the wanted type.
func (t *thrift) want(got thriftType, wanted ...thriftType) bool {
	for _, w := range wanted {
		if got == w {
			return t.err == nil
		}
	}
	t.fail(errors.Errorf("a value must have type %v of Thrift, got %d", wanted, got))
	return false
}

// integer reads an integer of a given type.
func (t *thrift) integer(kind thriftType) int64 {
	if !t.want(kind, thriftInt16, thriftInt32, thriftInt64) {
		return 0
	}
	return t.varint()
}

// binary reads bytes, which share their memory with the data.
func (t *thrift) binary(kind thriftType) []byte {
	if !t.want(kind, thriftBinary) {
		return nil
	}
	return t.take(t.uvarint())
}

// list calls read for each element of a list.
func (t *thrift) list(kind thriftType, read func(kind thriftType)) {
	if !t.want(kind, thriftList, thriftSet) {
		return
	}
	head := t.byte()
	n := uint64(head >> 4)
	if n == 15 {
		n = t.uvarint()
	}
	if n > uint64(len(t.data)) {
		t.fail(io.ErrUnexpectedEOF)
	}
	for ; n > 0 && t.err == nil; n-- {
		read(thriftType(head & 15))
	}
}

// structure calls read for each field of a struct. read reports whether it has read the field;
// others are skipped.
func (t *thrift) structure(kind thriftType, read func(id int64, kind thriftType) bool) {
	if !t.want(kind, thriftStruct) {
		return
	}
	if t.depth++; t.depth > maxDepth {
		t.fail(errors.Errorf("structs must be at most %d deep", maxDepth))
	}
	defer func() { t.depth-- }()
	id := int64(0)
	for t.err == nil {
		head := t.byte()
		if head == 0 {
			return
		}
		if delta := head >> 4; delta != 0 {
			id += int64(delta)
		} else {
			id = t.varint()
		}
		if kind := thriftType(head & 15); t.err == nil && !read(id, kind) {
			t.skip(kind, false)
		}
	}
}

// integers reads the fields of a struct that are integers, by number.
func (t *thrift) integers(kind thriftType, into map[int64]*int64) {
	t.structure(kind, func(id int64, kind thriftType) bool {
		to := into[id]
		if to != nil {
			*to = t.integer(kind)
		}
		return to != nil
	})
}

// skip skips a value. The value of a boolean is in its type, except in a collection.
func (t *thrift) skip(kind thriftType, inCollection bool) {
	switch kind {
	case thriftTrue, thriftFalse:
		if inCollection {
			t.byte()
		}
	case thriftByte:
		t.byte()
	case thriftInt16, thriftInt32, thriftInt64:
		t.uvarint()
	case thriftDouble:
		t.take(8)
	case thriftBinary:
		t.binary(kind)
	case thriftList, thriftSet:
		if t.depth++; t.depth > maxDepth {
			t.fail(errors.Errorf("lists must be at most %d deep", maxDepth))
		}
		t.list(kind, func(kind thriftType) { t.skip(kind, true) })
		t.depth--
	case thriftStruct:
		t.structure(kind, func(int64, thriftType) bool { return false })
	default: // Parquet has no maps
		t.fail(errors.Errorf("a value has the unknown type %d of Thrift", kind))
	}
}
