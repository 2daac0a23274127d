package distributions

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

func TestLogProbAgainstGonum(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			columns := f.columns()
			got := f.program(t, tensor.Float64, len(columns[0])).step(columns...)
			var want []float64
			for _, v := range f.parameters {
				for _, x := range f.points(v) {
					want = append(want, f.reference(v).LogProb(x))
				}
			}
			terms := f.terms(columns)
			compare(t, "log density", got, want, func(i int) float64 { return 1e-13 * terms(i) }, 1e-13)
			from := 0
			for _, v := range f.parameters {
				x := f.points(v)
				p := newProgram(t, tensor.Float64, []tensor.Shape{{len(x)}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
					return f.make(numbers(v)).LogProb(b, in[0])
				})
				what := fmt.Sprint("with the numbers ", v)
				compare(t, what, p.step(x), got[from:from+len(x)], func(i int) float64 { return 1e-13 * terms(from+i) }, 1e-13)
				from += len(x)
			}
		})
	}
}

func TestLogProbGradients(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			columns := f.columns()
			p := f.program(t, tensor.Float64, len(columns[0]))
			p.step(columns...)
			var got [][]float64
			for i := range columns {
				got = append(got, p.gradient(i))
			}
			terms := f.terms(columns)
			for i := range columns {
				steps := f.steps(columns, i)
				want, rounding := p.slopes(i, steps, columns...)
				compare(t, fmt.Sprint("gradient of input ", i), got[i], want, func(j int) float64 {
					// The differences leave out (1/256)^4 of the change over the width.
					return rounding[j] + 0x1p-32*terms(j)/(256*steps[j])
				}, 1e-7)
			}
		})
	}
}

// In float32 the largest term determines the error.
func TestLogProbInFloat32(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			moderate := f
			moderate.parameters = f.parameters[:2]
			moderate.points = func(v []float64) []float64 {
				x := f.points(v)
				return x[2 : len(x)-1]
			}
			columns := moderate.columns()
			n := len(columns[0])
			for i := range columns {
				for j, v := range columns[i] {
					columns[i][j] = float64(float32(v))
				}
			}
			wide, narrow := moderate.program(t, tensor.Float64, n), moderate.program(t, tensor.Float32, n)
			want, got := wide.step(columns...), narrow.step(columns...)
			terms := moderate.terms(columns)
			compare(t, "log density", got, want, func(i int) float64 { return 1e-6 * terms(i) }, 1e-6)
			for i := range columns {
				g := wide.gradient(i)
				compare(t, fmt.Sprint("gradient ", i), narrow.gradient(i), g, func(i int) float64 { return 1e-6 * terms(i) }, 1e-5)
			}
		})
	}
}

// total is the integral of a density over a grid.
func total(t *testing.T, d func(b *graph.Builder, x *graph.Node) *graph.Node, grid func(t float64) (x, slope float64)) float64 {
	t.Helper()
	const n, step = 16001, 0.05
	x, slope := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i], slope[i] = grid((float64(i) - n/2) * step)
	}
	p := newProgram(t, tensor.Float64, []tensor.Shape{{n}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
		return d(b, in[0])
	})
	sum := 0.0
	for i, density := range p.step(x) {
		if mass := math.Exp(density) * slope[i] * step; mass > 0 || math.IsNaN(density) {
			sum += mass
		}
	}
	return sum
}

func TestDensitiesIntegrateToOne(t *testing.T) {
	for _, f := range families {
		for _, v := range f.parameters {
			if f.name == "gamma" && v[0] > 100 || f.name == "beta" && v[0] > 100 {
				continue // narrower than the grid's step
			}
			d := f.make(numbers(v))
			sum := total(t, d.LogProb, func(t float64) (float64, float64) { return f.grid(t, v) })
			tolerance := 1e-6
			if f.name == "laplace" { // the trapezium rule meets a kink
				tolerance = 1e-4
			}
			if !(math.Abs(sum-1) < tolerance) {
				t.Errorf("%s%v integrates to %v", f.name, v, sum)
			}
		}
	}
}

