package graph_test

import (
	"fmt"
	"sync"
	"testing"

	"gorgonia.org/gorgonia"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/tensor"
)

// Gorgonia takes nodes of equal hash for one node. These tests hold each merge that it is known to make against our Builder.

// In Gorgonia two Gaussian nodes of one shape are one: their difference is 0.
func TestRandomNodesStayTwo(t *testing.T) {
	b := graph.New(tensor.Float64)
	x := b.State("x", nil, 31)
	names := []string{"stream 1", "stream 1 again", "stream 2"}
	for i, stream := range []uint16{1, 1, 2} {
		b.Output(names[i], b.Apply(noise{stream}, x, b.Header()))
	}
	s := load(t, b, newHost(t, 1), graph.LoadOptions{Seed: 5})
	if n := count(kernels(s.Program()), "noise_fwd"); n != 3 {
		t.Errorf("%d of 3 equal nodes are left", n)
	}
	must(t, s.Run(1))
	first := read(t, s, names[0], 0, 31)
	sameBits(t, "the same stream", read(t, s, names[1], 0, 31), first)
	for i, v := range read(t, s, names[2], 0, 31) {
		if v == first[i] {
			t.Errorf("element %d of streams 1 and 2 is %v", i, v)
		}
	}
}

// In Gorgonia im2col ops that differ in dilation alone have one hash.
func TestDilationsStayTwo(t *testing.T) {
	b := graph.New(tensor.Float64)
	x, w := b.State("x", normal(1), 2, 3, 8, 8), b.State("w", normal(1), 4, 3, 3, 3)
	want := map[string]optest.Case{}
	for dilation := 1; dilation <= 2; dilation++ {
		conv := op.Conv2D{Stride: op.Square(1), Padding: op.Square(dilation), Dilation: op.Square(dilation)}
		name := fmt.Sprint("dilation ", dilation)
		b.Output(name, b.Apply(conv, x, w))
		for _, c := range optest.Cases() {
			if c.Op == graph.Op(conv) {
				want[name] = c // the conformance suite has the op alone
			}
		}
	}
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, s.Run(1))
	one, two := read(t, s, "dilation 1", 0, 512), read(t, s, "dilation 2", 0, 512)
	if optest.Close(one, two, optest.Tol{Rel: 0.5}) == nil {
		t.Error("both dilations computed the same")
	}
	for dilation, got := range [][]float64{one, two} {
		alone := graph.New(tensor.Float64)
		x, w := alone.State("x", nil, 2, 3, 8, 8), alone.State("w", nil, 4, 3, 3, 3)
		conv := op.Conv2D{Stride: op.Square(1), Padding: op.Square(dilation + 1), Dilation: op.Square(dilation + 1)}
		alone.Output("y", alone.Apply(conv, x, w))
		a := load(t, alone, newHost(t, 1), graph.LoadOptions{})
		must(t, graph.Write(a, "x", 0, 0, read(t, s, "x", 0, 384)))
		must(t, graph.Write(a, "w", 0, 0, read(t, s, "w", 0, 108)))
		must(t, a.Run(1))
		sameBits(t, fmt.Sprint("dilation ", dilation+1), got, read(t, a, "y", 0, 512))
	}
}
