package export

import (
	"strconv"

	"github.com/pollen-ml/pollen/onnx"
)

// dirichletInformation adds evaluate.DirichletInformation, [S batch], of Dirichlet distributions
// with the given means and logarithms of concentrations, both [S batch K].
func (p *predictive) dirichletInformation(logits, means string) string {
	w := p.w
	// Smaller concentrations do not count, and larger ones make no difference.
	bounded := w.Node("Min", nil, w.Node("Max", nil, logits, w.Float("lowest", -60)), w.Float("highest", 40))
	alpha := w.Node("Exp", nil, bounded)
	last := w.Integers("classes", -1)
	precision := w.Node("ReduceSum", onnx.Attributes{"keepdims": 1}, alpha, last)
	excess := w.Node("Sub", nil, p.digammaExcess(alpha), p.digammaExcess(precision))
	return w.Node("ReduceSum", onnx.Attributes{"keepdims": 0}, w.Node("Mul", nil, means, excess), last)
}

// digammaExcess adds digamma(x+1) - ln x, for x > 0. For x of at least a few it uses the
// asymptotic series
//
//	1/(2x) - 1/(12 x^2) + 1/(120 x^4) - 1/(252 x^6),
//
// and for smaller x the recurrence digamma(x+1) = digamma(x+1+n) - sum_i 1/(x+i).
func (p *predictive) digammaExcess(x string) string {
	w := p.w
	const shift = 6
	one := w.Float("one", 1)
	series := func(x string) string {
		inverse := w.Node("Div", nil, one, x)
		square := w.Node("Mul", nil, inverse, inverse)
		sum := w.Float("digamma6", -1./252)
		for _, c := range []struct {
			name  string
			value float64
		}{{"digamma4", 1. / 120}, {"digamma2", -1. / 12}} {
			sum = w.Node("Add", nil, w.Node("Mul", nil, sum, square), w.Float(c.name, c.value))
		}
		return w.Node("Add", nil, w.Node("Mul", nil, sum, square), w.Node("Mul", nil, inverse, w.Float("half", 0.5)))
	}
	far := w.Float("shift"+strconv.Itoa(shift), shift)
	small := w.Node("Min", nil, x, far)
	moved := w.Node("Add", nil, small, far)
	near := w.Node("Add", nil, series(moved), w.Node("Log", nil, w.Node("Div", nil, moved, small)))
	for i := 1; i <= shift; i++ {
		near = w.Node("Sub", nil, near, w.Node("Div", nil, one, w.Node("Add", nil, small, w.Float("shift"+strconv.Itoa(i), float64(i)))))
	}
	return w.Node("Where", nil, w.Node("Less", nil, x, far), near, series(w.Node("Max", nil, x, far)))
}
