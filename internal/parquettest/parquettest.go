package parquettest

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Image is a value of a column of images, as the Hugging Face Hub stores them. Bytes that are nil
// and an empty path are null.
type Image struct {
	Bytes []byte
	Path  string
}

// Column is a column whose Values are []int64, []string, [][]byte or []Image. Bytes that are nil
// are null.
type Column struct {
	Name   string
	Values any
}

// The compressions.
const (
	Uncompressed = 0
	Snappy       = 1
	Gzip         = 2
	Zstd         = 6
)

// Options determine how a file is written. The zero value writes plain pages of version 1, without
// compression, in a single row group.
type Options struct {
	Codec      int
	Version2   bool // of pages
	Dictionary bool
	GroupRows  int // of a row group; 0 is all
	PageRows   int // of a page; 0 is all of a row group
	Metadata   map[string]string
}

// ClassLabels returns Options.Metadata that name the classes of columns of labels, as the Hugging
// Face Hub does.
func ClassLabels(names map[string][]string) map[string]string {
	features := map[string]any{"image": map[string]any{"_type": "Image"}}
	for column, classes := range names {
		features[column] = map[string]any{"names": classes, "_type": "ClassLabel"}
	}
	text, err := json.Marshal(map[string]any{"info": map[string]any{"features": features}})
	if err != nil {
		panic(err) // text can always be encoded
	}
	return map[string]string{"huggingface": string(text)}
}

// leaf is a column of values in a file.
type leaf struct {
	path   []string
	isInt  bool
	isText bool
	values [][]byte // encoded, nil for null
}

// leaves returns the columns of values of a column.
func (c Column) leaves() []leaf {
	var plain leaf
	plain.path = []string{c.Name}
	switch values := c.Values.(type) {
	case []int64:
		plain.isInt = true
		for _, v := range values {
			plain.values = append(plain.values, binary.LittleEndian.AppendUint64(nil, uint64(v)))
		}
	case []string:
		plain.isText = true
		for _, v := range values {
			plain.values = append(plain.values, sized([]byte(v)))
		}
	case [][]byte:
		for _, v := range values {
			plain.values = append(plain.values, sized(v))
		}
	case []Image:
		content, path := leaf{path: []string{c.Name, "bytes"}}, leaf{path: []string{c.Name, "path"}, isText: true}
		for _, v := range values {
			content.values = append(content.values, sized(v.Bytes))
			var name []byte
			if v.Path != "" {
				name = []byte(v.Path)
			}
			path.values = append(path.values, sized(name))
		}
		return []leaf{content, path}
	default:
		panic(fmt.Sprintf("parquettest: column %s has values of type %T", c.Name, c.Values))
	}
	return []leaf{plain}
}

// sized returns a plain byte array, or nil for null.
func sized(value []byte) []byte {
	if value == nil {
		return nil
	}
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(value))), value...)
}

// Write returns a file with columns, which must have the same number of values.
func Write(o Options, columns ...Column) []byte {
	file := []byte("PAR1")
	var all []leaf
	schema := []field{{4, "schema"}, {5, len(columns)}}
	elements := []any{schema}
	for _, c := range columns {
		leaves := c.leaves()
		if len(leaves) > 1 {
			elements = append(elements, []field{{3, 1}, {4, c.Name}, {5, len(leaves)}})
		}
		for _, l := range leaves {
			elements = append(elements, l.element())
		}
		all = append(all, leaves...)
	}
	rows := len(all[0].values)
	var groups []any
	each := max(1, min(rows, o.GroupRows))
	if o.GroupRows == 0 {
		each = max(rows, 1)
	}
	for from := 0; from < rows; from += each {
		to := min(from+each, rows)
		var chunks []any
		for _, l := range all {
			var chunk []field
			file, chunk = l.appendChunk(file, l.values[from:to], o)
			chunks = append(chunks, chunk)
		}
		groups = append(groups, []field{{1, chunks}, {2, 0}, {3, int64(to - from)}})
	}
	var metadata []any
	for key, value := range o.Metadata {
		metadata = append(metadata, []field{{1, key}, {2, value}})
	}
	footer := encode(nil, []field{{1, 2}, {2, elements}, {3, int64(rows)}, {4, groups}, {5, metadata}})
	file = append(file, footer...)
	file = binary.LittleEndian.AppendUint32(file, uint32(len(footer)))
	return append(file, "PAR1"...)
}

// element returns the leaf's element of the schema.
func (l leaf) element() []field {
	physical := 6
	if l.isInt {
		physical = 2
	}
	e := []field{{1, physical}, {3, 1}, {4, l.path[len(l.path)-1]}}
	if l.isText {
		e = append(e, field{6, 0}, field{10, []field{{1, []field{}}}})
	}
	return e
}

