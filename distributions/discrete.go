package distributions

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Bernoulli is the distribution of x, 0 or 1, with P(x = 1) = 1 / (1 + e^-logits):
//
//	ln P(x) = -ln(1 + exp((1 - 2x) logits))
//
// x holds floats; one that is not 0 or 1 gives NaN.
type Bernoulli struct {
	Logits Value
}

// LogProb implements Distribution.
func (d Bernoulli) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "bernoulli")
	defer leave()
	logits := a.finite("Logits", d.Logits)
	at := a.count(1, x)
	against := a.broadcastOver(a.multiply(a.scaled(-2, at, 1), logits), at)
	return b.Apply(op.Negate{}, b.Apply(op.Softplus{}, against))
}

// Categorical is the distribution of labels 0 to K-1:
//
//	ln P(x[b]) = logits[b x[b]] - ln sum over k of exp(logits[b k])
//
// x [B] int32 -> [B]. A label that is not below K gives NaN.
type Categorical struct {
	Logits *graph.Node // [B K], or [K] if they are the same for all labels
}

// LogProb implements Distribution.
func (d Categorical) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "categorical")
	defer leave()
	logits := a.finite("Logits", Node(d.Logits)).node
	if dtype := graph.DTypeOf(x); b.Err() == nil && dtype != tensor.Int32 {
		a.fail("the argument must hold labels of int32, got %v", dtype)
	}
	return b.Apply(op.LogProbability{}, logits, x)
}
