package distributions

import (
	"fmt"
	"math"
	"sort"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

const draws = 100000

// bound is how many standard errors a statistic may be off, exceeded by chance once in 300 000.
const bound = 4.5

var samples = []struct {
	name      string
	d         func(v []Value) Reparameterised
	v         []float64
	reference interface {
		CDF(x float64) float64
		Mean() float64
		Variance() float64
		ExKurtosis() float64
	}
	// The derivatives of E[x^2] by the parameters.
	slopes []float64
}{
	{
		"normal", func(v []Value) Reparameterised { return Normal{Mean: v[0], Std: v[1]} },
		[]float64{0.7, 1.5}, distuv.Normal{Mu: 0.7, Sigma: 1.5}, []float64{2 * 0.7, 2 * 1.5},
	},
	{
		"laplace", func(v []Value) Reparameterised { return Laplace{Location: v[0], Scale: v[1]} },
		[]float64{-0.4, 2}, distuv.Laplace{Mu: -0.4, Scale: 2}, []float64{2 * -0.4, 4 * 2},
	},
	{
		"exponential", func(v []Value) Reparameterised { return Exponential{Rate: v[0]} },
		[]float64{0.3}, distuv.Exponential{Rate: 0.3}, []float64{-4 / (0.3 * 0.3 * 0.3)},
	},
	{
		"half-normal", func(v []Value) Reparameterised { return HalfNormal{Std: v[0]} },
		[]float64{1.5}, halfNormal{1.5}, []float64{2 * 1.5},
	},
	{
		"uniform", func([]Value) Reparameterised { return Uniform{Low: -1, High: 3} },
		nil, distuv.Uniform{Min: -1, Max: 3}, nil,
	},
	{
		"log-normal", func(v []Value) Reparameterised {
			return Transformed{Base: Normal{Mean: v[0], Std: v[1]}, Bijection: Exp{}}
		},
		[]float64{0.2, 0.3}, distuv.LogNormal{Mu: 0.2, Sigma: 0.3},
		[]float64{2 * math.Exp(0.4+2*0.09), 4 * 0.3 * math.Exp(0.4+2*0.09)},
	},
}

type halfNormal struct{ std float64 }

func (h halfNormal) CDF(x float64) float64 { return math.Erf(max(x, 0) / h.std / math.Sqrt2) }
func (h halfNormal) Mean() float64         { return h.std * math.Sqrt(2/math.Pi) }
func (h halfNormal) Variance() float64     { return h.std * h.std * (1 - 2/math.Pi) }
func (halfNormal) ExKurtosis() float64     { return 8 * (math.Pi - 3) / (math.Pi - 2) / (math.Pi - 2) }

func TestRSampleMoments(t *testing.T) {
	for _, c := range samples {
		for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
			t.Run(fmt.Sprint(c.name, " ", dtype), func(t *testing.T) {
				p := sampler(t, dtype, func(b *graph.Builder) *graph.Node { return c.d(numbers(c.v)).RSample(b, draws) })
				x := p.step()
				again := p.step()
				if correlation := stat.Correlation(x, again, nil) * math.Sqrt(draws); math.Abs(correlation) > bound {
					t.Errorf("two steps correlate: z = %.2f", correlation)
				}
				mean, variance := stat.MeanVariance(x, nil)
				score := (mean - c.reference.Mean()) / math.Sqrt(c.reference.Variance()/draws)
				if !(math.Abs(score) < bound) {
					t.Errorf("mean is %v, want %v: z = %.2f", mean, c.reference.Mean(), score)
				}
				score = (variance/c.reference.Variance() - 1) / math.Sqrt((c.reference.ExKurtosis()+2)/draws)
				if !(math.Abs(score) < bound) {
					t.Errorf("variance is %v, want %v: z = %.2f", variance, c.reference.Variance(), score)
				}
				// Kolmogorov-Smirnov: beyond 2.7/sqrt(n) once in a million.
				sort.Float64s(x)
				distance := 0.0
				for i, v := range x {
					cdf := c.reference.CDF(v)
					distance = max(distance, (float64(i)+1)/draws-cdf, cdf-float64(i)/draws)
				}
				if !(distance*math.Sqrt(draws) < 2.7) {
					t.Errorf("largest distance from the distribution function is %v, %.2f / sqrt(n)", distance, distance*math.Sqrt(draws))
				}
			})
		}
	}
}

