package parquet

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/pollen-ml/pollen/internal/parquettest"
	"github.com/pollen-ml/pollen/internal/testenv"
)

// open opens a file in memory.
func open(content []byte) (*File, error) {
	return Open(bytes.NewReader(content), int64(len(content)), MaxPage)
}

// all returns the values of a column as text, "null" for null.
func all(f *File, c *Column) (texts []string, err error) {
	values, err := f.Values(*c)
	if err != nil {
		return nil, err
	}
	for {
		value, err := values.Next()
		switch {
		case err == io.EOF:
			return texts, nil
		case err != nil:
			return texts, err
		case value.Null:
			texts = append(texts, "null")
		case c.Type == Integer:
			texts = append(texts, fmt.Sprint(value.Integer))
		default:
			texts = append(texts, string(value.Bytes))
		}
	}
}

// columnOf returns a column by its name, such as image.bytes.
func columnOf(f *File, name string) *Column {
	root := Column{Fields: f.Columns}
	first, field, _ := strings.Cut(name, ".")
	c := root.Field(first)
	if c != nil && field != "" {
		c = c.Field(field)
	}
	return c
}

// sample has 23 rows of each type, with nulls.
func sample() (columns []parquettest.Column, want map[string][]string) {
	var labels []int64
	var words []string
	var images []parquettest.Image
	var plain [][]byte
	want = map[string][]string{}
	for i := range 23 {
		labels, words = append(labels, int64(i%7-1)), append(words, strings.Repeat("w", i%5))
		image := parquettest.Image{Bytes: bytes.Repeat([]byte{byte(i)}, 100+i), Path: fmt.Sprintf("%d.jpg", i)}
		if i%6 == 0 {
			image.Bytes = nil
		}
		if i%4 == 0 {
			image.Path = ""
		}
		images = append(images, image)
		plain = append(plain, image.Bytes)
		orNull := func(text string, null bool) string {
			if null {
				return "null"
			}
			return text
		}
		want["label"], want["word"] = append(want["label"], fmt.Sprint(labels[i])), append(want["word"], words[i])
		want["image.bytes"] = append(want["image.bytes"], orNull(string(image.Bytes), image.Bytes == nil))
		want["image.path"] = append(want["image.path"], orNull(image.Path, image.Path == ""))
		want["plain"] = append(want["plain"], orNull(string(image.Bytes), image.Bytes == nil))
	}
	return []parquettest.Column{
		{Name: "label", Values: labels}, {Name: "image", Values: images}, {Name: "word", Values: words}, {Name: "plain", Values: plain},
	}, want
}

func TestValues(t *testing.T) {
	columns, want := sample()
	for _, codec := range []int{parquettest.Uncompressed, parquettest.Snappy, parquettest.Gzip, parquettest.Zstd} {
		for i := range 16 {
			o := parquettest.Options{Codec: codec, Version2: i&1 != 0, Dictionary: i&2 != 0, Metadata: map[string]string{"huggingface": "{}"}}
			if i&4 != 0 {
				o.GroupRows = 9
			}
			if i&8 != 0 {
				o.PageRows = 4
			}
			f, err := open(parquettest.Write(o, columns...))
			if err != nil {
				t.Fatalf("%+v: %v", o, err)
			}
			if f.Rows != 23 || f.Metadata["huggingface"] != "{}" || len(f.Columns) != 4 {
				t.Errorf("%+v: %d rows, %d columns, metadata %v", o, f.Rows, len(f.Columns), f.Metadata)
			}
			for name, texts := range want {
				if got, err := all(f, columnOf(f, name)); err != nil || !slices.Equal(got, texts) {
					t.Errorf("%+v: column %s has %q, %v", o, name, got, err)
				}
			}
		}
	}
}

