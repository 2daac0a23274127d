package distributions

import (
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// counts are distributions of counts, with logarithms of probabilities by SciPy: poisson.logpmf
// and nbinom.logpmf(x, shape, shape/(shape + mean)).
var counts = []struct {
	name string
	make func(v []Value) Distribution
	x    []float64
	rows []countsRow
}{
	{
		"poisson", func(v []Value) Distribution { return Poisson{Rate: v[0]} }, []float64{0, 1, 7, 300},
		[]countsRow{
			{[]float64{1e-6}, []float64{-1e-06, -13.815511557964273, -105.23373626681533, -5559.55901833435}},
			{[]float64{0.3}, []float64{-0.3, -1.5039728043259362, -17.252970991346967, -1776.3976912428486}},
			{[]float64{4}, []float64{-4, -2.613705638880109, -2.821100833226181, -1003.0175416091006}},
			{[]float64{250}, []float64{-250, -244.47853908213776, -219.8749349360297, -8.467574586393994}},
		},
	},
	{
		"negative binomial", func(v []Value) Distribution { return NegativeBinomial{Mean: v[0], Shape: v[1]} }, []float64{0, 1, 6, 90},
		[]countsRow{
			{[]float64{0.01, 0.5}, []float64{-0.009901313648089877, -4.634874126932359, -25.08990920507169, -356.6978669186717}},
			{[]float64{3, 2.5}, []float64{-1.9711434009106754, -1.660988472606836, -2.9226250475145923, -50.03765348663438}},
			{[]float64{40, 0.1}, []float64{-0.599396142730657, -2.90447811592329, -4.487336579460983, -7.127157455438277}},
			{[]float64{20, 97}, []float64{-18.18390676055421, -15.375637443294591, -7.761746116604735, -51.17456174601038}},
			{[]float64{20, 97.5}, []float64{-18.192130669090187, -15.382984351116606, -7.7654723463757955, -51.23776252046601}},
			{[]float64{200, 1e4}, []float64{-198.02627296179753, -192.7477582225407, -172.93293601322625, -40.7132755562011}},
		},
	},
}

// countsRow has the logarithms of the probabilities of x for some parameters.
type countsRow struct{ v, want []float64 }

func TestCounts(t *testing.T) {
	for _, c := range counts {
		for _, row := range c.rows {
			name := fmt.Sprint(c.name, row.v)
			tolerance := always(1e-14)
			p := sampler(t, tensor.Float64, func(b *graph.Builder) *graph.Node { return c.make(numbers(row.v)).LogProb(b, b.Table("x", c.x)) })
			compare(t, name+" with numbers", p.step(), row.want, tolerance, 1e-13)

			n := len(c.x)
			var shapes []tensor.Shape
			var columns [][]float64
			for _, v := range row.v {
				shapes, columns = append(shapes, tensor.Shape{n}), append(columns, filled(n, v))
			}
			p = newProgram(t, tensor.Float64, shapes, func(b *graph.Builder, in []*graph.Node) *graph.Node {
				return c.make(nodes(in)).LogProb(b, b.Table("x", c.x))
			})
			compare(t, name+" with nodes", p.step(columns...), row.want, tolerance, 1e-13)
			for i, v := range row.v {
				p.step(columns...)
				got := p.gradient(i)
				slopes, rounding := p.slopes(i, filled(n, 0x1p-8*v), columns...)
				compare(t, fmt.Sprint(name, ": gradient of parameter ", i), got, slopes, func(i int) float64 { return 1e-8 + 8*rounding[i] }, 1e-7)
			}
		}
	}
}

func TestCountsAddUpToOne(t *testing.T) {
	var x []float64
	for i := range 20000 {
		x = append(x, float64(i))
	}
	for _, c := range counts {
		for _, row := range c.rows {
			p := sampler(t, tensor.Float64, func(b *graph.Builder) *graph.Node { return c.make(numbers(row.v)).LogProb(b, b.Table("x", x)) })
			sum, mean := 0.0, 0.0
			for i, y := range p.step() {
				sum, mean = sum+math.Exp(y), mean+math.Exp(y)*x[i]
			}
			if math.Abs(sum-1) > 1e-9 || math.Abs(mean/row.v[0]-1) > 1e-9 {
				t.Errorf("%s%v: the probabilities add up to %v, the mean is %v", c.name, row.v, sum, mean)
			}
		}
	}
}

// TestLargeShape: a negative binomial distribution of large shape is nearly a Poisson distribution.
// Its logarithm, ln P = ln Poisson + ((x - mean)^2 - x)/(2 shape) + O(1/shape^2), and the slope by
// the logarithm of the shape keep their digits.
func TestLargeShape(t *testing.T) {
	x, mean := []float64{0, 3, 12, 31}, 10.0
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for _, shape := range []float64{99, 1e4, 1e5, 1e6, 1e9} {
			p := newProgram(t, dtype, []tensor.Shape{{len(x)}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
				return NegativeBinomial{Mean: Number(mean), Shape: Node(in[0])}.LogProb(b, b.Table("x", x))
			})
			known := sampler(t, dtype, func(b *graph.Builder) *graph.Node {
				return NegativeBinomial{Mean: Number(mean), Shape: Number(shape)}.LogProb(b, b.Table("x", x))
			}).step()
			y, slope := p.step(filled(len(x), shape)), p.gradient(0)
			for i, v := range x {
				rounding := 2e-5 + 1e-7*v*math.Log(shape)
				if dtype == tensor.Float64 {
					rounding = 1e-12
				}
				factorial, _ := math.Lgamma(v + 1)
				first := ((v-mean)*(v-mean) - v) / 2
				want, next := v*math.Log(mean)-mean-factorial+first/shape, 5e3/(shape*shape)
				for _, got := range []float64{y[i], known[i]} {
					if math.Abs(got-want) > rounding+next {
						t.Errorf("%v, shape %v: ln P(%v) is %v, want %v", dtype, shape, v, got, want)
					}
				}
				if got, want := slope[i]*shape, -first/shape; math.Abs(got-want) > rounding+2*next {
					t.Errorf("%v, shape %v: the slope of ln P(%v) is %v, want %v", dtype, shape, v, got, want)
				}
			}
		}
	}
}
