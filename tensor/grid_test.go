package tensor_test

import (
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

func TestGridStrings(t *testing.T) {
	for want, grid := range map[string]tensor.Grid{
		"7 threads":         tensor.Threads(7),
		"2 threads":         tensor.Vec4(5),
		"96 threads":        tensor.Warps(3),
		"1 blocks of 40":    tensor.Block(40),
		"3x2 blocks of 256": tensor.Blocks{Count: 3, Parts: 2, Threads: 256},
		"100 shares of 196": tensor.Shares{Items: 100, MaxItems: 32, Threads: 196},
		"product 64x32x25":  tensor.Product{Rows: 64, Columns: 32, Depth: 25},
	} {
		if got := grid.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestWithBuffers: only the copy has the other buffers, and workspace is not replaced.
func TestWithBuffers(t *testing.T) {
	x, moved := tensor.NewBuffer("x", tensor.Chain, tensor.Float32, 4), tensor.NewBuffer("moved", tensor.Chain, tensor.Float32, 4)
	w := tensor.NewWorkspace(tensor.Float32, 4)
	l := tensor.Launch{
		Arguments: []tensor.Argument{tensor.InOut(x), tensor.Int(3)},
		Calls:     []tensor.Call{{Kernel: "a", Grid: tensor.Threads(4), Arguments: []tensor.Argument{tensor.Out(w), tensor.In(x), tensor.Int(3)}}},
	}
	got := l.WithBuffers(func(b *tensor.Buffer) *tensor.Buffer {
		if b != x {
			t.Errorf("asks for another %v", b)
		}
		return moved
	})
	if a := got.Arguments; a[0] != tensor.InOut(moved) || a[1] != tensor.Int(3) {
		t.Errorf("the arguments are %v", a)
	}
	if a := got.Calls[0].Arguments; a[0] != tensor.Out(w) || a[1] != tensor.In(moved) || a[2] != tensor.Int(3) {
		t.Errorf("the call's arguments are %v", a)
	}
	if l.Arguments[0].Buffer != x || l.Calls[0].Arguments[1].Buffer != x {
		t.Error("the launch itself has changed")
	}
}
