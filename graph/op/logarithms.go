package op

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Log1p is y = ln(1 + x), elementwise, exact to rounding for small x: x [...] -> y [...]. It is
// -Inf at -1 and NaN below. Densities with algebraic tails use it.
type Log1p struct{ elementwise[Log1p] }

func (Log1p) unary() unary {
	return unary{
		name:       "log1p",
		value:      math.Log1p,
		derivative: func(x float64) float64 { return 1 / (1 + x) },
	}
}

// LogAddExp is y = ln(e^a + e^b), elementwise with NumPy's broadcasting, computed as
// max(a, b) + ln(1 + e^-|a-b|): a [...], b [...] -> y. The densities of mixtures use it.
type LogAddExp struct{}

// Name implements graph.Op.
func (LogAddExp) Name() string { return "logaddexp" }

// Shape implements graph.Op.
func (LogAddExp) Shape(in []tensor.Shape) (tensor.Shape, error) { return broadcast(in) }

// Lower implements graph.Op.
func (LogAddExp) Lower(l *graph.Lowering) {
	lowerArithmetic(l, "logaddexp", logAddExp[float32], logAddExp[float64])
}

// Gradients implements graph.Differentiable: da = dout / (1 + e^(b-a)), db = dout - da.
func (LogAddExp) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	share := b.Apply(Sigmoid{}, b.Apply(Subtract{}, in[0], in[1]))
	da := b.Apply(Multiply{}, dout, share)
	return []*graph.Node{unbroadcast(b, da, in[0]), unbroadcast(b, b.Apply(Subtract{}, dout, da), in[1])}
}

func logAddExp[T float32 | float64](y, a, b []T) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		larger, smaller := float64(max(a[i], b[i])), float64(min(a[i], b[i]))
		if larger == smaller { // the difference of two infinities is NaN
			y[i] = T(larger + math.Ln2)
			continue
		}
		y[i] = T(larger + math.Log1p(math.Exp(smaller-larger)))
	}
}
