package graph_test

import (
	"fmt"
	"sync"
	"testing"

	"gorgonia.org/gorgonia"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Gorgonia takes nodes of equal hash for one node. These tests check our Builder against each merge
// that it is known to make.

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

// In Gorgonia im2col ops that differ only in dilation have the same hash.
func TestDilationsStayTwo(t *testing.T) {
	const inputs, filters, outputs = 2 * 3 * 8 * 8, 4 * 3 * 3 * 3, 2 * 4 * 8 * 8
	build := func(dilations ...int) *graph.Session {
		b := graph.New(tensor.Float64)
		x, w := b.State("x", normal(1), 2, 3, 8, 8), b.Parameter("w", normal(1), 4, 3, 3, 3)
		for _, n := range dilations {
			conv := op.Conv2D{Stride: op.Square(1), Padding: op.Square(n), Dilation: op.Square(n)}
			b.Output(fmt.Sprint("y", n), b.Apply(conv, x, w))
		}
		s := load(t, b, newHost(t, 1), graph.LoadOptions{})
		must(t, s.Run(1))
		return s
	}
	both := build(1, 2)
	for n := 1; n <= 2; n++ {
		alone := build(n)
		sameBits(t, "x", read(t, alone, "x", 0, inputs), read(t, both, "x", 0, inputs))
		sameBits(t, "w", read(t, alone, "w", 0, filters), read(t, both, "w", 0, filters))
		name := fmt.Sprint("y", n)
		sameBits(t, name, read(t, both, name, 0, outputs), read(t, alone, name, 0, outputs))
	}
	if one, two := read(t, both, "y1", 0, 1), read(t, both, "y2", 0, 1); one[0] == two[0] {
		t.Error("both dilations computed the same")
	}
}

// In Gorgonia unnamed inputs of the same type and shape are one node, as are inputs of the same
// name.
func TestInputsOfOneShapeStayTwo(t *testing.T) {
	b := graph.New(tensor.Float64)
	nodes := map[*graph.Node]bool{}
	for i := range 10 {
		nodes[b.Parameter(fmt.Sprint("w", i), constant(float64(i)), 3, 3)] = true
		nodes[b.State(fmt.Sprint("s", i), nil)] = true
	}
	must(t, b.Err())
	if len(nodes) != 20 {
		t.Errorf("20 inputs are %d nodes", len(nodes))
	}
}

func TestEqualNamesAreErrors(t *testing.T) {
	inputs := map[string]func(b *graph.Builder, name string){
		"data":      func(b *graph.Builder, name string) { b.Data(name, tensor.Float64, 3) },
		"table":     func(b *graph.Builder, name string) { b.Table(name, []float64{1, 2, 3}) },
		"parameter": func(b *graph.Builder, name string) { b.Parameter(name, nil, 3) },
		"state":     func(b *graph.Builder, name string) { b.State(name, nil, 3) },
	}
	for first, one := range inputs {
		for second, other := range inputs {
			b := graph.New(tensor.Float64)
			one(b, "x")
			must(t, b.Err())
			other(b, "x")
			wantError(t, first+" and "+second, b.Err(), `"x"`, "name")
		}
		b := graph.New(tensor.Float64)
		one(b, "")
		wantError(t, first+" without a name", b.Err(), "name")
		b = graph.New(tensor.Float64)
		one(b, "header")
		wantError(t, first+" with the header's name", b.Err(), "header")
		b = graph.New(tensor.Float64)
		b.Output("x", b.Apply(op.ReLU{}, b.State("s", nil, 3)))
		one(b, "x")
		wantError(t, first+" with an output's name", b.Err(), `"x"`)
		b = graph.New(tensor.Float64)
		one(b, "x")
		b.Output("x", b.Apply(op.ReLU{}, b.State("s", nil, 3)))
		wantError(t, "output with the name of "+first, b.Err(), `"x"`)
	}
}

// In Gorgonia long constants merge: their names leave out the middle.
func TestLongTablesStayApart(t *testing.T) {
	b := graph.New(tensor.Float64)
	one, two := make([]float64, 1000), make([]float64, 1000)
	two[500] = 7
	for i, values := range [][]float64{one, two} {
		b.Output(fmt.Sprint("y", i), b.Apply(op.ReLU{}, b.Table(fmt.Sprint("table", i), values)))
	}
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, s.Run(1))
	sameBits(t, "first", read(t, s, "y0", 0, 1000), one)
	sameBits(t, "second", read(t, s, "y1", 0, 1000), two)
}

