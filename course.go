package pollen

import (
	"context"
	"reflect"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// course is what methods of one kind do in a run: how they attach, what they keep, how they finish.
// All that differs between methods is behind it.
type methodKind interface {
	traits() kindTraits
	// applies reports whether a setting that only some methods have applies.
	applies(setting string) bool
	// check refuses values of a filled specification.
	check(s *Spec) error
	// network is what is trained and predicted with.
	network(n layers.Sequential) (layers.Sequential, error)
	// kept is how many states of each chain are kept at even distances after burn-in.
	kept(s *Spec) int
	// passes is how many predictions are made with each sample.
	passes(s *Spec) int
	// attach adds the network, its loss, which is the mean negative log-likelihood of a minibatch,
	// and the updates.
	attach(t *training, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error)
	// states are the chains' present states, after that many steps, in the order of their numbers.
	states(t *training, step int) ([]samples.Sample, error)
	// conclude draws the samples that are drawn when the steps are made. Those drawn before are
	// drawn again, identically.
	conclude(ctx context.Context, t *training, device tensor.Device) error
}

// traits say what a kind of method is.
type kindTraits struct {
	rated     bool // it has a learning rate
	tempered  bool // its chains sample at a temperature
	exact     bool // it goes by energies: all data at each step
	epochs    int  // unless the Spec says how many; 0 is 8
	collected bool // the states that it keeps are not samples: conclude draws these from them
	drawn     bool // it keeps no states: conclude draws the samples
}

// inputs are what a network is trained on, in a graph.
type inputs struct {
	network   layers.Sequential
	x, labels *graph.Node
	posterior langevin.Posterior
}

// loss applies the network.
func (in inputs) loss(b *graph.Builder) (logits, loss *graph.Node) {
	logits = in.network.Apply(b, in.x)
	return logits, b.Apply(op.CrossEntropy{}, logits, in.labels)
}

// kindOf is the course of a method.
func kindOf(m Method) (methodKind, error) {
	if kind := reflect.ValueOf(m).Kind(); kind != reflect.Struct {
		return nil, invalid("method %T is a %s, wants a struct, whose fields are its attributes", m, kind)
	}
	switch m := m.(type) {
	case methodKind:
		return m, nil
	case optimizers.Optimizer:
		return optimizerKind{optimizer: m}, nil
	case langevin.Sampler:
		return minibatchKind{sampler: m}, nil
	case Auto:
		return autoKind{}, nil
	case NUTS, mcmc.Proposal, mcmc.MCLMC:
		return fullBatchKind{method: m}, nil
	case mcmc.Sampler:
		return nil, invalid("method %T has a warm-up, which is a Spec's burn-in: wants pollen.NUTS, or the proposal or the dynamics alone", m)
	}
	return nil, invalid("method %T is neither an optimizer, a sampler, a proposal nor an approximation", m)
}

// notApplicable says which methods a setting applies to.
func notApplicable(setting string, m Method, c methodKind) error {
	var names []string
	for _, k := range registry {
		if other, err := kindOf(k.method); err == nil && other.applies(setting) {
			names = append(names, k.name)
		}
	}
	err := errors.Errorf("pollen: %s applies to %s, not to %s", setting, strings.Join(names, ", "), MethodName(m))
	if _, ok := c.(optimizerKind); ok {
		err = errors.Errorf("%v: an optimizer has one solution, and weight decay for a prior", err)
	}
	return InvalidError{err}
}

// plain is what most courses do.
type plain struct{}

func (plain) network(n layers.Sequential) (layers.Sequential, error) { return n, nil }
func (plain) kept(s *Spec) int                                       { return s.Samples }
func (plain) passes(*Spec) int                                       { return 1 }

// Validate implements Method for methods without attributes.
func (plain) Validate() error { return nil }

func (plain) conclude(context.Context, *training, tensor.Device) error { return nil }

// states takes each chain of the session with weight 1.
func (plain) states(t *training, _ int) ([]samples.Sample, error) { return t.takeWeighted(1) }

// takeWeighted takes each chain of the session with one weight.
func (t *training) takeWeighted(weight float64) ([]samples.Sample, error) {
	return t.takeEach(func(chain int) (samples.Sample, error) { return samples.FromSession(t.session, chain, weight) })
}

// takeEach takes a sample of each chain.
func (t *training) takeEach(take func(chain int) (samples.Sample, error)) ([]samples.Sample, error) {
	states := make([]samples.Sample, t.spec.Chains)
	for chain := range states {
		var err error
		if states[chain], err = take(chain); err != nil {
			return nil, err
		}
	}
	return states, nil
}

// optimizing is the course of an optimizer: one solution, the last state.
type optimizerKind struct {
	plain
	optimizer optimizers.Optimizer
}

func (o optimizerKind) traits() kindTraits {
	return kindTraits{rated: optimizers.UsesRates(o.optimizer)}
}
func (optimizerKind) applies(string) bool { return false }
func (o optimizerKind) check(*Spec) error { return o.optimizer.Validate() }

func (o optimizerKind) attach(t *training, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
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
