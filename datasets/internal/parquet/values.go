package parquet

import (
	"encoding/binary"
	"io"

	"github.com/pkg/errors"
)

// Value is the value of a column in a row.
type Value struct {
	Null    bool
	Integer int64
	Bytes   []byte // of Text and Bytes; valid until the next call of Next
}

// Values reads the values of a column, in the order of rows. It must be used by one goroutine at a
// time.
type Values struct {
	file   *File
	column Column
	row    int64 // the next one
	err    error // of all further calls

	group   int   // the next one
	rows    int64 // of the row group that are in none of the pages that were read
	at, end int64 // what is left of the column chunk
	codec   int64

	total, unpacked int64  // bytes of all pages so far
	packed, page    []byte // buffers

	left       int64  // values of the page that were not read
	levels     hybrid // of the page
	data       []byte // plain values of the page that were not read
	indices    *hybrid
	dictionary *dictionary // of the column chunk
}

// dictionary has the distinct values of a column chunk, and others, which some programs repeat in
// every chunk.
type dictionary struct {
	data    []byte   // plain values
	offsets []uint32 // of the values in data
}

// Values returns a reader of a column's values. It is an error unless the column's type is Integer,
// Text or Bytes.
func (f *File) Values(c Column) (*Values, error) {
	if c.Type != Integer && c.Type != Text && c.Type != Bytes {
		return nil, errors.Errorf("column %s: must have integers, text or bytes, got the type %s", c.Name, c.Type)
	}
	return &Values{file: f, column: c}, nil
}

// Next returns the value of the next row, and io.EOF after the last one. After an error, it returns
// the same error again.
func (v *Values) Next() (value Value, err error) {
	if v.err != nil {
		return Value{}, v.err
	}
	for v.left == 0 && v.err == nil {
		offset := v.at
		if v.err = v.nextPage(); v.err != nil && v.err != io.EOF {
			v.err = errors.WithMessagef(v.err, "column %s: row %d: page at offset %d", v.column.Name, v.row, offset)
		}
	}
	if v.err != nil {
		return Value{}, v.err
	}
	if value, v.err = v.decode(); v.err != nil {
		v.err = errors.WithMessagef(v.err, "column %s: row %d", v.column.Name, v.row)
		return Value{}, v.err
	}
	v.left--
	v.row++
	return value, nil
}

// nextPage reads pages up to one with values, or begins the next row group.
func (v *Values) nextPage() (err error) {
	defer guard(&err)
	if v.rows == 0 {
		return v.nextGroup()
	}
	if v.at >= v.end {
		return errors.Errorf("the column must have %d more rows in its row group", v.rows)
	}
	if v.total > v.file.size {
		return errors.Errorf("the pages of a column must have at most the %d bytes of the file, got more: row groups overlap", v.file.size)
	}
	h, err := v.readHeader()
	if err != nil {
		return errors.Wrap(err, "header")
	}
	switch h.kind {
	case indexPage:
		v.at += min(max(h.packed, 0), v.end-v.at)
		return nil
	case dictionaryPage:
		return v.readDictionary(h)
	case dataPage, dataPage2:
	default:
		return errors.Errorf("must be a page of data or of a dictionary, got type %d", h.kind)
	}
	if h.values < 0 || h.values > v.rows {
		return errors.Errorf("must have at most the %d values that are left of the row group, got %d", v.rows, h.values)
	}
	if v.page, err = v.readPage(h, v.page); err != nil {
		return err
	}
	if err := v.begin(h); err != nil {
		return err
	}
	v.left = h.values
	v.rows -= h.values
	return nil
}

// nextGroup begins the next row group.
func (v *Values) nextGroup() error {
	if v.group == len(v.file.groups) {
		return io.EOF
	}
	group := v.file.groups[v.group]
	v.group++
	c := group.chunks[v.column.leaf]
	if c.external {
		return errors.New("the column must be in the file itself, not in another one")
	}
	v.rows, v.codec, v.dictionary = group.rows, c.codec, nil
	v.at = c.dataOffset
	if c.dictionaryOffset > 0 && c.dictionaryOffset < v.at {
		v.at = c.dictionaryOffset
	}
	if c.size < 0 || v.at < int64(len(Magic)) || v.at > v.file.size || c.size > v.file.size-v.at {
		return errors.Errorf("the column must be within the file of %d bytes, got %d bytes", v.file.size, c.size)
	}
	v.end = v.at + c.size
	return nil
}

