package bayes

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// optimizerKind is the kind of an optimizer: its only sample is the last state.
type optimizerKind struct {
	plain
	optimizer optimizers.Optimizer
}

func (o optimizerKind) traits() kindTraits {
	return kindTraits{rated: optimizers.UsesRates(o.optimizer)}
}

func (o optimizerKind) check(*Spec) error { return o.optimizer.Validate() }

func (o optimizerKind) attach(t *job, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
	logits, loss = in.loss(b)
	t.minimize(b, o.optimizer, loss)
	return logits, loss, b.Err()
}

// minimize attaches the updates with which an optimizer minimizes a loss.
func (t *job) minimize(b *graph.Builder, o optimizers.Optimizer, loss *graph.Node) {
	parameters := b.Parameters()
	gradients := b.Gradients(loss, parameters...)
	var rates *graph.Node
	if optimizers.UsesRates(o) {
		rates = t.stepRates(b)
	}
	optimizers.Update(b, o, parameters, gradients, rates)
}

// minibatchKind is the kind of a sampler on minibatches. The Spec decides whether it is used on its
// own, with control variates, or with replica exchange.
type minibatchKind struct {
	plain
	sampler langevin.Sampler
}

func (s minibatchKind) traits() kindTraits {
	_, independent := s.sampler.(langevin.IndependentBatches)
	t := kindTraits{rated: true, tempered: true, independent: independent, settings: slices.Concat(samplerSettings, []string{
		"burn-in-steps", "thinning", "weights", "cycles",
	})}
	if !independent { // they need epochs
		t.settings = append(t.settings, "anchor", "order")
	}
	if !langevin.HasMomentum(s.sampler) {
		t.settings = append(t.settings, "temperatures")
	}
	return t
}

// samplerSettings are the settings that apply to all samplers.
var samplerSettings = []string{
	"prior", "priors", "temperature", "burn-in", "samples", "keep", "warm-start", "warm-schedule", "warm-epochs", "warm-patience",
}

// check makes the table of temperatures of a tiny plan, because Temperatures refuses samplers whose
// preconditioner freezes too late for burn-in or cycles, whatever the length of the run.
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

// attach adds the loss and the sampler to the graph: with replicas, with control variates, or on
// its own.
func (s minibatchKind) attach(t *job, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
	// A preconditioner that adapts must be constant while samples are drawn: it freezes at the end
	// of burn-in.
	sampler := langevin.FrozenAt(s.sampler, max(1, t.plan.BurnIn))
	if independent, ok := sampler.(langevin.IndependentBatches); ok {
		sampler = independent.InBatches(t.spec.Batch)
	}
	if t.temperatures, err = t.plan.Temperatures(sampler, *t.spec.Temperature); err != nil {
		return nil, nil, err
	}
	logits, loss = in.loss(b)
	h := in.posterior.StepSizes(t.rates)
	switch {
	case len(t.spec.Temperatures) > 0 && drops(t.parts.network):
		err = errors.New("pollen: a network with dropout cannot be combined with temperatures: swaps compare values of the potential, " +
			"which must be a function of the parameters")
	case len(t.spec.Temperatures) > 0:
		exchange := t.spec.exchange(t.data.Len())
		t.replicas, err = exchange.Attach(b, sampler, in.posterior, loss, h)
		t.hooks = append(t.hooks, t.replicas)
	case t.spec.Anchor > 0:
		variates := langevin.ControlVariates{BatchSize: t.spec.Batch, Refresh: t.spec.Anchor * t.data.Len() / t.spec.Batch}
		anchor, failed := variates.Attach(b, sampler, in.posterior, loss, h, t.temperatures)
		t.hooks, err = append(t.hooks, anchor), failed
	case t.halves:
		err = t.attachHalvable(b, sampler, in.posterior, loss, h)
	default:
		err = langevin.Attach(b, sampler, in.posterior, loss, h, t.temperatures)
	}
	return logits, loss, err
}

// states returns samples with the weights of Spec.Weights: the step size h = rate/N of the step
// that led to the state, or 1. With replica exchange, only the replicas at the lowest temperature
// are samples.
func (minibatchKind) states(t *job, step int) ([]samples.Sample, error) {
	weight := func(chain int) (float64, error) {
		if t.spec.Weights != StepSize {
			return 1, nil
		}
		rate, err := t.rate(chain, step-1)
		return rate / float64(t.data.Len()), err
	}
	if t.replicas != nil { // all have one rate
		w, err := weight(0)
		if err != nil {
			return nil, err
		}
		return t.replicas.Samples(t.session, w)
	}
	return t.takeEach(func(chain int) (samples.Sample, error) {
		w, err := weight(chain)
		if err != nil {
			return samples.Sample{}, err
		}
		return samples.FromSession(t.session, chain, w)
	})
}

// swapEvery is the number of steps between two attempts to swap temperatures, and energyMinibatches
// the number of minibatches over which an attempt averages energies.
const (
	swapEvery         = 50
	energyMinibatches = 10
)

// exchange returns the replica exchange of the specification's temperatures, on a number of
// examples. A swap needs the energy difference of two replicas, which minibatches only estimate;
// Correction makes up for the error of the estimate. The energy of a minibatch with all data is
// exact, as is the mean over an epoch's minibatches.
func (s Spec) exchange(examples int) langevin.ReplicaExchange {
	e := langevin.ReplicaExchange{Temperatures: s.Temperatures, Every: swapEvery, Minibatches: 1}
	if s.Batch >= examples {
		return e
	}
	e.Minibatches, e.Correction = energyMinibatches, 1
	if s.Batch < 1 {
		return e
	}
	// Minibatches of one epoch are drawn without replacement, which lowers the error; BatchSize is
	// set only if a swap's minibatches, plus one that an epoch's end may cut, fit into an epoch.
	cut := 1 // minibatches that contain an epoch's end
	if examples%s.Batch == 0 {
		e.Minibatches, cut = min(energyMinibatches, examples/s.Batch), 0
	}
	if e.Minibatches+cut <= examples/s.Batch {
		e.BatchSize = s.Batch
	}
	return e
}
