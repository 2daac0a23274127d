package layers

import (
	"cmp"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// Conv2D is a convolution with a square kernel, see op.Conv2D, plus a bias:
// x [B C H W], weight [K C R R], bias [K] -> y [B K P Q].
type Conv2D struct {
	Name     string // by default "conv" and a number
	Filters  int    // K
	Kernel   int    // R
	Stride   int    // 0 means 1
	Padding  int    // zeros on each side
	Dilation int    // 0 means 1
	NoBias   bool
	Weight   Initializer // nil means He{}
	Bias     Initializer // nil means zeros
}

// Apply implements Layer.
func (c Conv2D) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	name, leave := enter(b, c.Name, "conv")
	defer leave()
	stride, dilation := cmp.Or(c.Stride, 1), cmp.Or(c.Dilation, 1)
	sliding := window{size: c.Kernel, dilation: dilation, padding: c.Padding}
	if !checkAxes(b, name, x, 4, "[B C H W]") || !checkLimits(b, name, c) || !checkFits(b, name, x, sliding) {
		return nil
	}
	convolution := op.Conv2D{Stride: op.Square(stride), Padding: op.Square(c.Padding), Dilation: op.Square(dilation)}
	y := b.Apply(convolution, x, addWeight(b, name, c.Weight, c.Filters, graph.ShapeOf(x)[1], c.Kernel, c.Kernel))
	if c.NoBias {
		return y
	}
	return addBias(b, name, c.Bias, y)
}

func (c Conv2D) limits() []limit {
	return []limit{
		atLeast("Filters", c.Filters, 1), atLeast("Kernel", c.Kernel, 1),
		atLeastIfSet("Stride", c.Stride, 1), atLeast("Padding", c.Padding, 0), atLeastIfSet("Dilation", c.Dilation, 1),
	}
}