// begin divides the data of a page into levels and values.
func (v *Values) begin(h pageHeader) error {
	data := v.page
	levels := data[:h.levels]
	switch {
	case h.kind == dataPage2:
		data = data[h.levels:]
	case v.column.levels > 0:
		if h.levelEncoding != runLengths {
			return errors.Errorf("levels must be encoded in runs, got %s", encodingName(h.levelEncoding))
		}
		if len(data) < 4 || uint64(binary.LittleEndian.Uint32(data)) > uint64(len(data)-4) {
			return errors.New("levels must be within the page")
		}
		size := binary.LittleEndian.Uint32(data)
		levels, data = data[4:4+size], data[4+size:]
	}
	v.levels = newHybrid(levels, v.column.levels)
	v.data, v.indices = data, nil
	switch h.encoding {
	case plain:
	case plainDictionary, rleDictionary:
		if v.dictionary == nil {
			return errors.New("must come after its dictionary")
		}
		if len(data) == 0 { // all values are null
			data = []byte{0}
		}
		if data[0] > 32 {
			return errors.Errorf("the numbers of a dictionary must have at most 32 bits, got %d", data[0])
		}
		v.indices = &hybrid{data: data[1:], width: int(data[0])}
	default:
		return errors.Errorf("values must be plain or in a dictionary, got %s", encodingName(h.encoding))
	}
	return nil
}

func encodingName(encoding int64) string {
	if name := encodingNames[encoding]; name != "" {
		return name
	}
	return "an unknown encoding"
}

// readDictionary reads a dictionary.
func (v *Values) readDictionary(h pageHeader) error {
	if v.dictionary != nil {
		return errors.New("must be the only dictionary of its column chunk")
	}
	if h.encoding != plain && h.encoding != plainDictionary {
		return errors.Errorf("a dictionary must be plain, got %s", encodingName(h.encoding))
	}
	data, err := v.readPage(h, nil)
	if err != nil {
		return err
	}
	const minValue = 4
	if h.values < 0 || h.values > int64(len(data)/minValue) {
		return errors.Errorf("a dictionary of %d bytes must have at most %d values, got %d", len(data), len(data)/minValue, h.values)
	}
	d := &dictionary{data, make([]uint32, h.values)}
	for i := range d.offsets {
		d.offsets[i] = uint32(len(d.data) - len(data)) // a page has less than 2 GiB
		if _, data, err = v.plain(data); err != nil {
			return err
		}
	}
	v.dictionary = d
	return nil
}

// decode returns the next value of the page.
func (v *Values) decode() (value Value, err error) {
	if v.column.levels > 0 {
		level, err := v.levels.next()
		if err != nil {
			return value, err
		}
		if level > v.column.levels {
			return value, errors.Errorf("the level must be at most %d, got %d", v.column.levels, level)
		}
		if level < v.column.levels {
			return Value{Null: true}, nil
		}
	}
	if v.indices == nil {
		value, v.data, err = v.plain(v.data)
		return value, err
	}
	index, err := v.indices.next()
	if err != nil {
		return value, err
	}
	if uint64(index) >= uint64(len(v.dictionary.offsets)) {
		return value, errors.Errorf("must be one of the %d values of the dictionary, got number %d", len(v.dictionary.offsets), index)
	}
	value, _, err = v.plain(v.dictionary.data[v.dictionary.offsets[index]:])
	return value, err
}

var errOutside = errors.New("the value must be within its page")

// plain returns the plain value at the start of data, and the data after it.
func (v *Values) plain(data []byte) (value Value, rest []byte, err error) {
	size := uint64(4) // of an integer of 32 bits, or of the length of bytes
	if v.column.physical == physicalInt64 {
		size = 8
	}
	if size > uint64(len(data)) {
		return value, nil, errOutside
	}
	switch v.column.physical {
	case physicalInt32:
		value.Integer = int64(int32(binary.LittleEndian.Uint32(data)))
	case physicalInt64:
		value.Integer = int64(binary.LittleEndian.Uint64(data))
	default:
		if size += uint64(binary.LittleEndian.Uint32(data)); size > uint64(len(data)) {
			return value, nil, errOutside
		}
		value.Bytes = data[4:size:size]
	}
	return value, data[size:], nil
}
