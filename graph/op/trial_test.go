package op

import (
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// trial is an op on inputs of some shapes, with a plain loop that defines its output.
type trial struct {
	op     graph.Op
	shapes []tensor.Shape
	draw   func(input int, z float64) float64 // an element from a standard normal; nil: itself
	header bool                               // the chain's header is the last input
	want   func(in [][]float64) []float64
	loose  float64 // multiplies the float32 tolerance; 0 means 1
}

const trialSeed = 5

// outcome is what a trial's program computed.
type outcome struct {
	y         []float64
	gradients [][]float64
}

func (c trial) inputs() [][]float64 {
	values := make([][]float64, len(c.shapes))
	for i, shape := range c.shapes {
		values[i] = make([]float64, shape.Elements())
		random.Normals(values[i], 0, random.Address{Seed: trialSeed, Stream: uint16(100 + i)})
		for j, z := range values[i] {
			if c.draw != nil {
				z = c.draw(i, z)
			}
			values[i][j] = float64(float32(z))
		}
	}
	return values
}

func cotangent(n int) []float64 {
	c := make([]float64, n)
	random.Normals(c, 0, random.Address{Seed: trialSeed, Stream: 99})
	return c
}

// compute runs the op, and the gradients of sum(y * cotangent), in a program of dtype.
func (c trial) compute(t *testing.T, dtype tensor.DType, threads int, values [][]float64) outcome {
	t.Helper()
	b := graph.New(dtype)
	constant := func(v []float64) graph.Initializer {
		return func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, to []float64) { copy(to, v) }
	}
	var inputs, parameters []*graph.Node
	for i, shape := range c.shapes {
		parameters = append(parameters, b.Parameter(fmt.Sprint("input ", i), constant(values[i]), shape...))
	}
	inputs = append(inputs, parameters...)
	if c.header {
		inputs = append(inputs, b.Header())
	}
	y := b.Apply(c.op, inputs...)
	if b.Err() != nil {
		t.Fatal(b.Err())
	}
	b.Output("y", y)
	names := map[*graph.Node]string{y: "y"}
	var gradients []*graph.Node
	if _, ok := c.op.(graph.Differentiable); ok {
		weights := b.State("cotangent", constant(cotangent(graph.ShapeOf(y).Elements())), graph.ShapeOf(y)...)
		gradients = b.Gradients(b.Apply(Sum{}, b.Apply(Multiply{}, y, weights)), parameters...)
		for i, g := range gradients {
			if _, ok := names[g]; !ok {
				names[g] = fmt.Sprint("gradient ", i)
				b.Output(names[g], g)
			}
		}
	}
	p, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	host := tensor.NewHost(threads)
	defer host.Close()
	s, err := p.Load(host, graph.LoadOptions{Seed: trialSeed})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if allocations := testing.AllocsPerRun(3, func() { s.Run(1) }); allocations > 0 {
		t.Errorf("%v: %v allocations in a step", dtype, allocations)
	}
	o := outcome{y: readOutput(t, s, dtype, names[y], 0, graph.ShapeOf(y))}
	for _, g := range gradients {
		o.gradients = append(o.gradients, readOutput(t, s, dtype, names[g], 0, graph.ShapeOf(g)))
	}
	return o
}

func readOutput(t *testing.T, s *graph.Session, dtype tensor.DType, name string, chain int, shape tensor.Shape) []float64 {
	t.Helper()
	wide := make([]float64, shape.Elements())
	if dtype == tensor.Float64 {
		if err := graph.Read(s, name, chain, 0, wide); err != nil {
			t.Fatal(err)
		}
		return wide
	}
	narrow := make([]float32, len(wide))
	if err := graph.Read(s, name, chain, 0, narrow); err != nil {
		t.Fatal(err)
	}
	for i, v := range narrow {
		wide[i] = float64(v)
	}
	return wide
}

// run compares the op with its plain loop, its gradients with central differences of the plain
// loop, float32 with float64, and one thread with three.
func (c trial) run(t *testing.T) {
	t.Helper()
	values := c.inputs()
	got := c.compute(t, tensor.Float64, 1, values)
	want := c.want(values)
	same(t, "float64 output", got.y, want, 1e-12)
	for i := range got.gradients {
		same(t, fmt.Sprint("gradient of input ", i), got.gradients[i], c.differences(values, i), 2e-7)
	}
	loose := max(1, c.loose)
	narrow := c.compute(t, tensor.Float32, 1, values)
	same(t, "float32 output", narrow.y, want, 2e-6*loose)
	for i := range got.gradients {
		same(t, fmt.Sprint("float32 gradient of input ", i), narrow.gradients[i], got.gradients[i], 4e-6*loose)
	}
	threads := c.compute(t, tensor.Float32, 3, values)
	same(t, "output on three threads", threads.y, narrow.y, 0)
	for i := range got.gradients {
		same(t, fmt.Sprint("gradient on three threads of input ", i), threads.gradients[i], narrow.gradients[i], 0)
	}
}

// differences returns d sum(y * cotangent) / d input i by central differences, at some fifty
// elements; the others are NaN.
func (c trial) differences(values [][]float64, i int) []float64 {
	x := values[i]
	gradient := make([]float64, len(x))
	stride := max(1, len(x)/50)
	for j := range x {
		if j%stride != 0 {
			gradient[j] = math.NaN()
			continue
		}
		at, h := x[j], 1e-5*max(1, math.Abs(x[j]))
		x[j] = at + h
		up := c.want(values)
		x[j] = at - h
		down := c.want(values)
		x[j] = at
		weights := cotangent(len(up))
		for k := range up {
			gradient[j] += weights[k] * (up[k] - down[k]) / (2 * h)
		}
	}
	return gradient
}

// same compares to a tolerance relative to the larger of the element and the root mean square of
// all. A NaN in want is not compared.
func same(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	square, n := 0.0, 0
	for _, v := range want {
		if !math.IsNaN(v) {
			square += v * v
			n++
		}
	}
	scale := math.Sqrt(square / float64(max(1, n)))
	for i, v := range want {
		if math.IsNaN(v) || got[i] == v {
			continue
		}
		if !(math.Abs(got[i]-v) <= tolerance*max(scale, math.Abs(v))) {
			t.Fatalf("%s: element %d is %v, want %v (scale %v, tolerance %v)", what, i, got[i], v, scale, tolerance)
		}
	}
}

// refuse checks that Shape returns an error.
func refuse(t *testing.T, op graph.Op, shapes ...tensor.Shape) {
	t.Helper()
	if shape, err := op.Shape(shapes); err == nil {
		t.Errorf("%s%+v of %v has shape %v, want an error", op.Name(), op, shapes, shape)
	} else {
		t.Logf("%s%+v of %v: %v", op.Name(), op, shapes, err)
	}
}

// initial returns an initializer that draws from N(0, std^2).
func initial(std float64) graph.Initializer {
	return func(seed uint64, chain uint32, stream uint16, _ tensor.Shape, values []float64) {
		random.Normals(values, 0, random.Address{Seed: seed, Chain: chain, Stream: stream})
		for i := range values {
			values[i] *= std
		}
	}
}
