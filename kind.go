package pollen

import (
	"context"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/internal/rundir"
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
	attach(t *job, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error)
	// states are the chains' present states, after that many steps, in the order of their numbers.
	states(t *job, step int) ([]samples.Sample, error)
	// conclude draws the samples that are drawn when the steps are made. Those drawn before are
	// drawn again, identically.
	conclude(ctx context.Context, t *job, device tensor.Device) error
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

// plain is what most courses do.
type plain struct{}

func (plain) network(n layers.Sequential) (layers.Sequential, error) { return n, nil }
func (plain) kept(s *Spec) int                                       { return s.Samples }
func (plain) passes(*Spec) int                                       { return 1 }

// Validate implements Method for methods without attributes.
func (plain) Validate() error { return nil }

func (plain) conclude(context.Context, *job, tensor.Device) error { return nil }

// states takes each chain of the session with weight 1.
func (plain) states(t *job, _ int) ([]samples.Sample, error) { return t.takeWeighted(1) }

// takeWeighted takes each chain of the session with one weight.
func (t *job) takeWeighted(weight float64) ([]samples.Sample, error) {
	return t.takeEach(func(chain int) (samples.Sample, error) { return samples.FromSession(t.session, chain, weight) })
}

// takeEach takes a sample of each chain.
func (t *job) takeEach(take func(chain int) (samples.Sample, error)) ([]samples.Sample, error) {
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

func (o optimizerKind) attach(t *job, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
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

// sampling is the course of a sampler on minibatches.
type minibatchKind struct {
	plain
	sampler langevin.Sampler
}

func (minibatchKind) traits() kindTraits { return kindTraits{rated: true, tempered: true} }

func (s minibatchKind) applies(setting string) bool {
	switch setting {
	case "prior", "priors", "temperature", "burn-in", "samples", "burn-in-steps", "thinning", "keep", "weights", "cycles", "anchor", "order":
		return true
	case "temperatures":
		return !langevin.HasMomentum(s.sampler)
	}
	return false
}

func (s minibatchKind) check(spec *Spec) error {
	sampler := langevin.FrozenAt(s.sampler, 1)
	if err := sampler.Validate(); err != nil {
		return err
	}
	if spec.BurnIn != nil && *spec.BurnIn == 0 {
		if _, err := (langevin.Plan{Steps: 1, Thinning: 1}).Temperatures(sampler, *spec.Temperature); err != nil {
			return errors.Errorf("pollen: burn-in is 0 of %d epochs, but %s adapts its preconditioner until burn-in ends: use more epochs, or burn-in-steps",
				spec.Epochs, sampler.Name())
		}
	}
	if spec.Cycles == 0 {
		return nil
	}
	_, err := langevin.Plan{Steps: 2, BurnIn: 1, Thinning: 1, Cycles: 1}.Temperatures(sampler, *spec.Temperature)
	return err
}

func (s minibatchKind) attach(t *job, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
	sampler := langevin.FrozenAt(s.sampler, max(1, t.plan.BurnIn))
	if t.temperatures, err = t.plan.Temperatures(sampler, *t.spec.Temperature); err != nil {
		return nil, nil, err
	}
	logits, loss = in.loss(b)
	h := in.posterior.StepSizes(t.rates)
	switch {
	case len(t.spec.Temperatures) > 0:
		exchange := t.spec.exchange(t.data.Len())
		t.replicas, err = exchange.Attach(b, sampler, in.posterior, loss, h)
		t.hooks = append(t.hooks, t.replicas)
	case t.spec.Anchor > 0:
		variates := langevin.ControlVariates{BatchSize: t.spec.Batch, Refresh: t.spec.Anchor * t.data.Len() / t.spec.Batch}
		anchor, failed := variates.Attach(b, sampler, in.posterior, loss, h, t.temperatures)
		t.hooks, err = append(t.hooks, anchor), failed
	default:
		err = langevin.Attach(b, sampler, in.posterior, loss, h, t.temperatures)
	}
	return logits, loss, err
}

// states are weighted as the specification says.
func (minibatchKind) states(t *job, step int) ([]samples.Sample, error) {
	weight := 1.0
	if t.spec.Weights == StepSize {
		weight = t.rates[step-1] / float64(t.data.Len())
	}
	if t.replicas != nil {
		return t.replicas.Samples(t.session, weight)
	}
	return t.takeWeighted(weight)
}

// swapEvery is how many steps lie between two attempts to swap temperatures, and energyMinibatches
// is how many minibatches an energy is averaged over for one.
const (
	swapEvery         = 50
	energyMinibatches = 10
)

// exchange swaps the specification's temperatures, on that many examples. Energies of a minibatch
// with all data, and of all the minibatches of an epoch, have no error.
func (s Spec) exchange(examples int) langevin.ReplicaExchange {
	e := langevin.ReplicaExchange{Temperatures: s.Temperatures, Every: swapEvery, Minibatches: 1}
	if s.Batch >= examples {
		return e
	}
	e.Minibatches, e.Correction = energyMinibatches, 1
	if s.Batch < 1 {
		return e
	}
	cut := 1 // by the epoch's ends
	if examples%s.Batch == 0 {
		e.Minibatches, cut = min(energyMinibatches, examples/s.Batch), 0
	}
	if e.Minibatches+cut <= examples/s.Batch {
		e.BatchSize = s.Batch
	}
	return e
}

// replicasOfEach is how many chains of the session make one of the run: as many as there are
// temperatures.
func (s Spec) replicasOfEach() int { return max(1, len(s.Temperatures)) }

// job is what a kind of method sees of a training.
type job struct {
	spec Spec
	data *datasets.Dataset
	plan langevin.Plan

	rates        []float64              // by step, on the mean loss
	temperatures []float64              // by step; nil for optimizers
	hooks        []langevin.Hook        // called between steps
	walk         mcmc.Chains            // of samplers on all data
	replicas     *langevin.Replicas     // of replica exchange
	meanField    *approximate.MeanField // of Bayes by Backprop
	session      *graph.Session
	writer       *rundir.Writer
}

// give gives a new session images, and labels unless they are nil; it closes the session if that
// fails.
func give(s *graph.Session, images []byte, labels []int32) error {
	err := graph.Write(s, "images", 0, 0, images)
	if err == nil && labels != nil {
		err = graph.Write(s, "labels", 0, 0, labels)
	}
	if err != nil {
		s.Close()
	}
	return err
}

// posterior is what is sampled.
func (t *job) posterior() langevin.Posterior {
	p := langevin.Posterior{DataSize: t.data.Len(), Layers: t.spec.Priors}
	if t.spec.Prior != nil {
		p.Prior = *t.spec.Prior
	}
	return p
}

// watched is one weight of the first layer; nil if there is none.
func (t *job) watched(b *graph.Builder) *graph.Node {
	parameters := b.Parameters()
	if len(parameters) == 0 {
		return nil
	}
	return b.Apply(array.Element{Index: graph.ShapeOf(parameters[0]).Elements() / 2}, parameters[0])
}

// The metrics of a run: of the minibatch, and the weight whose trace is kept. With a Metropolis
// test they are quantities of the draws: a proposal may be so far off that they are not finite, and
// is then rejected.
const (
	lossMetric     = "loss"
	accuracyMetric = "accuracy"
	watchedMetric  = "watched"
)
