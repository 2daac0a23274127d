package op

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Restrict is y = x where Low <= x <= High, else NaN, elementwise: x [...] -> y [...]. Low must be
// below High; either may be infinite. In float32 they are rounded, so that x may be equal to them.
// Gradients pass unchanged. Densities use it, so that an argument outside their support is
// detected, see graph.NotFinite.
type Restrict struct {
	Low, High float64
}

// Name implements graph.Op.
func (Restrict) Name() string { return "restrict" }

// Shape implements graph.Op.
func (r Restrict) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if !(r.Low < r.High) {
		return nil, errors.Errorf("low must be below high, got %v and %v", r.Low, r.High)
	}
	return unaryShape(in)
}

// Lower implements graph.Op.
func (r Restrict) Lower(l *graph.Lowering) { lowerUnary(l, r.unary()) }

// Gradients implements graph.Differentiable.
func (Restrict) Gradients(_ *graph.Builder, _ []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{dout}
}

func (r Restrict) unary() unary {
	return unary{
		name:      r.Name(),
		value:     func(x float64) float64 { return restricted(x, r.Low, r.High) },
		constants: []float64{r.Low, r.High},
		values: func(y, x []float32) {
			low, high := float32(r.Low), float32(r.High)
			for i, v := range x {
				y[i] = restricted(v, low, high)
			}
		},
	}
}

func restricted[T float32 | float64](x, low, high T) T {
	if low <= x && x <= high {
		return x
	}
	return T(math.NaN())
}
