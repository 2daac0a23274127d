package distributions

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// Transformed is the distribution of y = f(x), where x has the distribution Base and f is a
// bijection:
//
//	ln p(y) = ln p_base(x) - ln |dy/dx|,    x = f^-1(y)
//
// Transformed{Base: Normal{...}, Bijection: Exp{}} is the log-normal distribution.
type Transformed struct {
	Base      Distribution
	Bijection Bijection
}

var _ Reparameterised = Transformed{}

// LogProb implements Distribution.
func (d Transformed) LogProb(b *graph.Builder, y *graph.Node) *graph.Node {
	if !d.check(b) {
		return nil
	}
	x := d.Bijection.Inverse(b, y)
	density, determinant := d.Base.LogProb(b, x), d.Bijection.LogDeterminant(b, x)
	defer b.Scope("transformed")()
	return b.Apply(op.Subtract{}, density, determinant)
}

// RSample implements Reparameterised if the base does; otherwise it is an error.
func (d Transformed) RSample(b *graph.Builder, shape ...int) *graph.Node {
	if !d.check(b) {
		return nil
	}
	base, ok := d.Base.(Reparameterised)
	if !ok {
		algebra{b, "transformed"}.fail("sample: Base must be Reparameterised, got %T", d.Base)
		return nil
	}
	return d.Bijection.Forward(b, base.RSample(b, shape...))
}

func (d Transformed) check(b *graph.Builder) bool {
	if d.Base == nil || d.Bijection == nil {
		algebra{b, "transformed"}.fail("Base and Bijection must not be nil, got %v and %v", d.Base, d.Bijection)
	}
	return b.Err() == nil
}
