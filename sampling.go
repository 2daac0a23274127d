package pollen

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
)

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
			return errors.Errorf("pollen: burn-in is 0 of %d epochs, but %s adapts its preconditioner until burn-in ends: wants more epochs, or burn-in-steps",
				spec.Epochs, sampler.Name())
		}
	}
	if spec.Cycles == 0 {
		return nil
	}
	_, err := langevin.Plan{Steps: 2, BurnIn: 1, Thinning: 1, Cycles: 1}.Temperatures(sampler, *spec.Temperature)
	return err
}

func (s minibatchKind) attach(t *training, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
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
		t.interventions = append(t.interventions, t.replicas)
	case t.spec.Anchor > 0:
		variates := langevin.ControlVariates{BatchSize: t.spec.Batch, Refresh: t.spec.Anchor * t.data.Len() / t.spec.Batch}
		anchor, failed := variates.Attach(b, sampler, in.posterior, loss, h, t.temperatures)
		t.interventions, err = append(t.interventions, anchor), failed
	default:
		err = langevin.Attach(b, sampler, in.posterior, loss, h, t.temperatures)
	}
	return logits, loss, err
}

// states are weighted as the specification says.
func (minibatchKind) states(t *training, step int) ([]samples.Sample, error) {
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

// checkLadder refuses temperatures that do not fit each other or other settings.
func (s Spec) checkLadder() error {
	if len(s.Temperatures) == 0 {
		return nil
	}
	if err := s.exchange(math.MaxInt32).Validate(); err != nil {
		return InvalidError{err}
	}
	switch {
	case s.Temperature != nil && *s.Temperature != s.Temperatures[0]:
		return invalid("temperature %v with temperatures %s: the samples' is the first of these", *s.Temperature, joinNumbers(s.Temperatures))
	case s.Cycles != 0 || s.Anchor != 0:
		return invalid("temperatures %s: replica exchange goes neither with cycles nor with an anchor", joinNumbers(s.Temperatures))
	}
	return nil
}

// replicasOfEach is how many chains of the session make one of the run: as many as there are
// temperatures.
func (s Spec) replicasOfEach() int { return max(1, len(s.Temperatures)) }
