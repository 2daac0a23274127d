package distributions

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Distribution is the distribution of a number, or of several independent ones.
type Distribution interface {
	// LogProb returns the logarithm of the density, or of the probability when x is discrete,
	// element by element: x [...] -> [...], the broadcast shape of x and the parameters.
	LogProb(b *graph.Builder, x *graph.Node) *graph.Node
}

// Reparameterised is a Distribution whose samples are differentiable functions of its parameters
// and of noise that does not depend on them. Source: Kingma and Welling, Auto-encoding variational
// Bayes (2014), section 2.4.
type Reparameterised interface {
	Distribution
	// RSample returns a node of samples of the given shape, to which parameters broadcast. The
	// samples are new in each chain and step.
	RSample(b *graph.Builder, shape ...int) *graph.Node
}

// Total returns the sum of all elements of all terms, a scalar: a log posterior from its log
// densities and log Jacobians.
func Total(b *graph.Builder, terms ...*graph.Node) *graph.Node {
	if len(terms) == 0 {
		b.Fail(errors.New("distributions: total: there must be at least one term, got none"))
		return nil
	}
	defer b.Scope("total")()
	var total *graph.Node
	for i, term := range terms {
		sum := b.Apply(op.Sum{}, term)
		if i > 0 {
			sum = b.Apply(op.Add{}, total, sum)
		}
		total = sum
	}
	return total
}

// sample checks that a sample has the requested shape.
func (a algebra) sample(v Value, shape []int) *graph.Node {
	if got := graph.ShapeOf(v.node); a.b.Err() == nil && !got.Equal(tensor.Shape(shape)) {
		a.fail("sample: must have shape %v after broadcasting, got %v", tensor.Shape(shape), got)
	}
	return v.node
}
