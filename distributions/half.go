package distributions

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// HalfNormal is the distribution of |z| for a normal z of mean 0, on x >= 0:
//
//	ln p(x) = -(x / std)^2 / 2 - ln std + ln(2 / pi) / 2
//
// Priors of scales use it.
type HalfNormal struct {
	Std Value // the standard deviation of z, above 0; x's is 0.603 times as large
}

var _ Reparameterised = HalfNormal{}

// LogProb implements Distribution.
func (d HalfNormal) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "half-normal")
	defer leave()
	return a.folded(Normal{Std: a.positive("Std", d.Std)}, x)
}

// RSample implements Reparameterised: std |z|, with z standard normal.
func (d HalfNormal) RSample(b *graph.Builder, shape ...int) *graph.Node {
	a, leave := enter(b, "half-normal")
	defer leave()
	return a.sample(a.multiply(a.positive("Std", d.Std), a.abs(a.noise(op.NormalNoise, shape))), shape)
}

// HalfStudentT is the distribution of |z| for Student's t-distribution of z, on x >= 0:
//
//	ln p(x) = ln 2 + ln p(z = x)
//
// With one degree of freedom it is the half-Cauchy distribution. Priors of scales use it.
type HalfStudentT struct {
	DoF   Value // degrees of freedom, above 0
	Scale Value // above 0
}

// LogProb implements Distribution.
func (d HalfStudentT) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "half-student-t")
	defer leave()
	return a.folded(StudentT{DoF: a.positive("DoF", d.DoF), Scale: a.positive("Scale", d.Scale)}, x)
}

// folded returns the log density of |z|, where the distribution of z is symmetric about 0.
func (a algebra) folded(z Distribution, x *graph.Node) *graph.Node {
	at := a.inSupport(0, math.Inf(1), x)
	return a.scaled(1, Node(z.LogProb(a.b, at.node)), math.Ln2).node
}
