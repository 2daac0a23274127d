package export

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/npz"
	"github.com/pollen-ml/pollen/tensor"
)

// zarr writes a hierarchy of arrays in version 2 of the Zarr format, uncompressed, with the names
// of axes that xarray reads, and consolidated metadata. Source:
// https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html
type zarr struct {
	dir      string
	metadata map[string]any // of all groups and arrays, by their files
	err      error          // the first one
}

// group adds a group with attributes; "" is the root.
func (z *zarr) group(name string, attributes map[string]any) {
	z.put(filepath.Join(name, ".zgroup"), map[string]any{"zarr_format": 2})
	z.put(filepath.Join(name, ".zattrs"), attributes)
}

// put writes a file of metadata.
func (z *zarr) put(name string, value any) {
	content, err := json.MarshalIndent(value, "", "  ")
	if err != nil && z.err == nil {
		z.err = errors.Wrap(err, "export: zarr")
	}
	z.write(name, content)
	if z.metadata == nil {
		z.metadata = map[string]any{}
	}
	z.metadata[filepath.ToSlash(name)] = value
}

func (z *zarr) write(name string, content []byte) {
	if z.err != nil {
		return
	}
	path := filepath.Join(z.dir, name)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, content, 0o644)
	}
	z.err = errors.Wrap(err, "export: zarr")
}

// array declares an array in a group: its axes, its shape, and the shape of the chunks in which
// it is written. Every chunk is written, so there is no fill value.
func (z *zarr) array(group, name, dtype string, axes []string, shape, chunk []int) {
	at := filepath.Join(group, name)
	z.put(filepath.Join(at, ".zarray"), map[string]any{
		"zarr_format": 2, "shape": shape, "chunks": chunk, "dtype": dtype, "compressor": nil, "fill_value": nil, "order": "C", "filters": nil,
	})
	z.put(filepath.Join(at, ".zattrs"), map[string]any{"_ARRAY_DIMENSIONS": axes})
}

// chunk writes a chunk of an array.
func (z *zarr) chunk(group, name string, place []int, content []byte) {
	z.write(filepath.Join(group, name, strings.ReplaceAll(strings.Trim(fmt.Sprint(place), "[]"), " ", ".")), content)
}

// whole writes an array in one chunk. values is a slice of float64, float32, int64, bool or string.
func (z *zarr) whole(group, name string, axes []string, shape []int, values any) {
	var dtype string
	var content []byte
	switch v := values.(type) {
	case []float64:
		dtype, content = "<f8", tensor.Bytes(v)
	case []float32:
		dtype, content = "<f4", tensor.Bytes(v)
	case []int64:
		dtype = "<i8"
		for _, x := range v {
			content = binary.LittleEndian.AppendUint64(content, uint64(x))
		}
	case []bool:
		dtype, content = "|b1", make([]byte, len(v))
		for i, yes := range v {
			if yes {
				content[i] = 1
			}
		}
	case []string:
		dtype, content = npz.CodePoints(v)
	default:
		panic(fmt.Sprintf("export: zarr: values of type %T", values))
	}
	z.array(group, name, dtype, axes, shape, shape)
	z.chunk(group, name, make([]int, len(shape)), content)
}

// coordinates writes the n coordinates of an axis, by which ArviZ's plots select elements.
func (z *zarr) coordinates(group, axis string, n int, values any) {
	z.whole(group, axis, []string{axis}, []int{n}, values)
}

// close writes the consolidated metadata.
func (z *zarr) close() error {
	z.put(".zmetadata", map[string]any{"zarr_consolidated_format": 1, "metadata": maps.Clone(z.metadata)})
	return z.err
}

// numbers returns 0 to n-1, the coordinates of an axis.
func numbers(n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i)
	}
	return all
}

// logarithm returns log p, with the smallest float32 instead of a probability of 0, which a softmax
// in float32 can give.
func logarithm(p float32) float64 {
	return math.Log(math.Max(float64(p), math.SmallestNonzeroFloat32))
}
