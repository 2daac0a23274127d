package pollen

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/metropolis"
	"github.com/pollen-ml/pollen/samples"
)

// mostExact is the size of a data set above which samplers with a Metropolis test are refused: each
// step evaluates all data, in float64.
const mostExact = 10000

// firstExactRate is where their step size, which adapts during burn-in, starts, as a learning rate
// on the mean loss.
const firstExactRate = 0.01

// walking is the course of a sampler with a Metropolis test.
type walking struct {
	plain
	proposal metropolis.Proposal
}

func (walking) traits() traits { return traits{tempered: true, exact: true} }

func (walking) applies(setting string) bool {
	return slices.Contains([]string{"prior", "priors", "temperature", "burn-in", "samples"}, setting)
}

func (w walking) check(s *Spec) error {
	if !(*s.Temperature > 0) {
		return errors.Errorf("pollen: %s: temperature is %v, wants a positive number", MethodName(w.proposal), *s.Temperature)
	}
	if m, ok := w.proposal.(metropolis.MALA); ok && m.Acceptance != metropolis.AcceptanceExact {
		return errors.New("pollen: mala: acceptance on minibatches does not sample the posterior, and is for graphs of one's own")
	}
	_, err := w.sampler(*s.BurnIn, 1)
	return err
}

// checkExact refuses data too large for such a sampler, and minibatches, which its test does not
// allow.
func (s Spec) checkExact(examples int) error {
	switch {
	case examples > mostExact:
		return invalid("%s evaluates all data at each step, and %d examples are too many: wants a subset of at most %d",
			MethodName(s.Method), examples, mostExact)
	case s.Batch != examples:
		return invalid("%s evaluates all data at each step: wants batch %d, which is all examples, got %d", MethodName(s.Method), examples, s.Batch)
	}
	return nil
}

// sampler is the sampler whose step size adapts for that many steps of burn-in.
func (w walking) sampler(burnIn, examples int) (metropolis.Metropolis, error) {
	h := firstExactRate / float64(examples)
	leaps := 1
	m := metropolis.Metropolis{Proposal: w.proposal, StepSize: h, Warmup: burnIn}
	if hmc, ok := w.proposal.(metropolis.HMC); ok {
		leaps = hmc.Leaps
		m.StepSize, m.Warmup, m.AcceptanceRate = math.Sqrt(2*h), burnIn/max(1, leaps), 0.8
	}
	if m.Warmup < 1 && m.Proposal.Validate() == nil {
		return m, errors.Errorf("pollen: %s: burn-in is %d epochs of one step each, wants at least the %d of a proposal: the step size adapts",
			MethodName(w.proposal), burnIn, leaps)
	}
	return m, m.Validate()
}

// attach traces loss, accuracy and the first parameter's watched weight at the draws.
func (w walking) attach(t *training, b *graph.Builder, in inputs) (logits, loss *graph.Node, err error) {
	t.temperatures = slices.Repeat([]float64{*t.spec.Temperature}, t.plan.Steps)
	logits, loss = in.loss(b)
	sampler, err := w.sampler(t.plan.BurnIn, t.data.Len())
	if err != nil {
		return nil, nil, err
	}
	target := metropolis.Target{Potential: in.posterior.Potential(b, loss), Temperature: *t.spec.Temperature}
	target.Quantities = []metropolis.Quantity{
		{Name: lossMetric, Node: loss}, {Name: accuracyMetric, Node: b.Apply(op.Accuracy{}, logits, in.labels)},
	}
	if watched := t.watched(b); watched != nil {
		target.Quantities = append(target.Quantities, metropolis.Quantity{Name: watchedMetric, Node: watched})
	}
	t.walk, err = sampler.Attach(b, target)
	return logits, loss, err
}

func (walking) states(t *training, _ int) ([]samples.Sample, error) {
	return t.takeEach(func(chain int) (samples.Sample, error) { return t.walk.Take(t.session, chain) })
}

// drawn is a quantity of a chain's present draw.
func (t *training) drawn(chain int, name string) (float64, error) {
	var value [1]float64
	err := graph.Read(t.session, name+".draw", chain, 0, value[:])
	return value[0], err
}
