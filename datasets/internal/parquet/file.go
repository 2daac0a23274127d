package parquet

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/memory"
)

// Magic begins and ends a Parquet file.
const Magic = "PAR1"

// Type is the type of a column's values. Columns of other types than these have a description, such
// as "list", and cannot be read.
type Type string

// The types of columns that can be read, and of those that have fields.
const (
	Integer Type = "integer"
	Text    Type = "text"
	Bytes   Type = "bytes"
	Struct  Type = "struct"
)

// Column is a column of a file or a field of a struct.
type Column struct {
	Name   string // of a field: with the name of the struct, as in image.bytes
	Type   Type
	Fields []Column // of a Struct

	leaf     int // its number among the columns that have values
	physical int64
	levels   uint32 // definition level of values that are not null
}

// File is an open Parquet file.
type File struct {
	Columns  []Column
	Rows     int64
	Metadata map[string]string // what programs added, such as "huggingface"

	source io.ReaderAt
	size   int64
	limit  int64 // of a page
	leaves int
	groups []rowGroup
}

// rowGroup is a range of rows.
type rowGroup struct {
	rows   int64
	chunks []chunk // by leaf
}

// chunk has the values of a column in a row group.
type chunk struct {
	external                           bool // in another file
	codec                              int64
	dataOffset, dictionaryOffset, size int64
}

// metadataPart is the part of the limit of a page that metadata may have. They take up to some
// twenty times their size in memory.
const metadataPart = 32

// MaxPage is the largest size of a page in the format.
const MaxPage = math.MaxInt32

// Open reads the metadata of a file. limit is the largest size of a page, at most MaxPage, before
// and after it is unpacked; metadata may have 1/32 of it.
func Open(source io.ReaderAt, size, limit int64) (file *File, err error) {
	defer guard(&err)
	const frame = 2*len(Magic) + 4
	start := make([]byte, len(Magic))
	if size < int64(len(Magic)) {
		return nil, errors.Errorf("must begin with %s, got %d bytes", Magic, size)
	}
	if _, err := source.ReadAt(start, 0); err != nil {
		return nil, err
	}
	if string(start) == "PARE" {
		return nil, errors.New("must not be encrypted")
	}
	if string(start) != Magic {
		return nil, errors.Errorf("must begin with %s, got %q", Magic, start)
	}
	end := make([]byte, 4+len(Magic))
	if size < int64(frame) {
		return nil, errors.Errorf("must end with %s, got %d bytes", Magic, size)
	}
	if _, err := source.ReadAt(end, size-int64(len(end))); err != nil {
		return nil, err
	}
	if string(end[4:]) != Magic {
		return nil, errors.Errorf("must end with %s, got %q: is the file complete?", Magic, end[4:])
	}
	footer := int64(binary.LittleEndian.Uint32(end))
	if footer > size-int64(frame) {
		return nil, errors.Errorf("offset %d: metadata must be within the file, got %d of %d bytes", size-int64(len(end)), footer, size)
	}
	if footer > limit/metadataPart {
		return nil, errors.Errorf("metadata must have at most %d bytes, got %d", limit/metadataPart, footer)
	}
	if err := memory.Check("parquet: reading the metadata of a file", metadataPart*footer, nil); err != nil {
		return nil, err
	}
	content := make([]byte, footer)
	if _, err := source.ReadAt(content, size-int64(len(end))-footer); err != nil {
		return nil, err
	}
	file = &File{source: source, size: size, limit: limit, Metadata: map[string]string{}}
	if err := file.parse(content); err != nil {
		return nil, errors.WithMessagef(err, "metadata at offset %d", size-int64(len(end))-footer)
	}
	return file, nil
}

// guard turns a panic, of a decompressor for example, into an error.
func guard(err *error) {
	if r := recover(); r != nil {
		*err = errors.Errorf("cannot be read: %v", r)
	}
}

// parse parses a file's metadata.
func (f *File) parse(content []byte) error {
	t := &thrift{data: content}
	var elements []element
	t.structure(thriftStruct, func(id int64, kind thriftType) bool {
		switch id {
		case 2:
			t.list(kind, func(kind thriftType) {
				if elements = append(elements, t.element(kind)); len(elements) > maxElements {
					t.fail(errors.Errorf("the schema must have at most %d elements", maxElements))
				}
			})
		case 3:
			f.Rows = t.integer(kind)
		case 4:
			t.list(kind, func(kind thriftType) { f.groups = append(f.groups, t.rowGroup(kind)) })
		case 5:
			t.list(kind, func(kind thriftType) { t.addMetadata(kind, f.Metadata) })
		default:
			return false
		}
		return true
	})
	if t.err != nil {
		return t.err
	}
	if len(elements) == 0 {
		return errors.New("must have a schema")
	}
	root, rest, err := f.column(elements, "", 0, 0)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return errors.Errorf("the schema must have one root, got %d elements next to it", len(rest))
	}
	f.Columns = root.Fields
	rows := int64(0)
	for i, group := range f.groups {
		if len(group.chunks) != f.leaves {
			return errors.Errorf("row group %d must have %d columns, as the schema, got %d", i, f.leaves, len(group.chunks))
		}
		if group.rows < 0 || group.rows > f.size-rows {
			return errors.Errorf("a file of %d bytes must have no more rows than bytes, got %d in row group %d", f.size, group.rows, i)
		}
		rows += group.rows
	}
	if rows != f.Rows {
		return errors.Errorf("the row groups must have %d rows, as the file, got %d", f.Rows, rows)
	}
	return nil
}