// Files of pyarrow 26: two row groups with dictionaries and Snappy; pages of version 2 with zstd,
// checksums and an index of pages; and encodings that are not read.
func TestPyarrow(t *testing.T) {
	deltas := map[string]string{"label": "DELTA_BINARY_PACKED", "word": "DELTA_BYTE_ARRAY", "image.bytes": "DELTA_LENGTH_BYTE_ARRAY"}
	for _, name := range []string{"pyarrow1", "pyarrow2", "delta"} {
		content, err := os.ReadFile(filepath.Join("testdata", name+".parquet"))
		if err != nil {
			t.Fatal(err)
		}
		f, err := open(content)
		if err != nil || f.Rows != 8 {
			t.Fatalf("%s: %+v, %v", name, f, err)
		}
		for column, want := range map[string][]string{
			"label":       {"0", "1", "2", "0", "1", "null", "0", "1"},
			"word":        {"ab", "ab", "ab", "c", "c", "c", "c", "c"},
			"image.bytes": {"null", "\x01\x01", "\x02\x02\x02", "null", "null", "\x05\x05\x05\x05\x05\x05", "null", "\a\a\a\a\a\a\a\a"},
			"image.path":  {"null", "1.jpg", "null", "3.jpg", "null", "5.jpg", "null", "7.jpg"},
		} {
			got, err := all(f, columnOf(f, column))
			if encoding := deltas[column]; name == "delta" && encoding != "" {
				if text := fmt.Sprint(err); !strings.HasPrefix(text, "column "+column+": row 0: page at offset ") ||
					!strings.HasSuffix(text, "values must be plain or in a dictionary, got "+encoding) {
					t.Errorf("%s: column %s: %v", name, column, err)
				}
				continue
			}
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: column %s has %q, %v, want %q", name, column, got, err, want)
			}
		}
	}
}

func TestTypes(t *testing.T) {
	for _, test := range []struct {
		e    element
		want Type
	}{
		{element{physical: 0, converted: -1, logical: -1}, "boolean"},
		{element{physical: 1, converted: -1, logical: -1}, Integer},
		{element{physical: 1, converted: 11, logical: 10}, Integer},
		{element{physical: 1, converted: 6, logical: 6}, "integer with a meaning, such as a date"},
		{element{physical: 2, converted: -1, logical: 8}, "integer with a meaning, such as a date"},
		{element{physical: 5, converted: -1, logical: -1}, "floating point"},
		{element{physical: 6, converted: -1, logical: -1}, Bytes},
		{element{physical: 6, converted: 0, logical: -1}, Text},
		{element{physical: 6, converted: -1, logical: 1}, Text},
		{element{physical: 6, converted: 5, logical: 5}, "bytes with a meaning, such as a date"},
		{element{physical: 7, converted: -1, logical: -1}, "bytes of fixed length"},
		{element{physical: 9, converted: -1, logical: -1}, "unknown type 9"},
	} {
		if got := test.e.describe(); got != test.want {
			t.Errorf("%+v is %s, want %s", test.e, got, test.want)
		}
	}
}

