package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// Clip is y = min(max(x, Low), High), elementwise: x [...] -> y [...]. Low must not be above High;
// either may be infinite. NaN stays NaN. Gradients pass where Low < y < High and are 0 elsewhere.
// With Low = 0 and High = 6 it is ReLU6 (Howard et al., MobileNets, 2017). Convolutions fuse a Clip
// whose Low is 0.
type Clip struct {
	Low, High float64
}

// Name implements graph.Op.
func (Clip) Name() string { return "clip" }

// Shape implements graph.Op.
func (c Clip) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if !(c.Low <= c.High) {
		return nil, errors.Errorf("low must be at most high, got %v and %v", c.Low, c.High)
	}
	return unaryShape(in)
}

// Lower implements graph.Op.
func (c Clip) Lower(l *graph.Lowering) { lowerUnary(l, c.unary()) }

// Gradients implements graph.Differentiable.
func (c Clip) Gradients(b *graph.Builder, in []*graph.Node, y, dout *graph.Node) []*graph.Node {
	return unaryGradients(b, c, in[0], y, dout)
}

func (c Clip) unary() unary {
	low, high := float32(c.Low), float32(c.High)
	return unary{
		name:  c.Name(),
		value: func(x float64) float64 { return min(max(x, c.Low), c.High) },
		derivative: func(y float64) float64 {
			if y > c.Low && y < c.High {
				return 1
			}
			return 0
		},
		fromOutput: true,
		constants:  []float64{c.Low, c.High},
		values: func(y, x []float32) {
			kernel.Clip(y, x, low, high)
		},
		gradients: func(dx, dout, y []float32) {
			kernel.PassWithin(dx, dout, y, low, high)
		},
	}
}