// A scalar parameter applies to all elements: its gradient is their sum.
func TestParametersBroadcast(t *testing.T) {
	for _, f := range families {
		t.Run(f.name, func(t *testing.T) {
			v := f.parameters[1]
			x := f.points(v)
			single := []tensor.Shape{{1, len(x)}}
			columns, repeated := [][]float64{x}, [][]float64{x}
			for _, number := range v {
				single = append(single, tensor.Shape{})
				columns = append(columns, []float64{number})
				repeated = append(repeated, filled(len(x), number))
			}
			few := newProgram(t, tensor.Float64, single, func(b *graph.Builder, in []*graph.Node) *graph.Node {
				return f.make(nodes(in[1:])).LogProb(b, in[0])
			})
			many := f.program(t, tensor.Float64, len(x))
			compare(t, "log density", few.step(columns...), many.step(repeated...), always(0), 1e-15)
			if want := (tensor.Shape{1, len(x)}); !few.y.Equal(want) {
				t.Errorf("log density has shape %v, want %v", few.y, want)
			}
			for i := range v {
				sum, size := 0.0, 0.0
				for _, g := range many.gradient(i + 1) {
					sum += g
					size += math.Abs(g)
				}
				compare(t, fmt.Sprint("gradient of parameter ", i), few.gradient(i+1), []float64{sum}, always(1e-13*size), 0)
			}
		})
	}
}

func filled(n int, v float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = v
	}
	return x
}

func TestOutsideTheSupportIsNaN(t *testing.T) {
	for _, c := range []struct {
		d Distribution
		x []float64
	}{
		{Exponential{Rate: Number(2)}, []float64{-1e-9, -3, math.NaN()}},
		{Gamma{Shape: Number(1), Rate: Number(2)}, []float64{-1e-9, -3}},
		{Gamma{Shape: Number(3), Rate: Number(2)}, []float64{-1e-9, -3}},
		{Beta{A: Number(1), B: Number(1)}, []float64{-1e-9, 1.001}},
		{Beta{A: Number(2), B: Number(3)}, []float64{-1e-9, 1.001}},
		{Transformed{Base: Normal{Std: Number(1)}, Bijection: Exp{}}, []float64{-1e-9, -3}},
		{HalfNormal{Std: Number(1)}, []float64{-1e-9, -3}},
		{HalfStudentT{DoF: Number(1), Scale: Number(1)}, []float64{-1e-9, -3}},
		{Uniform{Low: 2, High: 3}, []float64{1.999, 3.001, math.NaN()}},
		{Bernoulli{Logits: Number(0.3)}, []float64{-1, 0.5, 1e-9, 2}},
		{Poisson{Rate: Number(4)}, []float64{-1, 0.5, 2.999, math.Inf(1)}},
		{NegativeBinomial{Mean: Number(4), Shape: Number(2)}, []float64{-1, 0.5, 2.999, math.Inf(1)}},
	} {
		p := sampler(t, tensor.Float64, func(b *graph.Builder) *graph.Node { return c.d.LogProb(b, b.Table("x", c.x)) })
		for i, y := range p.step() {
			if !math.IsNaN(y) {
				t.Errorf("%T: log density at %v is %v, want NaN", c.d, c.x[i], y)
			}
		}
	}
}

