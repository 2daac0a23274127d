package graph_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	_ "github.com/pollen-ml/pollen/internal/fixedseed"
	"github.com/pollen-ml/pollen/tensor"
)

// side is the extent of the square matrices in random graphs.
const side = 5

// randomGraph builds a graph of random ops over square matrices of probabilities, with updates,
// outputs and metrics of random nodes, and returns what to compare.
func randomGraph(t *rapid.T) (*graph.Builder, map[string]*graph.Node) {
	b := graph.New(tensor.Float64)
	nodes := []*graph.Node{b.Parameter("w0", normal(1), side, side), b.Parameter("w1", normal(1), side, side)}
	bias := b.Parameter("bias", normal(1), side)
	any := func(label string) *graph.Node { return rapid.SampledFrom(nodes).Draw(t, label) }
	for i := range rapid.IntRange(1, 14).Draw(t, "ops") {
		x := any("x")
		switch rapid.IntRange(0, 5).Draw(t, "op") {
		case 0:
			x = b.Apply(op.ReLU{}, x)
		case 1:
			x = b.Apply(op.BiasAdd{}, x, bias)
		case 2:
			x = b.Apply(op.Softmax{}, b.Apply(op.MatMul{TransposeB: i%2 == 0}, x, any("y")))
		case 3:
			x = b.Apply(op.ViewAs(side, side), b.Apply(op.ReLU{}, b.Apply(op.ViewAs(side*side), x)))
		case 4:
			x = b.Apply(noise{b.Stream()}, x, b.Header())
		case 5:
			x = b.Apply(op.ReLU{}, b.Apply(op.BiasAdd{}, b.Apply(op.MatMul{}, b.Apply(op.Softmax{}, x), any("y")), bias))
		}
		nodes = append(nodes, x)
	}
	kept := map[string]*graph.Node{}
	keep := func(name string, n *graph.Node, save func(string, *graph.Node)) {
		for _, other := range kept {
			if other == n {
				return
			}
		}
		kept[name] = n
		save(name, n)
	}
	last := nodes[len(nodes)-1]
	keep("last", last, b.Output)
	for i := range 2 {
		if rapid.Bool().Draw(t, "updated") {
			b.Apply(descend{0.1}, nodes[i], any("gradient"))
		}
		keep(fmt.Sprint("y", i), b.Apply(op.Softmax{}, any("kept")), b.Output)
	}
	b.Record("metric", b.Apply(op.Softmax{}, any("recorded")))
	return b, kept
}

// life is the launches between which a buffer's contents matter.
type life struct {
	buffer      *tensor.Buffer
	first, last int
}

// lives reads the lives of scratch buffers off a program's launches.
func lives(p *graph.Program) []life {
	var list []life
	at := map[*tensor.Buffer]int{}
	for i, launch := range p.Launches() {
		for _, a := range launch.Arguments {
			if a.Buffer == nil || a.Buffer.Arena != tensor.Scratch {
				continue
			}
			if _, ok := at[a.Buffer]; !ok {
				at[a.Buffer] = len(list)
				list = append(list, life{a.Buffer, i, i})
			}
			list[at[a.Buffer]].last = i
		}
	}
	return list
}

// checkPlan returns an error if a program's memory plan is wrong.
func checkPlan(p *graph.Program) error {
	var bytes [3]int
	bytes[tensor.Shared], bytes[tensor.Chain], bytes[tensor.Scratch] = p.Bytes()
	var all []life
	seen := map[*tensor.Buffer]bool{}
	add := func(b *tensor.Buffer) {
		if b.Arena != tensor.Scratch && !seen[b] {
			seen[b] = true
			all = append(all, life{b, 0, len(p.Launches())})
		}
	}
	for _, in := range p.Inputs() {
		add(p.Buffer(in.Name))
	}
	for _, launch := range p.Launches() {
		for _, a := range launch.Arguments {
			if a.Buffer != nil {
				add(a.Buffer)
			}
		}
	}
	all = append(all, lives(p)...)
	for i, one := range all {
		b := one.buffer
		if b.Offset < 0 || b.Offset%tensor.Alignment != 0 || b.Offset+b.Bytes() > bytes[b.Arena] {
			return fmt.Errorf("%v is outside its arena of %d bytes, or not aligned", b, bytes[b.Arena])
		}
		for _, other := range all[:i] {
			o := other.buffer
			together := o.Arena == b.Arena && one.first <= other.last && other.first <= one.last
			if together && b.Offset < o.Offset+o.Bytes() && o.Offset < b.Offset+b.Bytes() {
				return fmt.Errorf("%v (launches %d to %d) overlaps %v (%d to %d)", b, one.first, one.last, o, other.first, other.last)
			}
		}
	}
	return nil
}

func TestRandomGraphs(t *testing.T) {
	host := newHost(t, 2)
	rapid.Check(t, func(t *rapid.T) {
		b, kept := randomGraph(t)
		oracle, err := graph.Interpret(b, graph.LoadOptions{Seed: 9, FirstChain: 1})
		if err != nil {
			t.Fatal(err)
		}
		p, err := b.Compile()
		if err != nil {
			t.Skip(err) // two updates that read what the other changes
		}
		if err := checkPlan(p); err != nil {
			t.Fatalf("%v, in\n%s", err, p.Dump())
		}
		s, err := p.Load(host, graph.LoadOptions{Seed: 9, Chains: 3})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range 2 {
			if err := oracle.Step(); err != nil {
				t.Fatal(err)
			}
			if err := s.Run(1); err != nil {
				t.Fatal(err)
			}
			for name, n := range kept {
				want, err := oracle.Value(n)
				if err != nil {
					t.Fatal(err)
				}
				got := make([]float64, len(want))
				if err := graph.Read(s, name, 1, 0, got); err != nil {
					t.Fatal(err)
				}
				if err := optest.Close(got, want, optest.Tol{Abs: 1e-12, Rel: 1e-12}); err != nil {
					t.Fatalf("%s: %v, in\n%s", name, err, p.Dump())
				}
			}
		}
	})
}

// In a chain of ops, two values are alive at a time.
func TestScratchIsReused(t *testing.T) {
	b := graph.New(tensor.Float32)
	h := b.State("x", nil, 1000)
	for range 20 {
		h = b.Apply(op.ReLU{}, h)
	}
	b.Output("y", b.Apply(op.ReLU{}, h))
	p, err := b.Compile()
	must(t, err)
	if err := checkPlan(p); err != nil {
		t.Error(err)
	}
	if _, _, scratch := p.Bytes(); scratch != 2*tensor.Align(4000) {
		t.Errorf("scratch memory is %d bytes, want that of two values of 4000", scratch)
	}
}

func TestPlanOfNetwork(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		p, err := newCNN(dtype).train(0.1).builder.Compile()
		must(t, err)
		if err := checkPlan(p); err != nil {
			t.Error(err)
		}
	}
}
