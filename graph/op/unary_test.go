package op

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mathext"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

func TestPointwise(t *testing.T) {
	positive := func(_ int, z float64) float64 { return .1 + math.Abs(z) }
	offKink := func(_ int, z float64) float64 { return z + math.Copysign(.01, z) }
	for _, c := range []struct {
		op   graph.Op
		draw func(int, float64) float64
		want func(x float64) float64
	}{
		{Exp{}, nil, math.Exp},
		{Log{}, positive, math.Log},
		{Sqrt{}, positive, func(x float64) float64 { return math.Pow(x, .5) }},
		{Squared{}, nil, func(x float64) float64 { return math.Pow(x, 2) }},
		{Negate{}, nil, func(x float64) float64 { return 0 - x }},
		{Scale{Factor: -1.5, Offset: .25}, nil, func(x float64) float64 { return .25 - 3*x/2 }},
		{Lgamma{}, positive, func(x float64) float64 { return math.Log(math.Gamma(x)) }},
		{Tanh{}, nil, func(x float64) float64 { return math.Sinh(x) / math.Cosh(x) }},
		{Sigmoid{}, nil, func(x float64) float64 { return (1 + math.Tanh(x/2)) / 2 }},
		{Softplus{}, nil, func(x float64) float64 { return math.Log(1 + math.Exp(x)) }},
		{SiLU{}, nil, func(x float64) float64 { return x / (1 + math.Exp(-x)) }},
		{HardSwish{}, nil, func(x float64) float64 { return x * min(max(x+3, 0), 6) / 6 }},
		{ELU{Alpha: .7}, offKink, func(x float64) float64 { return max(x, 0) + .7*(math.Exp(min(x, 0))-1) }},
	} {
		for _, shape := range []tensor.Shape{{}, {1}, {33, 257}, {3, 2, 5, 7}} {
			t.Run(c.op.Name()+shape.String(), func(t *testing.T) {
				trial{op: c.op, shapes: []tensor.Shape{shape}, draw: c.draw, want: func(in [][]float64) []float64 {
					y := make([]float64, len(in[0]))
					for i, x := range in[0] {
						y[i] = c.want(x)
					}
					return y
				}}.run(t)
			})
		}
		refuse(t, c.op)
		refuse(t, c.op, tensor.Shape{3}, tensor.Shape{3})
	}
	refuse(t, ELU{}, tensor.Shape{3})
	refuse(t, ELU{Alpha: math.Inf(1)}, tensor.Shape{3})
	refuse(t, Scale{Offset: 1}, tensor.Shape{3})
	refuse(t, Scale{Factor: math.NaN()}, tensor.Shape{3})
	refuse(t, Scale{Factor: 1, Offset: math.Inf(-1)}, tensor.Shape{3})
	refuse(t, unaryBackward{Tanh{}}, tensor.Shape{3}, tensor.Shape{4})
}

// Far from 0 the curves neither overflow nor lose their digits.
func TestPointwiseFarOut(t *testing.T) {
	for _, c := range []struct {
		op       unaryOp
		x        float64
		y, slope float64
	}{
		{Sigmoid{}, -800, 0, 0},
		{Sigmoid{}, 800, 1, 0},
		{Sigmoid{}, -40, math.Exp(-40), math.Exp(-40)},
		{Softplus{}, -40, math.Exp(-40), math.Exp(-40)},
		{Softplus{}, -800, 0, 0},
		{Softplus{}, 800, 800, 1},
		{SiLU{}, -40, -40 * math.Exp(-40), -39 * math.Exp(-40)},
		{SiLU{}, 800, 800, 1},
		{HardSwish{}, -3, 0, 0},
		{HardSwish{}, 3, 3, 1},
		{HardSwish{}, 1e300, 1e300, 1},
		{Tanh{}, 800, 1, 0},
		{ELU{Alpha: 2}, -800, -2, 0},
		{ELU{Alpha: 2}, -1e-12, -2e-12, 2},
		{ELU{Alpha: 2}, 1e300, 1e300, 1},
		{Lgamma{}, 1e5, 1e5*(math.Log(1e5)-1) - math.Log(1e5)/2 + math.Log(2*math.Pi)/2 + 1/12e5, mathext.Digamma(1e5)},
	} {
		f := c.op.unary()
		y := f.value(c.x)
		v := c.x
		if f.fromOutput {
			v = y
		}
		for what, pair := range map[string][2]float64{"y": {y, c.y}, "slope": {f.derivative(v), c.slope}} {
			if got, want := pair[0], pair[1]; !(math.Abs(got-want) <= 4e-12*math.Abs(want)) {
				t.Errorf("%s of %v: %s is %v, want %v", c.op.Name(), c.x, what, got, want)
			}
		}
	}
}

// Scale's faster functions have the results of the formula in float64.
func TestScaleFloat32(t *testing.T) {
	x := []float32{0, float32(math.Copysign(0, -1)), 1, -3.7, 1e-45, -1e-40, 3e38, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN())}
	for i := range 5000 {
		x = append(x, float32(math.Exp(float64(i%160-80))*math.Sin(float64(i))))
	}
	y := make([]float32, len(x))
	for _, s := range []Scale{
		{Factor: 0.5}, {Factor: 1, Offset: 1}, {Factor: -1.5}, {Factor: float64(float32(1e-30))}, {Factor: float64(float32(1e30))},
		{Factor: 1, Offset: float64(float32(-1e-20))}, {Factor: 0.1}, {Factor: 2, Offset: 1}, {Factor: 1 / math.Pi, Offset: -0.7},
	} {
		s.values()(y, x)
		for i, v := range x {
			if want := float32(float64(s.Factor*float64(v)) + s.Offset); y[i] != want && want == want {
				t.Fatalf("%+v of %v is %v, want %v", s, v, y[i], want)
			}
		}
	}
}
