package cuda

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/cuda/kernels"
	"github.com/pollen-ml/pollen/tensor"
)

// TestRowsParameter compares the bytes of two rows with those written by hand.
func TestRowsParameter(t *testing.T) {
	x := tensor.NewBuffer("x", tensor.Chain, tensor.Float32, 4)
	row := func(n int) []tensor.Argument {
		return []tensor.Argument{tensor.Int(n), tensor.In(x), tensor.Int(n + 1), tensor.Float(tensor.Float64, 1), tensor.Float(tensor.Float32, 2)}
	}
	c := plan.Call{Symbol: "k_f32", Threads: 32, Arguments: slices.Concat(row(5), row(7)), RowEnds: []int{3, 4}}
	got := rowsParameter(c, func(a tensor.Argument) (low, high uint64) {
		if a.Buffer != nil {
			return 0x1234, 0x5678
		}
		return a.Bits, 0
	})
	words := []uint32{3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4}
	for _, n := range []uint32{5, 7} {
		words = append(words, n, 0, 0x1234, 0, 0x5678, 0, n+1, 0, 0, 0x3ff00000, 0x40000000, 0)
	}
	words = append(words, make([]uint32, 10*12)...)
	var want []byte
	for _, w := range words {
		want = binary.NativeEndian.AppendUint32(want, w)
	}
	if !slices.Equal(got, want) {
		t.Errorf("rows are\n%x\nwant\n%x", got, want)
	}
	e := kernels.Entry{Name: "k_f32", Threads: 32, Row: 48}
	if err := checkSignature(e, c); err != nil {
		t.Error(err)
	}
	many := c
	many.Arguments, many.RowEnds = slices.Repeat(row(1), kernels.MaxRows+1), make([]int, kernels.MaxRows+1)
	for want, refused := range map[string]func() error{
		"a row of k_f32 must have 56 bytes": func() error { e := e; e.Row = 56; return checkSignature(e, c) },
		"(of 0 bytes, 0 if it takes none)":  func() error { e := e; e.Row = 0; return checkSignature(e, c) },
		"0 if it takes none), got 0":        func() error { c := c; c.RowEnds = nil; return checkSignature(e, c) },
		"0 if it takes none), got 13":       func() error { return checkSignature(e, many) },
	} {
		if err := refused(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
