package distributions

import (
	"slices"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

// Dirichlet is the Dirichlet distribution of vectors x of K probabilities with the sum 1, which
// Simplex makes:
//
//	ln p(x) = sum over k of ((c_k - 1) ln x_k - ln Gamma(c_k)) + ln Gamma(sum over k of c_k)
//
// It is the density of the first K - 1 probabilities. x [K] -> a scalar, x [B K] -> [B]. A vector
// whose sum is off by more than 0.001 gives NaN.
type Dirichlet struct {
	Concentration Value // c, above 0: a number, or a node that broadcasts to the shape of x, such as [K]
}

// LogProb implements Distribution.
func (d Dirichlet) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "dirichlet")
	defer leave()
	c, at := a.positive("Concentration", d.Concentration), a.inSupport(0, 1, x)
	shape := a.vectors(at.node)
	if b.Err() == nil && c.isNode && !slices.Equal(graph.ShapeOf(c.node), shape[len(shape)-1:]) {
		c = Node(a.broadcastOver(c, at)) // to K elements, which are summed
	}
	if b.Err() != nil {
		return nil
	}
	sum := func(v Value) Value {
		if !v.isNode {
			return Number(v.number * float64(shape[len(shape)-1]))
		}
		return Node(b.Apply(op.Sum{Axes: op.AxesOf(len(graph.ShapeOf(v.node)) - 1)}, v.node))
	}
	constant := a.subtract(a.lgamma(sum(c)), sum(a.lgamma(c)))
	density := a.add(sum(a.multiply(a.scaled(1, c, -1), a.log(at))), constant)
	total := a.inSupport(1-1e-3, 1+1e-3, sum(at).node)
	return a.add(density, a.subtract(total, total)).node // NaN where total is
}

// Simplex returns vectors of K probabilities as a function of unconstrained vectors of K - 1
// numbers, as Constrained does for single numbers: x [K-1] -> value [K], logJacobian a scalar, or
// [B K-1] -> [B K], [B]. value is the softmax of (0, x). A density in its last K - 1 elements, such
// as Dirichlet's, becomes one in x.
func Simplex(b *graph.Builder, x *graph.Node) (value, logJacobian *graph.Node) {
	a, leave := enter(b, "simplex")
	defer leave()
	shape := a.vectors(a.argument(x).node)
	if b.Err() != nil {
		return nil, nil
	}
	k := shape[len(shape)-1] + 1
	rows := b.Apply(op.ViewAs(shape.Elements()/(k-1), k-1), x)
	padded := b.Apply(array.Unslice{Slice: array.Slice{Axis: 1, Start: 1, Step: 1, Count: k - 1}, Extent: k}, rows)
	wide := append(append([]int{}, shape[:len(shape)-1]...), k)
	logs := b.Apply(op.ViewAs(wide...), b.Apply(array.LogSoftmax{}, padded))
	return b.Apply(op.Exp{}, logs), b.Apply(op.Sum{Axes: op.AxesOf(len(shape) - 1)}, logs)
}

// vectors returns the shape of x, which must be [K] or [B K].
func (a algebra) vectors(x *graph.Node) tensor.Shape {
	shape := graph.ShapeOf(x)
	if (len(shape) < 1 || len(shape) > 2) && a.b.Err() == nil {
		a.fail("the argument must have shape [K] or [B K], got %v", shape)
	}
	return shape
}
