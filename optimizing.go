package pollen

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/optimizers"
)

// optimizing is the course of an optimizer: one solution, the last state.
type optimizing struct {
	plain
	optimizer optimizers.Optimizer
}

func (o optimizing) traits() traits    { return traits{rated: optimizers.UsesRates(o.optimizer)} }
func (optimizing) applies(string) bool { return false }
func (o optimizing) check(*Spec) error { return o.optimizer.Validate() }

func (o optimizing) attach(t *training, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
	logits, loss = in.loss(b)
	parameters := b.Parameters()
	gradients := b.Gradients(loss, parameters...)
	var rates *graph.Node
	if o.traits().rated {
		rates = b.Table("rates", t.rates)
	}
	optimizers.Update(b, o.optimizer, parameters, gradients, rates)
	return logits, loss, b.Err()
}
