package plan

import (
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// TestGrids checks the blocks and threads of each kind of grid, on GPUs of 4 and of 132
// multiprocessors, for one chain and for many.
func TestGrids(t *testing.T) {
	for _, test := range []struct {
		grid            tensor.Grid
		chains          int
		multiprocessors int
		blocks          [2]int
		threads         int
	}{
		{tensor.Threads(1), 1, 4, [2]int{1, 1}, 256},
		{tensor.Threads(257), 1, 4, [2]int{2, 1}, 256},
		{tensor.Threads(1 << 20), 1, 4, [2]int{32, 1}, 256},
		{tensor.Threads(1 << 20), 1, 132, [2]int{1056, 1}, 256},
		{tensor.Vec4(1025), 1, 4, [2]int{2, 1}, 256},
		{tensor.Warps(9), 1, 4, [2]int{2, 1}, 256},
		{tensor.Block(0), 1, 4, [2]int{1, 1}, 32},
		{tensor.Block(33), 1, 4, [2]int{1, 1}, 64},
		{tensor.Blocks{Count: 5000, Threads: 512}, 1, 4, [2]int{5000, 1}, 512},
		{tensor.Blocks{Count: 3, Parts: 7, Threads: 256}, 9, 132, [2]int{3, 7}, 256},
		{tensor.Shares{Items: 100, MaxItems: 32, Threads: 196}, 1, 132, [2]int{100, 1}, 224},
		{tensor.Shares{Items: 100, MaxItems: 32, Threads: 196}, 2, 4, [2]int{34, 1}, 224},
		{tensor.Shares{Items: 100, MaxItems: 32, Threads: 196}, 64, 4, [2]int{4, 1}, 224},
	} {
		p := &planner{Target: Target{Multiprocessors: test.multiprocessors, Chains: test.chains}}
		calls := p.lowerCall(tensor.Call{Kernel: "k_f32", Grid: test.grid})
		if len(calls) != 1 || calls[0].Blocks != test.blocks || calls[0].Threads != test.threads || calls[0].Symbol != "k_f32" {
			t.Errorf("%v, %d chains on %d multiprocessors: %+v, want %v blocks of %d threads",
				test.grid, test.chains, test.multiprocessors, calls, test.blocks, test.threads)
		}
	}
}

// TestWorkspace: calls that share a workspace buffer get the same memory, and different buffers get
// different memory.
func TestWorkspace(t *testing.T) {
	one, other := tensor.NewWorkspace(tensor.Float64, 3), tensor.NewWorkspace(tensor.Float32, 5)
	l := &tensor.Launch{Calls: []tensor.Call{
		{Kernel: "a_f32", Grid: tensor.Block(1), Arguments: []tensor.Argument{tensor.Out(one), tensor.Out(other)}},
		{Kernel: "b_f32", Grid: tensor.Block(1), Arguments: []tensor.Argument{tensor.In(other), tensor.In(one)}},
	}}
	p := &planner{Target: Target{Multiprocessors: 4, Chains: 1}, base: 128}
	calls := lower(p, l)
	a, b := calls[0].Arguments, calls[1].Arguments
	if a[0].Buffer != b[1].Buffer || a[1].Buffer != b[0].Buffer || a[0].Buffer == a[1].Buffer {
		t.Errorf("the calls have arguments %v and %v", a, b)
	}
	if first, second := a[0].Buffer, a[1].Buffer; first.Offset != 128 || second.Offset != 192 || first.Arena != tensor.Scratch || p.workspace != 128 {
		t.Errorf("got %v and %v, %d bytes", first, second, p.workspace)
	}
	if one.Offset != -1 || l.Calls[0].Arguments[0].Buffer != one {
		t.Error("the launch itself has changed")
	}
}
