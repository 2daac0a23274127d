package op

import (
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// naiveBroadcast applies f element by element, finding the operands from the output's indices.
func naiveBroadcast(a, b tensor.Shape, f func(a, b float64) float64) func(in [][]float64) []float64 {
	y, err := broadcast([]tensor.Shape{a, b})
	if err != nil {
		panic(err)
	}
	place := func(shape tensor.Shape, i int) int {
		at, stride := 0, 1
		for axis := len(y) - 1; axis >= 0; axis-- {
			index := i % y[axis]
			i /= y[axis]
			if own := axis - (len(y) - len(shape)); own >= 0 {
				at += index % shape[own] * stride
				stride *= shape[own]
			}
		}
		return at
	}
	return func(in [][]float64) []float64 {
		out := make([]float64, y.Elements())
		for i := range out {
			out[i] = f(in[0][place(a, i)], in[1][place(b, i)])
		}
		return out
	}
}

func TestArithmetic(t *testing.T) {
	away := func(input int, z float64) float64 {
		if input == 1 {
			return z + math.Copysign(.5, z)
		}
		return z
	}
	ops := []struct {
		op graph.Op
		f  func(a, b float64) float64
	}{
		{Add{}, func(a, b float64) float64 { return a + b }},
		{Subtract{}, func(a, b float64) float64 { return a - b }},
		{Multiply{}, func(a, b float64) float64 { return a * b }},
		{Divide{}, func(a, b float64) float64 { return a / b }},
	}
	for _, shapes := range [][2]tensor.Shape{
		{{}, {}},
		{{1}, {}},
		{{1, 1}, {1}},
		{{33, 31}, {33, 31}},
		{{257}, {}},
		{{}, {31, 33}},
		{{9, 1031}, {1031}},
		{{9, 1}, {9, 1031}},
		{{31, 1}, {1, 33}},
		{{5, 7, 3, 9}, {7, 1, 1}},
		{{1, 7, 1, 9}, {5, 1, 3, 9}},
		{{3, 1, 2, 1, 3, 1}, {1, 2, 1, 4, 1, 5}},
		{{3, 3, 1}, {1, 3, 33}},
	} {
		for _, c := range ops {
			t.Run(fmt.Sprint(c.op.Name(), shapes), func(t *testing.T) {
				trial{op: c.op, shapes: shapes[:], draw: away, want: naiveBroadcast(shapes[0], shapes[1], c.f)}.run(t)
			})
		}
	}
	refuse(t, Add{}, tensor.Shape{3})
	refuse(t, Add{}, tensor.Shape{3}, tensor.Shape{2})
	refuse(t, Multiply{}, tensor.Shape{3, 4}, tensor.Shape{3})
	refuse(t, Subtract{}, tensor.Shape{1, 2, 1, 2, 1, 2, 3}, tensor.Shape{3})
	refuse(t, Divide{}, tensor.Shape{2, 3, 4}, tensor.Shape{2, 4, 3})
}

// The gradients of a power are 0 where the base or the exponent is 0, not 0 times an infinity.
func TestPowerOfZero(t *testing.T) {
	bases, exponents := []float64{0, 0, 0, 2, -2}, []float64{0, 1, 2, 0, 0}
	out := trial{op: Power{}, shapes: []tensor.Shape{{5}, {5}}}.compute(t, tensor.Float64, 1, [][]float64{bases, exponents})
	dout := cotangent(5)
	same(t, "gradient by the base", out.gradients[0], []float64{0, dout[1], 0, 0, 0}, 1e-15)
	same(t, "gradient by the exponent", out.gradients[1][:4], []float64{0, 0, 0, dout[3] * math.Ln2}, 1e-15)
}

// One node as both operands: the two gradients meet.
func TestAddToItself(t *testing.T) {
	b := graph.New(tensor.Float64)
	x := b.Parameter("x", initial(1), 5)
	square := b.Apply(Multiply{}, b.Apply(Add{}, x, x), x)
	gradient := b.Gradients(b.Apply(Sum{}, square), x)[0]
	b.Output("gradient", gradient)
	p, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	host := tensor.NewHost(1)
	defer host.Close()
	s, err := p.Load(host, graph.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(1); err != nil {
		t.Fatal(err)
	}
	in, got := make([]float64, 5), make([]float64, 5)
	if err := graph.Read(s, "x", 0, 0, in); err != nil {
		t.Fatal(err)
	}
	if err := graph.Read(s, "gradient", 0, 0, got); err != nil {
		t.Fatal(err)
	}
	for i := range in {
		in[i] *= 4
	}
	same(t, "gradient of 2 x^2", got, in, 1e-15)
}
