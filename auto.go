package pollen

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// Auto chooses a sampler and its step size by the data: the manifest has the choice. Up to 2000
// examples that are not augmented it is mcmc.MCLMC, else langevin.SGNHT, at the rate at which
// in one layer, by a pilot, the noise of minibatches is 4 times the friction's, and elsewhere less;
// at most at twice the pilot's rate, which was stable.
type Auto struct{}

// Name implements Method.
func (Auto) Name() string { return "auto" }

// Validate implements Method.
func (Auto) Validate() error { return nil }

// What Auto chooses by.
const (
	autoExact  = 2000 // examples up to which all of them are a step's
	autoNoise  = 4    // of the noisiest layer, over the friction's
	autoEpochs = 2    // of the pilot
	autoSteps  = 400  // of it at least
	autoFaster = 2    // than a pilot that was stable: the rate rises no further
	autoTries  = 4    // of rates, each a quarter of the one before, where numbers do not stay finite
)

// undecided is the course of Auto, which says what applies and never runs.
type autoKind struct{ plain }

func (autoKind) traits() kindTraits       { return kindTraits{tempered: true} }
func (autoKind) applies(name string) bool { return fullBatchKind{}.applies(name) }

func (autoKind) check(s *Spec) error {
	if s.Temperature != nil && !(*s.Temperature > 0) {
		return errors.Errorf("pollen: auto: temperature is %v, wants a positive number", *s.Temperature)
	}
	return nil
}

func (autoKind) attach(*training, *graph.Builder, inputs) (logits, loss *graph.Node, err error) {
	return nil, nil, errors.New("pollen: auto: no sampler was chosen")
}

// decided is the specification with the method that Auto chooses; others stay as they are.
func (s Spec) decided(ctx context.Context, data *datasets.Dataset, e environment) (Spec, error) {
	if _, ok := s.Method.(Auto); !ok {
		return s, nil
	}
	if _, err := s.Resolve(); err != nil {
		return s, err
	}
	examples := data.Len()
	if s.Subset > 0 {
		examples = min(s.Subset, examples)
	}
	if examples <= autoExact && s.Augment.isNone() && (s.Batch == 0 || s.Batch == examples) {
		s.Method = knownAs(mcmc.MCLMC{}).method
		e.remark(fmt.Sprintf("chosen: %s with all %d examples at each step; it finds its steps in the burn-in", MethodText(s.Method), examples))
		return s, nil
	}
	s.Method = autoSampler()
	s.Batch = cmp.Or(s.Batch, customaryBatch(examples))
	if s.Batch >= examples {
		return s, invalid("auto: minibatches of %d from %d examples have no noise to choose a rate by: wants a smaller batch, or the method mclmc without augment",
			s.Batch, examples)
	}
	mistakes := s
	mistakes.Schedule = scheduleOf(s.Method)
	if _, err := newTraining(mistakes, data, "", e); err != nil {
		return s, err
	}
	e.remark("a pilot measures the noise of minibatches")
	constant, noise, err := s.pilot(ctx, data, e, max(autoEpochs, (autoSteps*s.Batch+examples-1)/examples))
	if err != nil {
		return s, errors.WithMessage(err, "auto")
	}
	s.Schedule = constant
	e.remark(fmt.Sprintf("chosen: %s at the rate %v, where the noise of minibatches is %s and less elsewhere, by a pilot",
		MethodText(s.Method), constant.Rate, noise))
	return s, nil
}

// decidedAs is the specification for so many examples, with what Auto chose for a run.
func (s Spec) decidedAs(run *Manifest, examples int) Spec {
	if _, ok := s.Method.(Auto); ok && mayChoose(run.Spec.Method) {
		s.Method, s.Schedule, s.Batch = run.Spec.Method, run.Spec.Schedule, cmp.Or(s.Batch, run.Spec.Batch)
	}
	resolved, err := s.resolve(examples)
	if err != nil {
		return s
	}
	if c, err := kindOf(resolved.Method); err == nil && c.traits().exact {
		resolved.Batch = cmp.Or(resolved.Batch, run.Spec.Batch)
	}
	return resolved
}

// autoSampler is the sampler on minibatches that Auto chooses.
func autoSampler() Method {
	return langevin.SGNHT{Friction: 0.05, Splitting: langevin.SplittingBADODAB, Coupling: 3e-3}
}

// mayChoose reports whether a method is one of those that Auto chooses from.
func mayChoose(m Method) bool {
	return reflect.DeepEqual(m, knownAs(mcmc.MCLMC{}).method) || reflect.DeepEqual(m, autoSampler())
}

// pilot is the rate at which the noise of the layer with most of it is autoNoise times the
// friction's, as far as that can be reached, and what the noise is there. A thermostat takes so
// much, and would hide what more does to layers whose noise differs. The pilot's chain is not kept.
func (s Spec) pilot(ctx context.Context, data *datasets.Dataset, e environment, epochs int) (rate optimizers.Constant, noise string, err error) {
	s.Chains, s.FirstChain, s.Epochs, s.Start = 1, 0, epochs, ""
	s.BurnIn, s.Samples, s.Keep = new(0), 1, 0
	c, err := kindOf(s.Method)
	if err != nil {
		return rate, "", err
	}
	rate = s.customarySchedule(c, manyExamples).(optimizers.Constant)
	for range autoTries {
		s.Schedule = rate
		var layers []Temperature
		if layers, err = s.pilotNoise(ctx, data, e); err == nil {
			most := slices.MaxFunc(layers[1:], func(a, b Temperature) int { return cmp.Compare(a.GradientNoise, b.GradientNoise) })
			factor := min(autoNoise/float64(most.GradientNoise), autoFaster)
			// Two digits are more than the estimate has.
			rate.Rate = twoDigits(rate.Rate * factor)
			return rate, fmt.Sprintf("%.2g times the friction's in %s", factor*float64(most.GradientNoise), most.Layer), nil
		}
		var wild *graph.NotFinite
		if !errors.As(err, &wild) {
			break
		}
		rate.Rate /= 4
	}
	return rate, "", err
}

// pilotNoise makes the steps of a specification and measures the noise of minibatches by layer, as
// a run does at its end.
func (s Spec) pilotNoise(ctx context.Context, data *datasets.Dataset, e environment) (layers []Temperature, err error) {
	e.observe = func(Event) {} // its progress is not the run's
	t, err := newTraining(s, data, "", e)
	if err != nil {
		return nil, err
	}
	err = t.on(func(device tensor.Device) error {
		if err := t.load(device); err != nil {
			return err
		}
		defer t.session.Close()
		t.observing()
		if err := t.try(ctx, t.plan.Steps, window); err != nil {
			return err
		}
		layers, err = t.temperaturesByLayer(device)
		return err
	})
	return layers, err
}
