package npz

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/tensor"
)

// Array is a named array of an archive, in row-major order.
type Array struct {
	Name  string
	Shape []int
	// Values is a slice of float32, float64, uint8, int32, int64, bool or string. NumPy stores
	// strings as code points, all as long as the longest, and drops zeros at their ends.
	Values any
}

// Write writes an archive of arrays to path, in version 1.0 of NumPy's format. The file is written
// whole or not at all.
func Write(path string, arrays ...Array) error {
	pending, err := file.Create(path)
	if err != nil {
		return errors.Wrap(err, "npz")
	}
	defer pending.Close()
	archive := zip.NewWriter(pending)
	for _, array := range arrays {
		if err := array.write(archive); err != nil {
			return errors.Wrapf(err, "npz: %s: %s", path, array.Name)
		}
	}
	if err := archive.Close(); err != nil {
		return errors.Wrap(err, "npz")
	}
	return errors.Wrap(pending.Commit(), "npz")
}

func (a Array) write(archive *zip.Writer) error {
	to, err := archive.Create(a.Name + ".npy")
	if err != nil {
		return err
	}
	return WriteNPY(to, a)
}

// WriteNPY writes one array as a .npy file of version 1.0, which has no place for the array's name.
func WriteNPY(to io.Writer, a Array) error {
	kind, values, count, err := a.bytes()
	if err != nil {
		return err
	}
	elements := 1
	var extents []string
	for _, n := range a.Shape {
		elements *= n
		extents = append(extents, strconv.Itoa(n))
	}
	shape := strings.Join(extents, ", ")
	if len(extents) == 1 {
		shape += "," // a tuple of one element, in Python
	}
	if elements != count {
		return errors.Errorf("Values must have the %d elements of shape %v, got %d", elements, a.Shape, count)
	}
	const magic, alignment = "\x93NUMPY\x01\x00", 64
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", kind, shape)
	for (len(magic)+2+len(header)+1)%alignment != 0 { // the format pads the header so that data are aligned
		header += " "
	}
	header += "\n"
	if _, err := io.WriteString(to, magic+string([]byte{byte(len(header)), byte(len(header) >> 8)})+header); err != nil {
		return err
	}
	_, err = to.Write(values)
	return err
}

// bytes returns NumPy's name for the type of the values, their bytes and their number.
func (a Array) bytes() (kind string, values []byte, count int, err error) {
	switch v := a.Values.(type) {
	case []float32:
		return "<f4", tensor.Bytes(v), len(v), nil
	case []float64:
		return "<f8", tensor.Bytes(v), len(v), nil
	case []uint8:
		return "|u1", v, len(v), nil
	case []int32:
		return "<i4", tensor.Bytes(v), len(v), nil
	case []int64:
		for _, x := range v {
			values = binary.LittleEndian.AppendUint64(values, uint64(x))
		}
		return "<i8", values, len(v), nil
	case []bool:
		for _, x := range v {
			values = append(values, map[bool]byte{true: 1}[x])
		}
		return "|b1", values, len(v), nil
	case []string:
		dtype, content := CodePoints(v)
		return dtype, content, len(v), nil
	}
	return "", nil, 0, errors.Errorf("Values must be a slice of float32, float64, uint8, int32, int64, bool or string, got %T", a.Values)
}

// CodePoints encodes strings as the type U of NumPy and Zarr: code points of 4 bytes, all strings
// as long as the longest.
func CodePoints(texts []string) (dtype string, content []byte) {
	longest := 1
	for _, s := range texts {
		longest = max(longest, utf8.RuneCountInString(s))
	}
	for _, s := range texts {
		for _, r := range s {
			content = binary.LittleEndian.AppendUint32(content, uint32(r))
		}
		content = append(content, make([]byte, 4*(longest-utf8.RuneCountInString(s)))...)
	}
	return "<U" + strconv.Itoa(longest), content
}