// The error of a run that leaves a support names the distribution and the reason.
func TestLeavingTheSupport(t *testing.T) {
	for want, log := range map[string]func(b *graph.Builder) *graph.Node{
		"gamma of an argument outside of the support": func(b *graph.Builder) *graph.Node {
			return Gamma{Shape: Number(3), Rate: Number(2)}.LogProb(b, b.Table("x", []float64{-1}))
		},
		"poisson of an argument that is not a count": func(b *graph.Builder) *graph.Node {
			return Poisson{Rate: Number(3)}.LogProb(b, b.Table("x", []float64{0.5}))
		},
	} {
		b := graph.New(tensor.Float64)
		b.Record("log density", Total(b, log(b)))
		err := b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error { return s.Run(1) })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// A node that leaves its parameter's range must not go unseen either.
func TestNegativeParametersGiveNaN(t *testing.T) {
	for _, f := range families {
		v := f.parameters[1]
		shapes, columns := []tensor.Shape{{1}}, [][]float64{f.points(v)[1:2]}
		for range v {
			shapes = append(shapes, tensor.Shape{})
		}
		p := newProgram(t, tensor.Float64, shapes, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return f.make(nodes(in[1:])).LogProb(b, in[0])
		})
		for bad := range v {
			if f.located() && bad == len(v)-2 {
				continue // a location may be any number
			}
			values := columns
			for i, number := range v {
				if i == bad {
					number = -number - 0.3
				}
				values = append(values, []float64{number})
			}
			if y := p.step(values...); !math.IsNaN(y[0]) {
				t.Errorf("%s: with a negative parameter %d the log density is %v, want NaN", f.name, bad, y[0])
			}
		}
	}
}

// At the ends of the support, where a factor is 0^0.
func TestEndsOfTheSupport(t *testing.T) {
	for _, c := range []struct {
		d    Distribution
		x    float64
		want float64
	}{
		{Exponential{Rate: Number(2)}, 0, math.Ln2},
		{Gamma{Shape: Number(1), Rate: Number(2)}, 0, math.Ln2},
		{Gamma{Shape: Number(3), Rate: Number(2)}, 0, math.Inf(-1)},
		{Gamma{Shape: Number(0.5), Rate: Number(2)}, 0, math.Inf(1)},
		{HalfNormal{Std: Number(2)}, 0, -math.Ln2 + math.Log(2/math.Pi)/2},
		{Uniform{Low: 2, High: 6}, 6, -2 * math.Ln2},
		{Beta{A: Number(1), B: Number(3)}, 0, math.Log(3)},
		{Beta{A: Number(1), B: Number(1)}, 1, 0},
		{Beta{A: Number(3), B: Number(1)}, 1, math.Log(3)},
		{Beta{A: Number(3), B: Number(2)}, 1, math.Inf(-1)},
	} {
		p := sampler(t, tensor.Float64, func(b *graph.Builder) *graph.Node { return c.d.LogProb(b, b.Table("x", []float64{c.x})) })
		compare(t, fmt.Sprintf("%T at %v", c.d, c.x), p.step(), []float64{c.want}, always(1e-15), 1e-15)
	}
}

// Student's t-distribution has a finite log density, and its slope -(v+1)/z, where z^2 overflows.
func TestStudentTFarOut(t *testing.T) {
	for dtype, far := range map[tensor.DType][]float64{
		tensor.Float32: {0x1p39, 0x1p41, -0x1p80, 0x1p127}, tensor.Float64: {0x1p399, 0x1p401, -1e155, 1e300, math.MaxFloat64},
	} {
		const dof = 2.5
		x := append([]float64{0, 1}, far...)
		p := newProgram(t, dtype, []tensor.Shape{{len(x)}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return StudentT{DoF: Number(dof), Scale: Number(1)}.LogProb(b, in[0])
		})
		got, slopes := p.step(x), p.gradient(0)
		for i, v := range x[2:] {
			want := got[0] - (dof+1)/2*(2*math.Log(math.Abs(v))-math.Log(dof))
			if math.Abs(got[2+i]/want-1) > 1e-6 {
				t.Errorf("%v: log density %v at %v, want %v", dtype, got[2+i], v, want)
			}
			if want := -(dof + 1) / v; math.Abs(slopes[2+i]/want-1) > 1e-6 {
				t.Errorf("%v: slope %v at %v, want %v", dtype, slopes[2+i], v, want)
			}
		}
	}
}
