package distributions

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// StudentT is Student's t-distribution, shifted and scaled, with v = dof and z = (x - location) /
// scale:
//
//	ln p(x) = -(v+1)/2 ln(1 + z^2/v) + ln Gamma((v+1)/2) - ln Gamma(v/2) - ln(pi v)/2 - ln scale
//
// The scale is not the standard deviation, which is scale sqrt(v/(v-2)) when v is above 2.
type StudentT struct {
	DoF      Value // degrees of freedom, above 0
	Location Value
	Scale    Value // above 0
}

// LogProb implements Distribution.
func (d StudentT) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "student-t")
	defer leave()
	dof, scale := a.positive("DoF", d.DoF), a.positive("Scale", d.Scale)
	z := a.standardised(a.argument(x), a.finite("Location", d.Location), scale)
	tail := a.log1p(a.divide(a.squared(z), dof))
	constant := a.apply(op.StudentTConstant{}, op.StudentTConstant{}.Of, dof)
	return a.subtract(a.subtract(constant, a.log(scale)), a.multiply(a.scaled(0.5, dof, 0.5), tail)).node
}
