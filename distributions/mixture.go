package distributions

import "github.com/pollen-ml/pollen/graph"

// Mixture is the distribution of numbers that are each drawn from one of several distributions,
// independently:
//
//	p(x) = sum over k of w_k p_k(x),    w_k = exp(logit_k) / sum over j of exp(logit_j)
//
// It is computed from log densities, so that densities may be smaller than the smallest float. The
// log densities of the components broadcast.
type Mixture struct {
	Components []Distribution
	Logits     []Value // one for each component; empty for equal weights
}

// LogProb implements Distribution.
func (d Mixture) LogProb(b *graph.Builder, x *graph.Node) *graph.Node {
	a, leave := enter(b, "mixture")
	defer leave()
	logits := d.Logits
	if len(logits) == 0 {
		logits = make([]Value, len(d.Components))
	}
	if len(d.Components) == 0 || len(logits) != len(d.Components) {
		a.fail("there must be at least one component, and a logit for each or none, got %d and %d", len(d.Components), len(d.Logits))
		return nil
	}
	var density, total Value
	for i, component := range d.Components {
		if component == nil {
			a.fail("component %d must not be nil", i)
			return nil
		}
		logit := a.finite("a logit", logits[i])
		term := a.add(Node(component.LogProb(b, x)), logit)
		if i == 0 {
			density, total = term, logit
			continue
		}
		density, total = a.logAddExp(density, term), a.logAddExp(total, logit)
	}
	return a.subtract(density, total).node
}
