package samples

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// file assembles a safetensors file.
func file(header string, values int) []byte {
	content := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(content, header...), make([]byte, values)...)
}

const goodMetadata = `"__metadata__":{"chain":"0","step":"1","weight":"1"}`

// hostileFiles are handmade files, by what is wrong with them.
var hostileFiles = map[string][]byte{
	"empty":               {},
	"a header's length":   binary.LittleEndian.AppendUint64(nil, 0),
	"a header of 2^64-1":  binary.LittleEndian.AppendUint64(nil, 1<<64-1),
	"a header of 2^64-8":  binary.LittleEndian.AppendUint64(nil, 1<<64-8),
	"a header of 90 MB":   append(binary.LittleEndian.AppendUint64(nil, 90e6), "{}"...),
	"null":                file("null", 0),
	"a list":              file("[]", 0),
	"no tensors":          file(`{`+goodMetadata+`}`, 0),
	"no metadata":         file(`{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4),
	"metadata is a list":  file(`{"__metadata__":[],"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4),
	"chain is not whole":  file(`{"__metadata__":{"chain":"0.5","step":"1","weight":"1"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4),
	"weight is NaN":       file(`{"__metadata__":{"chain":"0","step":"1","weight":"NaN"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4),
	"weight is infinite":  file(`{"__metadata__":{"chain":"0","step":"1","weight":"Inf"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4),
	"step is negative":    file(`{"__metadata__":{"chain":"0","step":"-1","weight":"1"},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4),
	"float64":             file(`{`+goodMetadata+`,"w":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}}`, 8),
	"int32":               file(`{`+goodMetadata+`,"w":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}}`, 4),
	"no type":             file(`{`+goodMetadata+`,"w":{"shape":[9999999],"data_offsets":[0,0]}}`, 0),
	"an unknown type":     file(`{`+goodMetadata+`,"w":{"dtype":"F4","shape":[1],"data_offsets":[0,4]}}`, 4),
	"a huge shape":        file(`{`+goodMetadata+`,"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}}`, 4),
	"a shape of 2^62":     file(`{`+goodMetadata+`,"w":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}}`, 0),
	"a shape of 2^63":     file(`{`+goodMetadata+`,"w":{"dtype":"F32","shape":[9223372036854775808,0],"data_offsets":[0,0]}}`, 0),
	"an extent of 0":      file(`{`+goodMetadata+`,"w":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, 0),
	"a negative extent":   file(`{`+goodMetadata+`,"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}`, 4),
	"offsets beyond":      file(`{`+goodMetadata+`,"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`, 4),
	"offsets turned":      file(`{`+goodMetadata+`,"w":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}}`, 4),
	"offsets of 2^64-4":   file(`{`+goodMetadata+`,"w":{"dtype":"F32","shape":[1],"data_offsets":[18446744073709551612,0]}}`, 4),
	"a hole":              file(`{`+goodMetadata+`,"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8),
	"an overlap":          file(`{`+goodMetadata+`,"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"v":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8),
	"values left over":    file(`{`+goodMetadata+`,"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 8),
	"a NaN":               append(file(`{`+goodMetadata+`,"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 0), 0, 0, 0xc0, 0x7f),
	"nested without end":  file(`{"w":`+strings.Repeat(`[`, 20000), 0),
	"not a header at all": file("\x00\x01\x02", 4),
}

func TestReadSampleHostile(t *testing.T) {
	for name, content := range hostileFiles {
		var err error
		allocated := testenv.Allocated(func() { _, _, err = parseSample(content) })
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if limit := allocationLimit(content); allocated > limit {
			t.Errorf("%s: %d bytes were allocated for a file of %d, at most %d expected", name, allocated, len(content), limit)
		}
	}
}

// allocationLimit bounds the bytes allocated to read a file: its header's text becomes slices and
// maps several times its length.
func allocationLimit(content []byte) uint64 { return 1<<20 + 64*uint64(len(content)) }

func FuzzReadSample(f *testing.F) {
	whole := fileOf(f, aSample(3, 40))
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	for _, content := range hostileFiles {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		var s Sample
		var err error
		if allocated := testenv.Allocated(func() { s, err = sampleOf(content) }); allocated > allocationLimit(content) {
			t.Fatalf("%d bytes were allocated for a file of %d", allocated, len(content))
		}
		if err != nil {
			return
		}
		values := 0
		for _, p := range s.Parameters {
			values += len(p.Values)
		}
		if 4*values > len(content) {
			t.Fatalf("%d values out of %d bytes", values, len(content))
		}
		again, _, err := parseSample(fileOf(t, s))
		if err != nil {
			t.Fatalf("what was read cannot be written and read again: %v", err)
		}
		if !reflect.DeepEqual(again, s) {
			t.Fatalf("read %+v, after writing %+v", s, again)
		}
	})
}
