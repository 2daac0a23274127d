package distributions

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

var bijections = []struct {
	Bijection
	low, high float64 // the range of y
	far       float64 // from where on y equals an end of its range in float
}{
	{Exp{}, 0, math.Inf(1), 300},
	{Softplus{}, 0, math.Inf(1), 300},
	{Interval{High: 1}, 0, 1, 15},
	{Interval{Low: -3, High: 0.5}, -3, 0.5, 15},
	{Affine{Shift: Number(2), Scale: Number(-0.3)}, math.Inf(-1), math.Inf(1), 300},
	{Affine{Scale: Number(1)}, math.Inf(-1), math.Inf(1), 300},
}

// spread are numbers over (-far, far), denser near 0.
func spread(far float64) []float64 {
	var x []float64
	for t := -1.0; t <= 1; t += 0x1p-5 {
		x = append(x, far*t*t*t)
	}
	return x
}

// function is a program of one input [n].
func function(t *testing.T, n int, f func(b *graph.Builder, x *graph.Node) *graph.Node) *program {
	t.Helper()
	return newProgram(t, tensor.Float64, []tensor.Shape{{n}}, func(b *graph.Builder, in []*graph.Node) *graph.Node { return f(b, in[0]) })
}

func TestBijections(t *testing.T) {
	for _, c := range bijections {
		t.Run(fmt.Sprintf("%T%v", c.Bijection, c.Bijection), func(t *testing.T) {
			x := spread(c.far)
			n := len(x)
			forward, inverse, determinant := function(t, n, c.Forward), function(t, n, c.Inverse), function(t, n, c.LogDeterminant)
			y := forward.step(x)
			for i, v := range y {
				if !(v >= c.low && v <= c.high) {
					t.Errorf("f(%v) is %v, want it from %v to %v", x[i], v, c.low, c.high)
				}
			}
			slope := forward.gradient(0)
			// Near the end of an interval, y has lost the digits of its distance from it.
			lost := func(i int) float64 { return 1e-15 * (1 + math.Abs(y[i])) / math.Abs(slope[i]) }
			if math.IsInf(c.high, 1) {
				lost = func(i int) float64 { return 1e-15 * (1 + math.Abs(x[i])) }
			}
			compare(t, "inverse of forward", inverse.step(y), x, lost, 1e-13)

			var logs []float64
			for _, s := range slope {
				logs = append(logs, math.Log(math.Abs(s)))
			}
			compare(t, "log determinant", determinant.step(x), logs, func(i int) float64 { return 1e-14 * (1 + lost(i)/1e-15) }, 1e-13)
			slopes, rounding := forward.slopes(0, filled(n, 0x1p-9), x)
			compare(t, "gradient of forward", slope, slopes, func(i int) float64 { return rounding[i] }, 1e-8)
			bent := determinant.gradient(0)
			slopes, rounding = determinant.slopes(0, filled(n, 0x1p-9), x)
			compare(t, "gradient of log determinant", bent, slopes, func(i int) float64 { return 1e-8 + rounding[i] }, 1e-8)
			var reciprocals []float64
			for _, s := range slope {
				reciprocals = append(reciprocals, 1/s)
			}
			relative := 1e-11
			if !math.IsInf(c.high, 1) {
				relative = 1e-7
			}
			compare(t, "gradient of inverse", inverse.gradient(0), reciprocals, always(0), relative)
		})
	}
}

func TestAffineOfNodes(t *testing.T) {
	shapes := []tensor.Shape{{3, 2}, {}, {3, 1}}
	values := [][]float64{{1, 2, 3, 4, 5, 6}, {0.5}, {2, -4, 0.25}}
	build := func(use func(a Affine, b *graph.Builder, x *graph.Node) *graph.Node) func(b *graph.Builder, in []*graph.Node) *graph.Node {
		return func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return use(Affine{Shift: Node(in[1]), Scale: Node(in[2])}, b, in[0])
		}
	}
	forward := newProgram(t, tensor.Float64, shapes, build(Affine.Forward))
	compare(t, "forward", forward.step(values...), []float64{2.5, 4.5, -11.5, -15.5, 1.75, 2}, always(0), 1e-15)
	compare(t, "gradient of scale", forward.gradient(2), []float64{3, 7, 11}, always(0), 1e-15)
	inverse := newProgram(t, tensor.Float64, shapes, build(Affine.Inverse))
	compare(t, "inverse", inverse.step([]float64{2.5, 4.5, -11.5, -15.5, 1.75, 2}, values[1], values[2]), values[0], always(0), 1e-15)
	// The shift does not matter: Gorgonia refuses to differentiate by it.
	determinant := newProgram(t, tensor.Float64, []tensor.Shape{shapes[0], shapes[2]}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
		return Affine{Scale: Node(in[1])}.LogDeterminant(b, in[0])
	})
	ln2 := math.Ln2
	compare(t, "log determinant", determinant.step(values[0], values[2]), []float64{ln2, ln2, 2 * ln2, 2 * ln2, -2 * ln2, -2 * ln2}, always(0), 1e-15)
	compare(t, "gradient of log determinant", determinant.gradient(1), []float64{1, -0.5, 8}, always(0), 1e-15)
	compare(t, "gradient by x", determinant.gradient(0), make([]float64, 6), always(0), 0)
}

