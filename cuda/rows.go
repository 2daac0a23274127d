package cuda

import (
	"encoding/binary"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// appendRow appends a row of arguments in the layout of the kernel's struct: each value aligned to
// its size, and a buffer as two words of 8 bytes, its address and its stride.
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

// checkRows returns an error if the call's rows do not match the kernel's rows in number or size.
func checkRows(e kernels.Entry, c plan.Call) error {
	if (c.RowEnds == nil) != (e.Row == 0) || len(c.RowEnds) > kernels.MaxRows {
		return errors.Errorf("cuda: %s takes at most %d rows (of %d bytes, 0 if it takes none), got %d", e.Name, kernels.MaxRows, e.Row, len(c.RowEnds))
	}
	if c.RowEnds == nil {
		return nil
	}
	for _, row := range c.Rows() {
		got := len(appendRow(nil, row, func(tensor.Argument) (low, high uint64) { return }))
		if got != e.Row {
			return errors.Errorf("cuda: a row of %s must have %d bytes, got %d", e.Name, e.Row, got)
		}
	}
	return nil
}

// rowsParameter returns the only parameter of a kernel that takes rows (kernels/rows.cuh): MaxRows
// ends, then MaxRows rows. Unused ends repeat the last one, so that no block belongs to an unused
// row.
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