// In Gorgonia the constants float32(1) and float64(1) are one node.
func TestOnesOfBothTypes(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float32} {
		b := graph.New(dtype)
		logits := b.Parameter("logits", normal(1), 3, 5)
		labels := b.Data("labels", tensor.Int32, 3)
		b.Output("dlogits", b.Gradients(b.Apply(op.CrossEntropy{}, logits, labels), logits)[0])
		s := load(t, b, newHost(t, 1), graph.LoadOptions{})
		must(t, s.Run(1))
		got := make([]float32, 15)
		must(t, s.ReadFloats("dlogits", 0, got))
		for row := range 3 {
			sum := float32(0)
			for _, v := range got[row*5 : (row+1)*5] {
				sum += v
			}
			if got[row*5] >= 0 || sum > 1e-6 || sum < -1e-6 {
				t.Errorf("%v: row %d is %v, want a negative first element and a sum of 0", dtype, row, got[row*5:(row+1)*5])
			}
		}
	}
}

// In Gorgonia the logarithm of a softmax turns the softmax itself, and each node that reads it,
// into a log-softmax.
func TestSoftmaxStaysItself(t *testing.T) {
	b := graph.New(tensor.Float64)
	logits := b.Parameter("logits", normal(1), 3, 5)
	p := b.Apply(op.Softmax{}, logits)
	loss := b.Apply(op.CrossEntropy{}, logits, b.Data("labels", tensor.Int32, 3))
	again := b.Apply(op.Softmax{}, logits)
	b.Output("dlogits", b.Gradients(loss, logits)[0])
	b.Output("p", p)
	b.Output("again", again)
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, s.Run(1))
	sum := 0.0
	for _, v := range read(t, s, "p", 0, 15) {
		sum += v
	}
	if sum < 3-1e-14 || sum > 3+1e-14 {
		t.Errorf("three rows of probabilities sum to %v", sum)
	}
	sameBits(t, "again", read(t, s, "again", 0, 15), read(t, s, "p", 0, 15))
}

// In Gorgonia a node that consumes an update writes into the updated parameter.
func TestConsumerOfUpdateLeavesParameter(t *testing.T) {
	b := graph.New(tensor.Float64)
	w := b.Parameter("w", constant(3), 1)
	statistic := b.Apply(descend{0.5}, w, b.State("dw", constant(2), 1))
	b.Output("relu", b.Apply(op.ReLU{}, b.Apply(op.ReLU{}, statistic)))
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, s.Run(1))
	sameBits(t, "w", read(t, s, "w", 0, 1), []float64{2})
	sameBits(t, "relu", read(t, s, "relu", 0, 1), []float64{6})
}

// In Gorgonia's TapeMachine an op overwrites memory that a reshaped node shares (gorgonia#576).
func TestViewsAreNotOverwritten(t *testing.T) {
	b := graph.New(tensor.Float64)
	x := b.State("x", constant(-1), 4)
	y := b.Apply(op.BiasAdd{}, b.Apply(op.ViewAs(2, 2), x), b.State("bias", constant(3), 2)) // 2 everywhere
	view := b.Apply(op.ViewAs(4), y)
	once := b.Apply(op.BiasAdd{}, b.Apply(op.ViewAs(2, 2), view), b.State("ten", constant(10), 2))
	b.Output("sum", b.Apply(op.MatMul{}, once, b.Apply(op.ViewAs(2, 2), view)))
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, s.Run(1))
	sameBits(t, "sum", read(t, s, "sum", 0, 4), []float64{48, 48, 48, 48})
}

// Sums at fan-out have no serial number; sums of different terms must stay apart all the same.
func TestFanInsStayApart(t *testing.T) {
	b := graph.New(tensor.Float64)
	x, w := b.Parameter("x", normal(1), 4, 4), b.Parameter("w", normal(1), 4, 4)
	h := b.Apply(op.MatMul{}, b.Apply(op.MatMul{}, x, w), b.Apply(op.MatMul{}, w, x))
	g := b.Gradients(b.Apply(op.CrossEntropy{}, h, b.Data("labels", tensor.Int32, 4)), x, w)
	b.Output("dx", g[0])
	b.Output("dw", g[1])
	s := load(t, b, newHost(t, 1), graph.LoadOptions{Seed: 2})
	if n := count(kernels(s.Program()), "fan_in_fwd"); n != 2 {
		t.Errorf("got %d sums, want 2", n)
	}
	must(t, s.Run(1))
	dx, dw := read(t, s, "dx", 0, 16), read(t, s, "dw", 0, 16)
	for i := range dx {
		if dx[i] == dw[i] {
			t.Errorf("element %d of both gradients is %v", i, dx[i])
		}
	}
}

