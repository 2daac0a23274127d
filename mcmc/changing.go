package mcmc

import (
	"slices"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// changing returns an op that reads the header and on which a node depends: its values, random
// numbers or a minibatch, change from step to step. ok is false if there is none. If steps are
// paired, ops may read BatchHeader, which stays the same for both sides of a test.
func changing(b *graph.Builder, n *graph.Node, paired bool) (reader graph.Application, ok bool) {
	needed, counted := map[*graph.Node]bool{n: true}, map[*graph.Node]bool{}
	for _, a := range b.Applications() {
		if _, ok := a.Op.(countProposals); ok && paired {
			counted[a.Output] = true
		}
	}
	for _, a := range slices.Backward(b.Applications()) {
		if !needed[a.Output] || counted[a.Output] {
			continue
		}
		for _, in := range a.Inputs {
			if graph.DTypeOf(in) == tensor.Uint64 && !counted[in] && !constant(a) {
				return a, true
			}
			needed[in] = true
		}
	}
	return reader, false
}

// constant reports whether an op that reads the header has the same values in all steps, up to the
// order of examples.
func constant(a graph.Application) bool {
	if dropout, ok := a.Op.(op.Dropout); ok {
		return dropout.Rate == 0
	}
	batch, ok := op.BatchOf(a.Op)
	return ok && batch.Size == graph.ShapeOf(a.Inputs[0])[0]
}