// hostile are files that must be errors.
func hostile() map[string][]byte {
	columns, _ := sample()
	good := parquettest.Write(parquettest.Options{Codec: parquettest.Zstd}, columns[:1]...)
	footer := func(content ...byte) []byte {
		file := append([]byte(Magic), content...)
		return append(binary.LittleEndian.AppendUint32(file, uint32(len(content))), Magic...)
	}
	// chunkOf is a file with a column of rows integers in one page.
	chunkOf := func(rows int, codec byte, header, page []byte) []byte {
		file := slices.Concat([]byte(Magic), header, page)
		size := binary.AppendVarint(nil, int64(len(header)+len(page)))
		n := binary.AppendVarint(nil, int64(rows))
		// A schema of the root and a required column of 64-bit integers; a row group.
		content := slices.Concat([]byte{0x29, 0x2c, 0x48, 1, 'r', 0x15, 2, 0, 0x15, 4, 0x25, 0, 0x18, 1, 'a', 0, 0x16}, n,
			[]byte{0x19, 0x1c, 0x19, 0x1c, 0x3c, 0x45, 2 * codec, 0x36}, size, []byte{0x26, 8, 0, 0, 0x26}, n, []byte{0, 0})
		file = append(file, content...)
		return append(binary.LittleEndian.AppendUint32(file, uint32(len(content))), Magic...)
	}
	// page is the header of a page of version 1 with plain values.
	page := func(values, unpacked, packed int) []byte {
		header := slices.Concat([]byte{0x15, 0, 0x15}, binary.AppendVarint(nil, int64(unpacked)), []byte{0x15}, binary.AppendVarint(nil, int64(packed)))
		return slices.Concat(header, []byte{0x2c, 0x15}, binary.AppendVarint(nil, int64(values)), []byte{0x15, 0, 0x15, 6, 0, 0})
	}
	bomb := func(pack func(w io.Writer) io.WriteCloser) []byte {
		var packed bytes.Buffer
		w := pack(&packed)
		w.Write(make([]byte, 1<<26))
		w.Close()
		return packed.Bytes()
	}
	deep := slices.Concat([]byte{0x29, 0xfc}, binary.AppendUvarint(nil, 1000), bytes.Repeat([]byte{0x55, 2, 0}, 1000), []byte{0})
	schema, root := []byte{0x29, 0xfc}, []byte{0x29, 0x1c, 0x48, 1, 'r'}
	gzipped := bomb(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) })
	zstded := bomb(func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z })
	// Three row groups of the same page, which has most of the file.
	overlap := chunkOf(1, 0, page(1, 1000, 1000), make([]byte, 1000))
	at := bytes.LastIndex(overlap, []byte{0x29, 0x2c, 0x48})
	file, content := overlap[:at], slices.Clone(overlap[at:len(overlap)-8])
	content = bytes.Replace(content, []byte{0x16, 2, 0x19, 0x1c}, []byte{0x16, 6, 0x19, 0x3c}, 1)
	group := content[bytes.LastIndex(content, []byte{0x19, 0x1c, 0x3c}) : len(content)-1]
	content = slices.Concat(content[:len(content)-1], group, group, []byte{0})
	overlap = append(binary.LittleEndian.AppendUint32(slices.Concat(file, content), uint32(len(content))), Magic...)
	return map[string][]byte{
		"row 2: page at offset 4: the pages of a column must have at most": overlap,
		"must begin with PAR1, got 0 bytes":                                nil,
		`must begin with PAR1, got "PAR2"`:                                 []byte("PAR2xxxxPAR1"),
		"must not be encrypted":                                            []byte("PARExxxxPARE"),
		"must end with PAR1, got 9 bytes":                                  []byte("PAR1xPAR1"),
		`got "Gzip"`:                                                       append(slices.Clone(good), "Gzip"...),
		"metadata must be within the file, got 16777216 of 12 bytes":       []byte("PAR1\x00\x00\x00\x01PAR1"),
		"metadata at offset 4: must have a schema":                         footer(0),
		"metadata at offset 4: unexpected EOF":                             footer(0x15, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 7), // 2147483647 elements
		"structs must be at most 32 deep":                                  footer(bytes.Repeat([]byte{0x1c}, 1<<20)...),
		"lists must be at most 32 deep":                                    footer(slices.Concat([]byte{0x79}, bytes.Repeat([]byte{0x19}, 1<<20))...),
		"the schema must be at most 32 deep":                               footer(deep...),
		`the schema must have 1000000000 fields of "r", got 0`:             footer(slices.Concat(root, []byte{0x15}, binary.AppendVarint(nil, 1e9), []byte{0, 0})...),
		"the schema must have at most 65536 elements":                      footer(slices.Concat(schema, binary.AppendUvarint(nil, 70000), make([]byte, 70001))...),
		"a column of a row group must have an offset":                      footer(0x29, 0x1c, 0x48, 1, 'r', 0, 0x29, 0x1c, 0x19, 0x1c, 0, 0, 0),
		"must have no more rows than bytes, got 1000000 in row group 0":    chunkOf(1e6, 0, page(1e6, 8, 8), make([]byte, 8)),
		"must have at most the 1 values that are left of the row group":    chunkOf(1, 0, page(2, 16, 16), make([]byte, 16)),
		"the column must have 2 more rows in its row group":                chunkOf(3, 0, page(1, 8, 8), make([]byte, 8)),
		"the value must be within its page":                                chunkOf(3, 0, page(3, 8, 8), make([]byte, 8)),
		"a page must have at most the 8 bytes that are left of its":        chunkOf(1, 0, page(1, 8, 800), make([]byte, 8)),
		"a page must have at most 2147483647 bytes, got 8, and -1":         chunkOf(1, 0, page(1, -1, 8), make([]byte, 8)),
		"the page must unpack to 16 bytes, got 8":                          chunkOf(1, 0, page(1, 16, 8), make([]byte, 8)),
		"compression must be none, Snappy, gzip or zstd, got Brotli":       chunkOf(1, 4, page(1, 8, 8), make([]byte, 8)),
		"compression must be none, Snappy, gzip or zstd, got an unknown":   chunkOf(1, 40, page(1, 8, 8), make([]byte, 8)),
		" bytes of pages must unpack to at most ":                          chunkOf(1, 6, page(1, 2e9, 8), make([]byte, 8)),
		"the page is damaged: ":                                            chunkOf(1, 6, page(1, 8, 8), make([]byte, 8)),
		"the page must unpack to 8 bytes, got 9":                           chunkOf(1, 2, page(1, 8, len(gzipped)), gzipped),
		"page at offset 4: the page is damaged: decompressed size exceeds": chunkOf(1, 6, page(1, 8, len(zstded)), zstded),
	}
}