// sampler is a program without parameters: y is a sample, or a function of tables.
func sampler(t *testing.T, dtype tensor.DType, sample func(b *graph.Builder) *graph.Node) *program {
	t.Helper()
	b := graph.New(dtype)
	y := sample(b)
	b.Output("y", y)
	compiled, err := b.Compile()
	if err != nil {
		t.Fatalf("%+v", err)
	}
	host := tensor.NewHost(1)
	t.Cleanup(func() { host.Close() })
	session, err := compiled.Load(host, graph.LoadOptions{Seed: 18})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return &program{t: t, dtype: dtype, session: session, y: graph.ShapeOf(y)}
}

// The mean, over many samples x of one parameter each, of the derivative of x^2 is the derivative
// of its expectation.
func TestPathwiseGradients(t *testing.T) {
	for _, c := range samples {
		if len(c.v) == 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			var shapes []tensor.Shape
			var columns [][]float64
			for _, v := range c.v {
				shapes = append(shapes, tensor.Shape{draws})
				columns = append(columns, filled(draws, v))
			}
			p := newProgram(t, tensor.Float32, shapes, func(b *graph.Builder, in []*graph.Node) *graph.Node {
				return b.Apply(op.Squared{}, c.d(nodes(in)).RSample(b, draws))
			})
			p.step(columns...)
			for i, want := range c.slopes {
				mean, std := stat.MeanStdDev(p.gradient(i), nil)
				if score := (mean - want) / (std / math.Sqrt(draws)); !(math.Abs(score) < bound) {
					t.Errorf("derivative by parameter %d is %v, want %v: z = %.2f", i, mean, want, score)
				}
			}
		})
	}
}

// Two samples of one graph are independent, as are chains.
func TestSamplesAreIndependent(t *testing.T) {
	const n = 4096
	b := graph.New(tensor.Float32)
	d := Normal{Std: Number(1)}
	b.Output("one", d.RSample(b, n))
	b.Output("other", d.RSample(b, 64, 64))
	compiled, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	host := tensor.NewHost(2)
	defer host.Close()
	s, err := compiled.Load(host, graph.LoadOptions{Seed: 3, Chains: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(1); err != nil {
		t.Fatal(err)
	}
	var all [][]float64
	for chain := range 2 {
		for _, name := range []string{"one", "other"} {
			narrow, wide := make([]float32, n), make([]float64, n)
			if err := graph.Read(s, name, chain, 0, narrow); err != nil {
				t.Fatal(err)
			}
			for i, v := range narrow {
				wide[i] = float64(v)
			}
			all = append(all, wide)
		}
	}
	for i := range all {
		for j := range i {
			if z := stat.Correlation(all[i], all[j], nil) * math.Sqrt(n); math.Abs(z) > bound {
				t.Errorf("samples %d and %d correlate: z = %.2f", i, j, z)
			}
		}
	}
}

// TestUniformSampleInSupport: the sum of low and the width, the sample where u is 1, is not above
// high.
func TestUniformSampleInSupport(t *testing.T) {
	d := Uniform{Low: -1.261, High: -0.186}
	if d.Low+(d.High-d.Low) <= d.High {
		t.Fatal("the sum does not round to a number above high")
	}
	b := graph.New(tensor.Float64)
	d.RSample(b, 3)
	all := b.Applications()
	if clip, ok := all[len(all)-1].Op.(op.Clip); !ok || clip.Low != d.Low || clip.High != d.High {
		t.Errorf("the sample is computed by %+v, want a Clip to the support", all[len(all)-1].Op)
	}
}