// appendChunk appends the pages of a column chunk to a file, and returns its description.
func (l leaf) appendChunk(file []byte, values [][]byte, o Options) ([]byte, []field) {
	start := len(file)
	physical := 6
	if l.isInt {
		physical = 2
	}
	description := []field{{1, physical}, {2, []any{}}, {3, []any{l.path[0]}}, {4, o.Codec}, {5, int64(len(values))}, {6, int64(0)}}
	var distinct [][]byte
	numbers := map[string]int{}
	if o.Dictionary {
		for _, v := range values {
			if _, known := numbers[string(v)]; v != nil && !known {
				numbers[string(v)] = len(distinct)
				distinct = append(distinct, v)
			}
		}
		content := slices.Concat(distinct...)
		file = appendPage(file, 2, content, pack(content, o.Codec), field{7, []field{{1, len(distinct)}, {2, 0}}})
	}
	dataAt := len(file)
	pageRows := o.PageRows
	if pageRows == 0 {
		pageRows = len(values)
	}
	for from := 0; from < len(values); from += pageRows {
		file = l.appendPage(file, values[from:min(from+pageRows, len(values))], numbers, len(distinct), o)
	}
	description = append(description, field{7, int64(len(file) - start)}, field{9, int64(dataAt)})
	if o.Dictionary {
		description = append(description, field{11, int64(start)})
	}
	return file, []field{{2, int64(start)}, {3, description}}
}

// appendPage appends a page of values, or of their numbers in a dictionary.
func (l leaf) appendPage(file []byte, values [][]byte, numbers map[string]int, distinct int, o Options) []byte {
	var levels, indices []uint32
	var data []byte
	for _, v := range values {
		if v == nil {
			levels = append(levels, 0)
			continue
		}
		levels = append(levels, uint32(len(l.path)))
		indices = append(indices, uint32(numbers[string(v)]))
		data = append(data, v...)
	}
	encoding := 0
	if o.Dictionary {
		encoding = 8
		width := bits.Len(uint(max(distinct-1, 0)))
		data = append([]byte{byte(width)}, hybrid(indices, width)...)
	}
	runs := hybrid(levels, bits.Len(uint(len(l.path))))
	if o.Version2 {
		packed := pack(data, o.Codec)
		header := field{8, []field{{1, len(values)}, {2, len(values) - len(indices)}, {3, len(values)}, {4, encoding}, {5, len(runs)}, {6, 0}}}
		return appendPage(file, 3, slices.Concat(runs, data), slices.Concat(runs, packed), header)
	}
	data = slices.Concat(binary.LittleEndian.AppendUint32(nil, uint32(len(runs))), runs, data)
	return appendPage(file, 0, data, pack(data, o.Codec), field{5, []field{{1, len(values)}, {2, encoding}, {3, 3}, {4, 3}}})
}

func appendPage(file []byte, kind int, data, packed []byte, header field) []byte {
	return append(encode(file, []field{{1, kind}, {2, len(data)}, {3, len(packed)}, header}), packed...)
}

// hybrid encodes values as a run if they are equal, or else as packed bits.
func hybrid(values []uint32, width int) []byte {
	if len(slices.Compact(slices.Clone(values))) == 1 {
		run := binary.AppendUvarint(nil, uint64(len(values))<<1)
		for i := 0; i < width; i += 8 {
			run = append(run, byte(values[0]>>i))
		}
		return run
	}
	groups := (len(values) + 7) / 8
	packed := binary.AppendUvarint(nil, uint64(groups)<<1|1)
	start := len(packed)
	packed = append(packed, make([]byte, groups*width)...)
	for i, v := range values {
		for bit := range width {
			packed[start+(i*width+bit)/8] |= byte(v>>bit&1) << ((i*width + bit) % 8)
		}
	}
	return packed
}

// pack compresses data.
func pack(data []byte, codec int) []byte {
	switch codec {
	case Snappy:
		return snappy.Encode(nil, data)
	case Gzip:
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		if _, err := w.Write(data); err != nil {
			panic(err) // a buffer takes everything
		}
		if err := w.Close(); err != nil {
			panic(err)
		}
		return b.Bytes()
	case Zstd:
		w, err := zstd.NewWriter(nil)
		if err != nil {
			panic(err) // the options are valid
		}
		return w.EncodeAll(data, nil)
	}
	return data
}

// field is a field of a struct in Thrift's compact protocol.
type field struct {
	id    int
	value any // int (of 32 bits), int64, string, []any (a list of structs or strings) or []field
}

// encode appends a struct.
func encode(to []byte, fields []field) []byte {
	last := 0
	for _, f := range fields {
		kind := map[bool]byte{true: 6, false: 5}[isInt64(f.value)]
		switch f.value.(type) {
		case string:
			kind = 8
		case []any:
			kind = 9
		case []field:
			kind = 12
		}
		to = append(to, byte(f.id-last)<<4|kind)
		last = f.id
		to = encodeValue(to, f.value)
	}
	return append(to, 0)
}

func isInt64(value any) bool {
	_, is := value.(int64)
	return is
}

func encodeValue(to []byte, value any) []byte {
	switch v := value.(type) {
	case int:
		return binary.AppendVarint(to, int64(v))
	case int64:
		return binary.AppendVarint(to, v)
	case string:
		return append(binary.AppendUvarint(to, uint64(len(v))), v...)
	case []field:
		return encode(to, v)
	case []any:
		kind := byte(12)
		if len(v) > 0 {
			if _, is := v[0].(string); is {
				kind = 8
			}
		}
		to = append(to, 0xf0|kind)
		to = binary.AppendUvarint(to, uint64(len(v)))
		for _, item := range v {
			to = encodeValue(to, item)
		}
	}
	return to
}