func TestHostile(t *testing.T) {
	for want, content := range hostile() {
		used := testenv.Allocated(func() {
			if err := readAll(content); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %q", err, want)
			}
		})
		if most := maxAllocated(content); used > most {
			t.Errorf("%s: %d bytes were allocated for %d", want, used, len(content))
		}
	}
}

// A file that is cut off, or has a wrong bit, is an error or has other values.
func TestDamaged(t *testing.T) {
	columns, _ := sample()
	for _, o := range []parquettest.Options{{Codec: parquettest.Snappy, Dictionary: true}, {Codec: parquettest.Zstd, Version2: true, GroupRows: 10}} {
		content := parquettest.Write(o, columns...)
		if err := readAll(content); err != nil {
			t.Fatal(err)
		}
		for n := range content {
			if err := readAll(content[:n]); err == nil {
				t.Errorf("%d of %d bytes are read without an error", n, len(content))
			}
			changed := slices.Clone(content)
			changed[n] ^= 1 << (n % 8)
			_ = readAll(changed) // which must not panic
		}
	}
}

func TestChecksum(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("testdata", "pyarrow2.parquet"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := open(content)
	if err != nil {
		t.Fatal(err)
	}
	chunk := f.groups[0].chunks[2]
	content[chunk.dataOffset+chunk.size-1] ^= 1
	if _, err := all(f, columnOf(f, "label")); err == nil || !strings.Contains(err.Error(), "the page is damaged: its checksum differs") {
		t.Errorf("error %v", err)
	}
}

// readAll reads all columns that can be read, and returns the first error.
func readAll(content []byte) error {
	f, err := open(content)
	if err != nil {
		return err
	}
	var read func(columns []Column) error
	read = func(columns []Column) error {
		for _, c := range columns {
			if err := read(c.Fields); err != nil {
				return err
			}
			values, err := f.Values(c)
			for err == nil {
				_, err = values.Next()
			}
			if values != nil && err != io.EOF {
				return err
			}
		}
		return nil
	}
	return read(f.Columns)
}

// maxAllocated returns a bound of the bytes that reading content may allocate: each column may grow
// by the same factor.
func maxAllocated(content []byte) uint64 { return 64<<20 + 20*growth*uint64(len(content)) }

func FuzzValues(f *testing.F) {
	columns, _ := sample()
	for _, o := range []parquettest.Options{
		{}, {Codec: parquettest.Snappy, Dictionary: true}, {Codec: parquettest.Gzip, Version2: true, GroupRows: 10}, {Codec: parquettest.Zstd},
	} {
		f.Add(parquettest.Write(o, columns[:2]...))
	}
	for _, content := range hostile() {
		if len(content) < 1<<12 {
			f.Add(content)
		}
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		if used := testenv.Allocated(func() { _ = readAll(content) }); used > maxAllocated(content) { // an error is as good
			t.Fatalf("%d bytes were allocated for %d", used, len(content))
		}
	})
}
