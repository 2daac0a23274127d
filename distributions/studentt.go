package distributions

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
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
	constant := a.apply(op.StudentTConstant{}, op.StudentTConstant{}.Of, dof)
	return a.subtract(a.subtract(constant, a.log(scale)), a.multiply(a.scaled(0.5, dof, 0.5), a.studentTail(z, dof))).node
}

// studentTail returns ln(1 + z^2/dof) of a node z. Beyond a limit, at which the square is far from
// overflow and the 1 is lost, it is the value at the limit + 2 ln |z/limit|.
func (a algebra) studentTail(z, dof Value) Value {
	limit := 0x1p400
	if a.b.DType() == tensor.Float32 {
		limit = 0x1p40
	}
	inner := Node(a.b.Apply(op.Clip{Low: -limit, High: limit}, z.node))
	ratio := Node(a.b.Apply(op.Clip{Low: 1, High: math.Inf(1)}, a.scaled(1/limit, a.abs(z), 0).node))
	return a.add(a.log1p(a.divide(a.squared(inner), dof)), a.scaled(2, a.log(ratio), 0))
}
