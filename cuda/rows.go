package cuda

import (
	"encoding/binary"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// appendRow appends arguments as the kernel's parameter has them: each at a multiple of its size, a
// buffer at one of 8 bytes.
func appendRow(to []byte, arguments []tensor.Argument, value func(tensor.Argument) (low, high uint64)) []byte {
	for _, a := range arguments {
		low, high := value(a)
		if p := kernels.ParameterOf(a); p == kernels.Integer || p == kernels.Float32 {
			to = binary.NativeEndian.AppendUint32(to, uint32(low))
			continue
		}
		to = binary.NativeEndian.AppendUint64(aligned(to), low)
		if a.Buffer != nil {
			to = binary.NativeEndian.AppendUint64(to, high)
		}
	}
	return aligned(to)
}

func aligned(bytes []byte) []byte { return append(bytes, make([]byte, -len(bytes)&7)...) }

// fits refuses rows that are not the kernel's.
func checkRows(e kernels.Entry, c plan.Call) error {
	if (c.RowEnds == nil) != (e.Row == 0) || len(c.RowEnds) > kernels.MaxRows {
		return errors.Errorf("cuda: %s takes at most %d rows if any, a row being %d bytes; the launch has %d", e.Name, kernels.MaxRows, e.Row, len(c.RowEnds))
	}
	if c.RowEnds == nil {
		return nil
	}
	for _, row := range c.Rows() {
		got := len(appendRow(nil, row, func(tensor.Argument) (low, high uint64) { return }))
		if got != e.Row {
			return errors.Errorf("cuda: a row of %s has %d bytes, the launch's arguments %d", e.Name, e.Row, got)
		}
	}
	return nil
}

// rowsParameter is the parameter of a kernel that takes rows.
func rowsParameter(c plan.Call, value func(tensor.Argument) (low, high uint64)) []byte {
	var ends, rows []byte
	for i := range kernels.MaxRows {
		ends = binary.NativeEndian.AppendUint32(ends, uint32(c.RowEnds[min(i, len(c.RowEnds)-1)]))
	}
	for _, row := range c.Rows() {
		rows = appendRow(rows, row, value)
	}
	missing := (kernels.MaxRows - len(c.RowEnds)) * (len(rows) / len(c.RowEnds))
	return append(append(ends, rows...), make([]byte, missing)...)
}