// maxElements limits the columns of a file.
const maxElements = 1 << 16

// element is an element of a schema, in depth-first order.
type element struct {
	name               string
	physical           int64 // -1 for a struct
	repetition         int64
	children           int64
	converted, logical int64 // -1 for none
}

// The kinds of repetition.
const (
	optional = 1
	repeated = 2
)

// The physical types.
const (
	physicalInt32 = 1
	physicalInt64 = 2
	physicalBytes = 6
)

// physicalNames describes the physical types.
var physicalNames = []Type{"boolean", Integer, Integer, "96-bit integer", "floating point", "floating point", Bytes, "bytes of fixed length"}

// element reads an element of a schema.
func (t *thrift) element(kind thriftType) element {
	e := element{physical: -1, converted: -1, logical: -1}
	t.structure(kind, func(id int64, kind thriftType) bool {
		switch id {
		case 1:
			e.physical = t.integer(kind)
		case 3:
			e.repetition = t.integer(kind)
		case 4:
			e.name = string(t.binary(kind))
		case 5:
			e.children = t.integer(kind)
		case 6:
			e.converted = t.integer(kind)
		case 10:
			t.structure(kind, func(id int64, _ thriftType) bool {
				e.logical = id
				return false
			})
		default:
			return false
		}
		return true
	})
	return e
}

// describe returns the type of an element without children.
func (e element) describe() Type {
	if e.physical < 0 || e.physical >= int64(len(physicalNames)) {
		return Type(fmt.Sprintf("unknown type %d", e.physical))
	}
	kind := physicalNames[e.physical]
	isText := e.converted == 0 || e.converted == 4 || e.logical == 1 || e.logical == 4 // of UTF-8, of an enumeration
	isNumber := e.converted < 0 && e.logical < 0 || e.converted >= 11 && e.converted <= 18 || e.logical == 10
	switch {
	case kind == Bytes && isText:
		return Text
	case kind == Bytes && (e.converted >= 0 || e.logical >= 0), kind == Integer && !isNumber:
		return kind + " with a meaning, such as a date"
	}
	return kind
}

// column makes a column of the first of the elements, and returns the elements after it.
func (f *File) column(elements []element, parent string, levels uint32, depth int) (Column, []element, error) {
	e, rest := elements[0], elements[1:]
	c := Column{Name: e.name, levels: levels, leaf: f.leaves, physical: e.physical}
	if parent != "" {
		c.Name = parent + "." + e.name
	}
	if depth > maxDepth {
		return c, nil, errors.Errorf("the schema must be at most %d deep", maxDepth)
	}
	if e.repetition == optional && depth > 0 {
		c.levels++
	}
	if e.children <= 0 && depth > 0 {
		f.leaves++
		if c.Type = e.describe(); e.repetition == repeated {
			c.Type = "list"
		}
		return c, rest, nil
	}
	c.Type = Struct
	if depth == 0 {
		c.Name = "" // the root's name means nothing
	}
	for range e.children {
		if len(rest) == 0 {
			return c, nil, errors.Errorf("the schema must have %d fields of %q, got %d", e.children, e.name, len(c.Fields))
		}
		field, after, err := f.column(rest, c.Name, c.levels, depth+1)
		if err != nil {
			return c, nil, err
		}
		c.Fields, rest = append(c.Fields, field), after
	}
	if e.repetition == repeated || e.converted >= 0 || e.logical >= 0 { // lists and maps are structs with a meaning
		c.Type, c.Fields = "list", nil
	}
	return c, rest, nil
}

// rowGroup reads a row group.
func (t *thrift) rowGroup(kind thriftType) (g rowGroup) {
	t.structure(kind, func(id int64, kind thriftType) bool {
		switch id {
		case 1:
			t.list(kind, func(kind thriftType) { g.chunks = append(g.chunks, t.chunk(kind)) })
		case 3:
			g.rows = t.integer(kind)
		default:
			return false
		}
		return true
	})
	return g
}

// chunk reads the metadata of a column chunk.
func (t *thrift) chunk(kind thriftType) (c chunk) {
	t.structure(kind, func(id int64, kind thriftType) bool {
		switch id {
		case 1:
			c.external = len(t.binary(kind)) > 0
		case 3:
			t.integers(kind, map[int64]*int64{4: &c.codec, 7: &c.size, 9: &c.dataOffset, 11: &c.dictionaryOffset})
		default:
			return false
		}
		return true
	})
	if c.dataOffset == 0 {
		t.fail(errors.New("a column of a row group must have an offset"))
	}
	return c
}

// addMetadata reads a key and its value.
func (t *thrift) addMetadata(kind thriftType, to map[string]string) {
	var pair [2]string
	t.structure(kind, func(id int64, kind thriftType) bool {
		if id != 1 && id != 2 {
			return false
		}
		pair[id-1] = string(t.binary(kind))
		return true
	})
	to[pair[0]] = pair[1]
}

// Field returns a field of a struct, or nil.
func (c *Column) Field(name string) *Column {
	for i, field := range c.Fields {
		if strings.TrimPrefix(field.Name, c.Name+".") == name {
			return &c.Fields[i]
		}
	}
	return nil
}
