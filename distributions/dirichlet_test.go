package distributions

import (
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// SciPy's dirichlet.logpdf gives these.
func TestDirichlet(t *testing.T) {
	concentrations := []float64{1, 1, 1, 0.5, 2, 7.5, 100, 30, 2, 2, 2, 2}
	x := []float64{0.2, 0.3, 0.5, 0.01, 0.04, 0.95, 0.7, 0.29, 0.01, 0.6, 0.3, 0.1}
	want := []float64{0.6931471805599453, 3.4454011550048014, 4.802432368523043, 0.7701082216960735}
	shape := tensor.Shape{4, 3}
	p := newProgram(t, tensor.Float64, []tensor.Shape{shape, shape}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
		return Dirichlet{Concentration: Node(in[1])}.LogProb(b, in[0])
	})
	compare(t, "log density", p.step(x, concentrations), want, always(1e-12), 1e-13)
	for i := range want {
		row := func(v []float64) []float64 { return v[3*i : 3*i+3] }
		p := newProgram(t, tensor.Float64, []tensor.Shape{{3}, {3}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return Dirichlet{Concentration: Node(in[1])}.LogProb(b, in[0])
		})
		compare(t, fmt.Sprint("log density of vector ", i), p.step(row(x), row(concentrations)), want[i:i+1], always(1e-12), 1e-13)
	}
	p = sampler(t, tensor.Float64, func(b *graph.Builder) *graph.Node {
		return Dirichlet{Concentration: Number(2)}.LogProb(b, b.Table("x", x[9:]))
	})
	compare(t, "with a number", p.step(), want[3:], always(1e-14), 1e-13)
	for _, shape := range []tensor.Shape{{}, {1}, {1, 1}, {4, 1}} {
		p = newProgram(t, tensor.Float64, []tensor.Shape{{4, 3}, shape}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			return Dirichlet{Concentration: Node(in[1])}.LogProb(b, in[0])
		})
		compare(t, fmt.Sprint("with a node ", shape), p.step(x, filled(shape.Elements(), 2))[3:], want[3:], always(1e-14), 1e-13)
	}
	p = sampler(t, tensor.Float64, func(b *graph.Builder) *graph.Node {
		return Dirichlet{Concentration: Number(1)}.LogProb(b, b.Table("x", []float64{0.2, 0.7, 1.2, -0.2}, 2, 2))
	})
	for i, y := range p.step() {
		if !math.IsNaN(y) {
			t.Errorf("the log density of vector %d, which is not one of probabilities, is %v, want NaN", i, y)
		}
	}
}

func TestSimplex(t *testing.T) {
	const n, step = 121, 0.5
	var x []float64
	for i := range n * n {
		x = append(x, step*float64(i/n-n/2), step*float64(i%n-n/2))
	}
	value := newProgram(t, tensor.Float64, []tensor.Shape{{n * n, 2}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
		value, _ := Simplex(b, in[0])
		return value
	})
	y := value.step(x)
	for i := range n * n {
		if sum := y[3*i] + y[3*i+1] + y[3*i+2]; math.Abs(sum-1) > 1e-14 {
			t.Fatalf("the probabilities %v add up to %v", y[3*i:3*i+3], sum)
		}
	}
	for _, c := range [][]float64{{1, 1, 1}, {2, 0.7, 1.5}, {3, 8, 2}} {
		p := newProgram(t, tensor.Float64, []tensor.Shape{{n * n, 2}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
			value, logJacobian := Simplex(b, in[0])
			return b.Apply(op.Add{}, Dirichlet{Concentration: Node(b.Table("c", c))}.LogProb(b, value), logJacobian)
		})
		sum := 0.0
		for _, density := range p.step(x) {
			sum += math.Exp(density) * step * step
		}
		if math.Abs(sum-1) > 1e-6 {
			t.Errorf("the Dirichlet density %v integrates to %v", c, sum)
		}
	}
	single := newProgram(t, tensor.Float64, []tensor.Shape{{2}}, func(b *graph.Builder, in []*graph.Node) *graph.Node {
		_, logJacobian := Simplex(b, in[0])
		return logJacobian
	})
	a, c := math.Exp(0.3), math.Exp(-1.2)
	compare(t, "log Jacobian", single.step([]float64{0.3, -1.2}), []float64{0.3 - 1.2 - 3*math.Log(1+a+c)}, always(1e-14), 0)
	sum := 1 + a + c
	compare(t, "its gradient", single.gradient(0), []float64{1 - 3*a/sum, 1 - 3*c/sum}, always(1e-14), 0)
}
