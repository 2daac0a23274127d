package npz

import (
	"archive/zip"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/tensor"
)

// Array is a named array of an archive, in row-major order.
type Array struct {
	Name   string
	Shape  []int
	Values any // []float32 or []float64
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
	var kind string
	var values []byte
	count := 0
	switch v := a.Values.(type) {
	case []float32:
		kind, values, count = "<f4", tensor.Bytes(v), len(v)
	case []float64:
		kind, values, count = "<f8", tensor.Bytes(v), len(v)
	default:
		return errors.Errorf("Values must be []float32 or []float64, got %T", v)
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
	_, err := to.Write(values)
	return err
}
