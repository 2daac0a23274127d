package distributions

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

// column reads the last column of a table of the optional development data.
func column(t *testing.T, name string) []float64 {
	t.Helper()
	path := "../../shared/data/" + name
	file, err := os.Open(path)
	if err != nil {
		t.Skipf("the optional data %s is absent", path)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var values []float64
	for _, row := range rows[1:] {
		v, err := strconv.ParseFloat(row[len(row)-1], 64)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	return values
}

// tiedMeans is the log posterior of Welling and Teh's mixture: theta1 ~ N(0, 10), theta2 ~ N(0, 1),
// data ~ N(theta1, 2)/2 + N(theta1 + theta2, 2)/2, with variances as second arguments. Thetas [G 1]
// give the density at each of G places, [G].
func tiedMeans(b *graph.Builder, theta1, theta2, data *graph.Node) *graph.Node {
	std := Number(math.Sqrt2)
	likelihood := Mixture{Components: []Distribution{
		Normal{Mean: Node(theta1), Std: std},
		Normal{Mean: Node(b.Apply(op.Add{}, theta1, theta2)), Std: std},
	}}.LogProb(b, data)
	prior := b.Apply(op.Add{},
		Normal{Std: Number(math.Sqrt(10))}.LogProb(b, theta1),
		Normal{Std: Number(1)}.LogProb(b, theta2))
	last := op.AxesOf(len(graph.ShapeOf(likelihood)) - 1)
	return b.Apply(op.Add{}, b.Apply(op.Sum{Axes: last}, likelihood), b.Apply(op.Sum{Axes: last}, prior))
}

// tiedMeansOf is the same as plain loops.
func tiedMeansOf(theta1, theta2 float64, data []float64) float64 {
	normal := func(x, mean, variance float64) float64 {
		return math.Exp(-(x-mean)*(x-mean)/(2*variance)) / math.Sqrt(2*math.Pi*variance)
	}
	total := math.Log(normal(theta1, 0, 10)) + math.Log(normal(theta2, 0, 1))
	for _, x := range data {
		total += math.Log(normal(x, theta1, 2)/2 + normal(x, theta1+theta2, 2)/2)
	}
	return total
}

func TestTiedMeans(t *testing.T) {
	data := column(t, "mixture100.csv")
	var theta1, theta2, want []float64
	for _, theta := range [][2]float64{{0, 1}, {1, -1}, {-0.2525, 1.55}, {1.2875, -1.55}, {3, 0}, {-4, 6}} {
		theta1, theta2 = append(theta1, theta[0]), append(theta2, theta[1])
		want = append(want, tiedMeansOf(theta[0], theta[1], data))
	}
	n := len(want)
	shapes := []tensor.Shape{{n, 1}, {n, 1}}
	build := func(b *graph.Builder, in []*graph.Node) *graph.Node {
		return tiedMeans(b, in[0], in[1], b.Table("data", data))
	}
	p := newProgram(t, tensor.Float64, shapes, build)
	compare(t, "log posterior", p.step(theta1, theta2), want, always(0), 1e-13)
	for i := range shapes {
		p.step(theta1, theta2)
		got := p.gradient(i)
		slopes, rounding := p.slopes(i, filled(n, 1e-3), theta1, theta2)
		compare(t, fmt.Sprint("gradient of theta", i+1), got, slopes, func(i int) float64 { return 1e-7 + rounding[i] }, 1e-7)
	}
	narrow := newProgram(t, tensor.Float32, shapes, build)
	compare(t, "log posterior in float32", narrow.step(theta1, theta2), want, always(0), 1e-6)
	for i := range shapes {
		p.step(theta1, theta2)
		compare(t, fmt.Sprint("gradient in float32 of theta", i+1), narrow.gradient(i), p.gradient(i), always(1e-4), 1e-5)
	}
}

// The posterior's moments, by quadrature on a grid, are the published ones.
func TestTiedMeansMoments(t *testing.T) {
	data := column(t, "mixture100.csv")
	const n = 81
	var theta1, theta2 []float64
	for i := range n {
		for j := range n {
			theta1 = append(theta1, 0.5+4*(float64(i)/(n-1)-0.5))
			theta2 = append(theta2, 9*(float64(j)/(n-1)-0.5))
		}
	}
	p := newProgram(t, tensor.Float64, []tensor.Shape{{n * n, 1}, {n * n, 1}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
		return tiedMeans(b, in[0], in[1], b.Table("data", data))
	})
	density := p.step(theta1, theta2)
	var mass, mean1, mean2, square1, square2, product float64
	for i, logDensity := range density {
		w := math.Exp(logDensity - density[n*n/2])
		mass += w
		mean1 += w * theta1[i]
		mean2 += w * theta2[i]
		square1 += w * theta1[i] * theta1[i]
		square2 += w * theta2[i] * theta2[i]
		product += w * theta1[i] * theta2[i]
	}
	mean1, mean2 = mean1/mass, mean2/mass
	deviation1, deviation2 := math.Sqrt(square1/mass-mean1*mean1), math.Sqrt(square2/mass-mean2*mean2)
	correlation := (product/mass - mean1*mean2) / (deviation1 * deviation2)
	got := []float64{mean1, mean2, deviation1, deviation2, correlation}
	compare(t, "means, deviations, correlation", got, []float64{0.48999, 0.05930, 0.7695, 1.5097, -0.978}, always(6e-4), 0)
}

// volatility is the log posterior of the stochastic volatility model: deviation ~ Exp(10),
// freedom ~ Exp(0.1), s_0 ~ N(0, 100), s_i ~ N(s_{i-1}, deviation^2),
// return_i ~ Student-t(freedom, 0, exp(s_i)); the second arguments of N are variances. It is a
// density of the logarithms of std and dof, and of x: the walk s itself when centred,
// else its innovations (s_i - s_{i-1}) / deviation.
func volatility(b *graph.Builder, logStd, logFreedom, x *graph.Node, returns []float64, centred bool) *graph.Node {
	n := len(returns)
	first, later := make([]float64, n), filled(n, 1)
	first[0], later[0] = 10, 0
	std, jacobian1 := Constrained(b, logStd, Exp{})
	dof, jacobian2 := Constrained(b, logFreedom, Exp{})
	scale := b.Apply(op.Add{}, b.Table("first", first), b.Apply(op.Multiply{}, b.Table("later", later), std))

	s := x
	walk := Normal{Std: Number(1)}.LogProb(b, x)
	if centred {
		walk = Normal{Std: Node(scale)}.LogProb(b, b.Apply(array.Difference{}, s))
	} else {
		s = b.Apply(array.CumulativeSum{}, b.Apply(op.Multiply{}, scale, x))
	}
	likelihood := StudentT{DoF: Node(dof), Scale: Node(b.Apply(op.Exp{}, s))}.LogProb(b, b.Table("returns", returns))
	return Total(b, walk, likelihood, jacobian1, jacobian2,
		Exponential{Rate: Number(10)}.LogProb(b, std), Exponential{Rate: Number(0.1)}.LogProb(b, dof))
}

// volatilityOf is the same as a plain loop.
func volatilityOf(logStd, logFreedom float64, x, returns []float64, centred bool) float64 {
	std, dof := math.Exp(logStd), math.Exp(logFreedom)
	total := math.Log(10) - 10*std + logStd + math.Log(0.1) - 0.1*dof + logFreedom
	upper, _ := math.Lgamma((dof + 1) / 2)
	lower, _ := math.Lgamma(dof / 2)
	s := 0.0
	for i, r := range returns {
		scale := std
		if i == 0 {
			scale = 10
		}
		innovation := x[i]
		if centred {
			innovation = (x[i] - s) / scale
			total -= math.Log(scale)
		}
		s += scale * innovation
		total -= innovation*innovation/2 + math.Log(2*math.Pi)/2
		z := r / math.Exp(s)
		total += upper - lower - math.Log(math.Pi*dof)/2 - s - (dof+1)/2*math.Log(1+z*z/dof)
	}
	return total
}

func TestStochasticVolatility(t *testing.T) {
	closes := column(t, "sp500.csv")
	var returns []float64
	for i := range closes[1:] {
		returns = append(returns, math.Log(closes[i+1]/closes[i]))
	}
	n := len(returns)
	if n != 2905 {
		t.Fatalf("%d log returns, want 2905", n)
	}
	for _, centred := range []bool{false, true} {
		t.Run(fmt.Sprint("centred ", centred), func(t *testing.T) {
			// Near the bulk of the posterior: a scale of one percent that moves by a tenth.
			x := make([]float64, n)
			for i := range x {
				x[i] = math.Sin(float64(i * i))
			}
			x[0] = math.Log(0.01) / 10
			if centred {
				x[0] *= 10
				for i := range x[1:] {
					x[i+1] = x[i] + 0.1*x[i+1]
				}
			}
			values := [][]float64{{math.Log(0.1)}, {math.Log(9.75)}, x}
			shapes := []tensor.Shape{{}, {}, {n}}
			build := func(b *graph.Builder, in []*graph.Node) *graph.Node {
				return volatility(b, in[0], in[1], in[2], returns, centred)
			}
			p := newProgram(t, tensor.Float64, shapes, build)
			reference := func() float64 { return volatilityOf(values[0][0], values[1][0], x, returns, centred) }
			compare(t, "log posterior", p.step(values...), []float64{reference()}, always(0), 1e-12)
			var gradients [][]float64
			for i := range shapes {
				gradients = append(gradients, p.gradient(i))
				slope := func(j int) float64 {
					const h = 1e-4
					at, total := values[i][j], 0.0
					for side, weight := range map[float64]float64{-2: 1, -1: -8, 1: 8, 2: -1} {
						values[i][j] = at + side*h
						total += weight * reference() / (12 * h)
					}
					values[i][j] = at
					return total
				}
				for _, j := range []int{0, 1, 2, 33, 257, 1000, 2000, n - 2, n - 1} {
					if j < len(values[i]) {
						what := fmt.Sprintf("gradient of input %d, element %d", i, j)
						compare(t, what, gradients[i][j:j+1], []float64{slope(j)}, always(1e-5), 1e-6)
					}
				}
			}
			narrow := newProgram(t, tensor.Float32, shapes, build)
			compare(t, "log posterior in float32", narrow.step(values...), []float64{reference()}, always(0), 1e-6)
			for i := range shapes {
				size := 0.0
				for _, g := range gradients[i] {
					size = max(size, math.Abs(g))
				}
				compare(t, fmt.Sprint("gradient in float32 of input ", i), narrow.gradient(i), gradients[i], always(1e-5*size), 1e-5)
			}
		})
	}
}
