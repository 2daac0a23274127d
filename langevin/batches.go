package langevin

import (
	"fmt"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// examples are the rows of a data set from which an op that the loss depends on gathers batches.
type examples struct {
	batch op.Batch
	rows  int
	op    string
}

// examplesOf returns the examples that a node depends on.
func examplesOf(b *graph.Builder, n *graph.Node) (all []examples) {
	needed := map[*graph.Node]bool{n: true}
	for _, a := range slices.Backward(b.Applications()) {
		if !needed[a.Output] {
			continue
		}
		for _, in := range a.Inputs {
			needed[in] = true
		}
		if batch, ok := op.BatchOf(a.Op); ok {
			all = append(all, examples{batch, graph.ShapeOf(a.Inputs[0])[0], a.Op.Name()})
		}
	}
	return all
}

// CheckDataSize returns an error if a loss depends on minibatches, see op.Batch, and DataSize times
// Copies is not the number of rows of their data set. It may be a multiple, if each row has several
// examples. Attach calls CheckDataSize.
func (p Posterior) CheckDataSize(b *graph.Builder, loss *graph.Node) error {
	all := examplesOf(b, loss)
	for _, e := range all {
		if p.rows()%e.rows == 0 {
			return nil
		}
	}
	if len(all) == 0 {
		return nil
	}
	examples, copies := all[0].rows, ""
	if p.Copies > 1 {
		examples, copies = examples/p.Copies, fmt.Sprintf(" with %d copies of each", p.Copies)
	}
	return errors.Errorf("langevin: posterior: DataSize must be the number of examples, which is %d for %s%s, or a multiple if each has several, got %d",
		examples, all[0].op, copies, p.DataSize)
}

// IndependentBatches may be implemented by samplers that need minibatches drawn independently at
// each step, as op.Independent does, not in epochs.
type IndependentBatches interface {
	Sampler
	// InBatches returns the sampler for minibatches of n examples.
	InBatches(n int) Sampler
}

// checkIndependent reports minibatches that are not drawn independently although the sampler needs
// it.
func checkIndependent(b *graph.Builder, sampler Sampler, loss *graph.Node) error {
	if _, ok := sampler.(IndependentBatches); !ok {
		return nil
	}
	for _, e := range examplesOf(b, loss) {
		if e.batch.Order != op.Independent && e.batch.Size < e.rows {
			return errors.Errorf("langevin: %s: minibatches must be drawn independently, with the order op.Independent, but those of %s are parts of epochs",
				sampler.Name(), e.op)
		}
	}
	return nil
}

// checkEpochs returns an error unless the loss gathers minibatches of the given size from epochs of
// all data.
func (p Posterior) checkEpochs(b *graph.Builder, loss *graph.Node, batchSize int) error {
	for _, e := range examplesOf(b, loss) {
		if e.batch.Size != batchSize || e.batch.Order == op.Independent || e.rows != p.DataSize {
			return errors.Errorf("%s must gather minibatches of BatchSize = %d from epochs of the %d examples, got %+v of %d",
				e.op, batchSize, p.DataSize, e.batch, e.rows)
		}
	}
	return nil
}
