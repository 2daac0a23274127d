package distributions

import (
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// program computes y, and the gradients of the sum of y, for inputs that can be changed.
type program struct {
	t       *testing.T
	dtype   tensor.DType
	session *graph.Session
	shapes  []tensor.Shape
	y       tensor.Shape
	names   []string // of the gradients
}

// newProgram is for inputs "x0", "x1", ... of those shapes.
func newProgram(t *testing.T, dtype tensor.DType, shapes []tensor.Shape, build func(b *graph.Builder, in []*graph.Node) *graph.Node) *program {
	t.Helper()
	b := graph.New(dtype)
	var in []*graph.Node
	for i, shape := range shapes {
		in = append(in, b.Parameter(fmt.Sprint("x", i), nil, shape...))
	}
	y := build(b, in)
	if b.Err() != nil {
		t.Fatalf("%+v", b.Err())
	}
	p := &program{t: t, dtype: dtype, shapes: shapes, y: graph.ShapeOf(y)}
	outputs := map[*graph.Node]string{y: "y"}
	b.Output("y", y)
	for i, gradient := range b.Gradients(b.Apply(op.Sum{}, y), in...) {
		if outputs[gradient] == "" {
			outputs[gradient] = fmt.Sprint("gradient ", i)
			b.Output(outputs[gradient], gradient)
		}
		p.names = append(p.names, outputs[gradient])
	}
	compiled, err := b.Compile()
	if err != nil {
		t.Fatalf("%+v", err)
	}
	host := tensor.NewHost(1)
	t.Cleanup(func() { host.Close() })
	if p.session, err = compiled.Load(host, graph.LoadOptions{Seed: 17}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.session.Close() })
	return p
}

// step computes y for the inputs' values.
func (p *program) step(values ...[]float64) []float64 {
	p.t.Helper()
	for i, v := range values {
		if len(v) != p.shapes[i].Elements() {
			p.t.Fatalf("input %d: %d values for shape %v", i, len(v), p.shapes[i])
		}
		p.write(fmt.Sprint("x", i), v)
	}
	if err := p.session.Run(1); err != nil {
		p.t.Fatal(err)
	}
	return p.read("y", p.y.Elements())
}

// gradient is the gradient by input i in the last step.
func (p *program) gradient(i int) []float64 {
	p.t.Helper()
	return p.read(p.names[i], p.shapes[i].Elements())
}

func (p *program) write(name string, values []float64) {
	p.t.Helper()
	err := error(nil)
	if p.dtype == tensor.Float64 {
		err = graph.Write(p.session, name, 0, 0, values)
	} else {
		narrow := make([]float32, len(values))
		for i, v := range values {
			narrow[i] = float32(v)
		}
		err = graph.Write(p.session, name, 0, 0, narrow)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func (p *program) read(name string, n int) []float64 {
	p.t.Helper()
	wide := make([]float64, n)
	err := error(nil)
	if p.dtype == tensor.Float64 {
		err = graph.Read(p.session, name, 0, 0, wide)
	} else {
		narrow := make([]float32, n)
		err = graph.Read(p.session, name, 0, 0, narrow)
		for i, v := range narrow {
			wide[i] = float64(v)
		}
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return wide
}

// slopes are the derivatives of y by input i of the same shape, element by element, by fourth-order
// differences with those steps; and the error that rounding leaves in them.
func (p *program) slopes(i int, steps []float64, values ...[]float64) (slopes, rounding []float64) {
	p.t.Helper()
	const epsilon = 0x1p-50
	moved := append([][]float64(nil), values...)
	x := values[i]
	slopes, rounding = make([]float64, len(x)), make([]float64, len(x))
	for _, side := range []struct{ at, weight float64 }{{-2, 1}, {-1, -8}, {1, 8}, {2, -1}} {
		moved[i] = append([]float64(nil), x...)
		for j := range x {
			moved[i][j] += side.at * steps[j]
		}
		for j, y := range p.step(moved...) {
			slopes[j] += side.weight * y / (12 * steps[j])
			rounding[j] = max(rounding[j], epsilon*math.Abs(y)/steps[j])
		}
	}
	for j, slope := range slopes {
		rounding[j] += math.Abs(slope) * epsilon * math.Abs(x[j]) / steps[j]
	}
	return slopes, rounding
}

// compare checks element by element: |got - want| <= absolute + relative |want|.
func compare(t *testing.T, what string, got, want []float64, absolute func(i int) float64, relative float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d elements, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if got[i] == w {
			continue
		}
		if tolerance := absolute(i) + relative*math.Abs(w); !(math.Abs(got[i]-w) <= tolerance) {
			t.Errorf("%s: element %d is %v, want %v to %v", what, i, got[i], w, tolerance)
			return
		}
	}
}

func always(tolerance float64) func(int) float64 { return func(int) float64 { return tolerance } }

func numbers(parameters []float64) []Value {
	var values []Value
	for _, v := range parameters {
		values = append(values, Number(v))
	}
	return values
}

func nodes(in []*graph.Node) []Value {
	var values []Value
	for _, n := range in {
		values = append(values, Node(n))
	}
	return values
}