func TestHashCollisions(t *testing.T) {
	b := graph.New(tensor.Float64)
	x := b.State("x", nil, 3)
	nodes := map[*graph.Node]bool{}
	for range 7 {
		nodes[b.Apply(op.ReLU{}, x)] = true
	}
	b.SetSerial(0) // the next seven serial numbers give hashes that are taken
	nodes[b.Apply(op.ReLU{}, x)] = true
	must(t, b.Err())
	if len(nodes) != 8 {
		t.Errorf("8 applications are %d nodes", len(nodes))
	}
	b.SetSerial(0)
	if n := b.Apply(op.ReLU{}, x); n != nil {
		t.Errorf("got node %v, want nil", n)
	}
	wantError(t, "eight collisions", b.Err(), "relu", "merges")
}

func TestStockOpsAreRefused(t *testing.T) {
	for name, apply := range map[string]func(x *graph.Node) (*graph.Node, error){
		"square":  gorgonia.Square,
		"softmax": func(x *graph.Node) (*graph.Node, error) { return gorgonia.SoftMax(x) },
		"reshape": func(x *graph.Node) (*graph.Node, error) { return gorgonia.Reshape(x, []int{9}) },
		"gaussian": func(x *graph.Node) (*graph.Node, error) {
			return gorgonia.HadamardProd(x, gorgonia.GaussianRandomNode(x.Graph(), gorgonia.Float64, 0, 1, 3, 3))
		},
	} {
		b := graph.New(tensor.Float64)
		x := b.Parameter("x", nil, 3, 3)
		stock, err := apply(x)
		must(t, err)
		b.Output("y", b.Apply(op.ReLU{}, stock))
		_, err = b.Compile()
		wantError(t, name, err, "graph: node", "gorgonia.", "graph/op")
	}
	b := graph.New(tensor.Float64)
	stray := gorgonia.NewMatrix(b.ExprGraph(), gorgonia.Float64, gorgonia.WithShape(3, 3), gorgonia.WithName("stray"))
	b.Output("y", b.Apply(op.ReLU{}, stray))
	_, err := b.Compile()
	wantError(t, "an input of Gorgonia's", err, "stray")
	other := graph.New(tensor.Float64)
	b = graph.New(tensor.Float64)
	b.Apply(op.MatMul{}, b.State("a", nil, 3, 3), other.State("b", nil, 3, 3))
	wantError(t, "a node of another graph", b.Err(), "graph")
}

// Gorgonia's graphs share global state even when they share no node: under the race detector this
// fails without the lock.
func TestGraphsAreBuiltInParallel(t *testing.T) {
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if _, err := newCNN(tensor.Float32).train(0.1).builder.Compile(); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
}

// A sum that Gorgonia took for another one would be a wrong gradient without an error: Gradients
// checks the terms of each.
func TestSumsOfOtherTermsAreFound(t *testing.T) {
	b := graph.New(tensor.Float64)
	x := b.Parameter("x", nil, 3)
	var d [4]*graph.Node
	for i := range d {
		d[i] = b.Apply(op.ReLU{}, x)
	}
	sum := func(terms ...*graph.Node) *graph.Node {
		n, err := gorgonia.ReduceAdd(terms)
		must(t, err)
		return n
	}
	for name, c := range map[string]struct {
		sum   *graph.Node
		terms []*graph.Node
		want  bool
	}{
		"one":                  {d[0], d[:1], true},
		"one, another":         {d[1], d[:1], false},
		"all":                  {sum(d[:]...), d[:], true},
		"in another order":     {sum(d[2], d[0], d[1]), d[:3], true},
		"one missing":          {sum(d[:3]...), d[:], false},
		"one too many":         {sum(d[:]...), d[:3], false},
		"one in another's":     {sum(d[0], d[1], d[3]), d[:3], false},
		"one twice":            {sum(d[0], d[0]), []*graph.Node{d[0], d[0]}, true},
		"one twice, two":       {sum(d[0], d[0]), d[:2], false},
		"a sum that is a term": {sum(sum(d[0], d[1]), d[0], d[1]), []*graph.Node{sum(d[0], d[1]), d[0], d[1]}, true},
	} {
		if got := b.IsSumOf(c.sum, c.terms...); got != c.want {
			t.Errorf("%s: got %t, want %t", name, got, c.want)
		}
	}
}

// A table has the shape it is given, which must have room for exactly its values.
func TestTableShapes(t *testing.T) {
	b := graph.New(tensor.Float64)
	b.Output("column sums", b.Apply(op.Sum{Axes: op.AxesOf(0)}, b.Table("rows", []float64{1, 2, 3, 10, 20, 30}, 2, 3)))
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, s.Run(1))
	sameBits(t, "sums", read(t, s, "column sums", 0, 3), []float64{11, 22, 33})
	b = graph.New(tensor.Float64)
	if b.Table("rows", []float64{1, 2, 3}, 2, 2) != nil {
		t.Error("a node for a table of 2x2 with 3 values")
	}
	wantError(t, "too few values", b.Err(), `"rows"`, "must have 4 values", "3")
}