func TestTransformedIsLogNormal(t *testing.T) {
	y := []float64{1e-30, 1e-3, 0.4, 1, 2.5, 1e4, 1e30}
	n := len(y)
	shapes := []tensor.Shape{{n}, {n}, {n}}
	p := newProgram(t, tensor.Float64, shapes, func(b *graph.Builder, in []*graph.Node) *graph.Node {
		return Transformed{Base: Normal{Mean: Node(in[1]), Std: Node(in[2])}, Bijection: Exp{}}.LogProb(b, in[0])
	})
	columns := [][]float64{y, filled(n, 0.3), filled(n, 1.7)}
	reference := distuv.LogNormal{Mu: 0.3, Sigma: 1.7}
	var want []float64
	for _, v := range y {
		want = append(want, reference.LogProb(v))
	}
	compare(t, "log density", p.step(columns...), want, always(1e-13), 1e-13)
	for i := range columns {
		p.step(columns...)
		got := p.gradient(i)
		var steps []float64
		for _, v := range columns[i] {
			steps = append(steps, 0x1p-9*v)
		}
		slopes, rounding := p.slopes(i, steps, columns...)
		compare(t, fmt.Sprint("gradient of input ", i), got, slopes, func(j int) float64 { return rounding[j] + 1e-9/steps[j]*0x1p-9 }, 1e-7)
	}
}

// A prior on the constrained value, with the Jacobian, is a density of the free parameter.
func TestConstrainedPriorsIntegrateToOne(t *testing.T) {
	for name, c := range map[string]struct {
		prior     Distribution
		bijection Bijection
	}{
		"exponential by exp":      {Exponential{Rate: Number(10)}, Exp{}},
		"exponential by softplus": {Exponential{Rate: Number(0.1)}, Softplus{}},
		"gamma by exp":            {Gamma{Shape: Number(2.5), Rate: Number(0.3)}, Exp{}},
		"gamma by softplus":       {Gamma{Shape: Number(2.5), Rate: Number(0.3)}, Softplus{}},
		"beta by interval":        {Beta{A: Number(2), B: Number(3)}, Interval{High: 1}},
		"normal by affine":        {Normal{Mean: Number(3), Std: Number(2)}, Affine{Shift: Number(1), Scale: Number(-5)}},
	} {
		sum := total(t, func(b *graph.Builder, x *graph.Node) *graph.Node {
			value, logJacobian := Constrained(b, x, c.bijection)
			return algebra{b: b}.add(Node(c.prior.LogProb(b, value)), Node(logJacobian)).node
		}, func(t float64) (float64, float64) { return t / 2, 0.5 })
		if !(math.Abs(sum-1) < 1e-6) {
			t.Errorf("%s: integrates to %v", name, sum)
		}
	}
}

// TestIntervalEnds: where an interval saturates its value is an end, not a number beyond it to
// which a sum rounds, so that a density on the interval is not NaN.
func TestIntervalEnds(t *testing.T) {
	x := []float64{-40, 0, 40}
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for i := range 200 {
			low := -3 + 0.037*float64(i)
			high := low + 0.1 + 0.013*float64(i*i%97)
			p := newProgram(t, dtype, []tensor.Shape{{len(x)}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
				y := Interval{low, high}.Forward(b, in[0])
				return b.Apply(op.Add{}, y, Uniform{low, high}.LogProb(b, y))
			})
			for j, v := range p.step(x) {
				if v != v {
					t.Errorf("%v, from %v to %v: the density at f(%v) is NaN", dtype, low, high, x[j])
				}
			}
		}
	}
}
