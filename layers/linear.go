package layers

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// Linear is the fully connected layer y = x W' + bias: x [B I], weight [O I], bias [O] -> y [B O].
// For images put a Flatten before it.
type Linear struct {
	Name    string // by default "linear" and a number
	Outputs int    // O
	NoBias  bool
	Weight  Initializer // nil means He{}
	Bias    Initializer // nil means zeros
}

// Apply implements Layer.
func (l Linear) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	name, leave := enter(b, l.Name, "linear")
	defer leave()
	if !checkAxes(b, name, x, 2, "[B I], which a Flatten makes of images") || !checkLimits(b, name, l) {
		return nil
	}
	y := b.Apply(op.MatMul{TransposeB: true}, x, addWeight(b, name, l.Weight, l.Outputs, graph.ShapeOf(x)[1]))
	if l.NoBias {
		return y
	}
	return addBias(b, name, l.Bias, y)
}

func (l Linear) limits() []limit { return []limit{atLeast("Outputs", l.Outputs, 1)} }

// Flatten is x with one axis for all elements of an example: x [B ...] -> y [B elements].
type Flatten struct{}

// Apply implements Layer.
func (Flatten) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	return apply(b, "flatten", op.Flatten(x), x)
}
