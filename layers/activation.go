package layers

import (
	"cmp"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// ReLU is max(0, x), elementwise.
type ReLU struct{}

// Apply implements Layer. A ReLU of a threshold, max(max(x, tau), 0), becomes the threshold max(x,
// max(tau, 0)), which has the same gradients and makes one pass over the image instead of two.
func (ReLU) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	_, leave := enter(b, "", "relu")
	defer leave()
	for _, a := range b.Applications() {
		if a.Output == x && a.Op == (op.Threshold{}) {
			return b.Apply(op.Threshold{}, a.Inputs[0], b.Apply(op.ReLU{}, a.Inputs[1]))
		}
	}
	return b.Apply(op.ReLU{}, x)
}

// Tanh is the hyperbolic tangent, elementwise.
type Tanh struct{}

// Apply implements Layer.
func (Tanh) Apply(b *graph.Builder, x *graph.Node) *graph.Node { return apply(b, "tanh", op.Tanh{}, x) }

// Sigmoid is 1 / (1 + e^-x), elementwise.
type Sigmoid struct{}

// Apply implements Layer.
func (Sigmoid) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	return apply(b, "sigmoid", op.Sigmoid{}, x)
}

// Softplus is ln(1 + e^x), elementwise.
type Softplus struct{}

// Apply implements Layer.
func (Softplus) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	return apply(b, "softplus", op.Softplus{}, x)
}

// SiLU, also called swish, is x / (1 + e^-x), elementwise.
type SiLU struct{}

// Apply implements Layer.
func (SiLU) Apply(b *graph.Builder, x *graph.Node) *graph.Node { return apply(b, "silu", op.SiLU{}, x) }

// HardSwish is x min(max(x/6 + 1/2, 0), 1), elementwise: SiLU without an exponential.
type HardSwish struct{}

// Apply implements Layer.
func (HardSwish) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	return apply(b, "hardswish", op.HardSwish{}, x)
}

// GELU is x times the normal distribution function of x, elementwise.
type GELU struct{}

// Apply implements Layer.
func (GELU) Apply(b *graph.Builder, x *graph.Node) *graph.Node { return apply(b, "gelu", op.GELU{}, x) }

// Softsign is x / (1 + |x|), elementwise: it saturates as tanh does, but more slowly.
type Softsign struct{}

// Apply implements Layer.
func (Softsign) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	return apply(b, "softsign", op.Softsign{}, x)
}

// ELU is x where x > 0, else Alpha (e^x - 1), elementwise.
type ELU struct {
	Alpha float64 // 0 means 1
}

// Apply implements Layer.
func (e ELU) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	name, leave := enter(b, "", "elu")
	defer leave()
	if !checkLimits(b, name, e) {
		return nil
	}
	return b.Apply(op.ELU{Alpha: cmp.Or(e.Alpha, 1)}, x)
}

func (e ELU) limits() []limit { return []limit{atLeastIfSet("Alpha", e.Alpha, 0)} }
