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

// Auto chooses a sampler and its step size by the data. The manifest records the choice. For up to
// 2000 examples that are not augmented it is mcmc.MCLMC, which uses all data at each step and
// adapts its step size. Otherwise it is langevin.SGNHT, whose thermostat compensates the noise of
// minibatches, with the rate at which that noise is 4 times the friction's in the noisiest layer,
// as a pilot run measures it, but at most twice the rate of the pilot, which was stable.
type Auto struct{}

// Name implements Method.
func (Auto) Name() string { return "auto" }

// Validate implements Method.
func (Auto) Validate() error { return nil }

// The criteria of Auto.
const (
	autoExact  = 2000 // largest number of examples for a sampler on all data
	autoNoise  = 4    // noise of the noisiest layer over the friction's
	autoEpochs = 2    // of the pilot
	autoSteps  = 400  // of the pilot, at least
	autoFaster = 2    // largest factor between the rates of the run and of a stable pilot
	autoTries  = 4    // rates to try, each a quarter of the one before, while numbers do not stay finite
)

// autoKind is the kind of Auto. It only decides which settings apply, and never runs.
type autoKind struct{ plain }

func (autoKind) traits() kindTraits       { return kindTraits{tempered: true} }
func (autoKind) applies(name string) bool { return fullBatchKind{}.applies(name) }

func (autoKind) check(s *Spec) error {
	if s.Temperature != nil && !(*s.Temperature > 0) {
		return errors.Errorf("pollen: auto: temperature must be positive, got %v", *s.Temperature)
	}
	return nil
}

func (autoKind) attach(*job, *graph.Builder, inputs) (logits, loss *graph.Node, err error) {
	return nil, nil, errors.New("pollen: auto: no sampler was chosen")
}

// autoSampler returns the sampler on minibatches that Auto chooses.
func autoSampler() Method {
	return langevin.SGNHT{Friction: 0.05, Splitting: langevin.SplittingBADODAB, Coupling: 3e-3}
}

// exactSampler returns the sampler on all data that Auto chooses.
func exactSampler() Method { return knownAs(mcmc.MCLMC{}).method }

// examplesOf returns the number of examples of data that a run trains on.
func (s Spec) examplesOf(data *datasets.Dataset) int {
	if s.Subset > 0 {
		return min(s.Subset, data.Len())
	}
	return data.Len()
}

// choosesExact reports whether Auto chooses the sampler on all data for a number of examples.
func (s Spec) choosesExact(examples int) bool {
	return examples <= autoExact && s.Augment.isNone() && (s.Batch == 0 || s.Batch == examples)
}

// mayChoose reports whether Auto may choose a method.
func mayChoose(m Method) bool {
	return reflect.DeepEqual(m, exactSampler()) || reflect.DeepEqual(m, autoSampler())
}

// decided returns the specification with the method that Auto chooses, and its schedule and batch
// size. Other methods are left as they are. The choice depends on the data, the seed and the
// settings only, so that repeating "auto" repeats the run.
func (s Spec) decided(ctx context.Context, data *datasets.Dataset, e environment) (Spec, error) {
	s = s.named()
	if _, ok := s.Method.(Auto); !ok {
		return s, nil
	}
	if _, err := s.Resolve(); err != nil {
		return s, err
	}
	examples := s.examplesOf(data)
	if s.choosesExact(examples) {
		s.Method = exactSampler()
		e.remark(fmt.Sprintf("chosen: %s with all %d examples at each step; it finds its steps in the burn-in", MethodText(s.Method), examples))
		return s, nil
	}
	s.Method = autoSampler()
	s.Batch = cmp.Or(s.Batch, customaryBatch(examples))
	if s.Batch >= examples {
		return s, invalid("auto: minibatches of %d from %d examples have no noise to choose a rate by: use a smaller batch, or the method mclmc without augment",
			s.Batch, examples)
	}
	// Find the mistakes of the run itself before the pilot's steps.
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

// pilot returns the rate at which the noise of the noisiest layer is autoNoise times the
// friction's, as far as that can be reached, and a text about the noise there. A thermostat
// compensates that much; it would hide what more noise does to layers whose noise differs. The
// pilot's chain is not kept.
//
// The noise of minibatches is proportional to the rate, so that one pilot at a stable rate gives
// the factor to the rate wanted.
func (s Spec) pilot(ctx context.Context, data *datasets.Dataset, e environment, epochs int) (rate optimizers.Constant, noise string, err error) {
	s.Chains, s.FirstChain, s.Epochs, s.Start = 1, 0, epochs, ""
	// All of the pilot's steps are measured, and one sample is the minimum of a plan.
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
		// A rate at which numbers do not stay finite was too large. Other errors end the pilot.
		var wild *graph.NotFinite
		if !errors.As(err, &wild) {
			break
		}
		rate.Rate /= 4
	}
	return rate, "", err
}

// pilotNoise makes the steps of a specification, and measures the noise of minibatches by layer as
// a run does at its end.
func (s Spec) pilotNoise(ctx context.Context, data *datasets.Dataset, e environment) (layers []Temperature, err error) {
	e.observe = func(Event) {} // its progress is not the run's
	t, err := newTraining(s, data, "", e)
	if err != nil {
		return nil, err
	}
	err = t.on(func(device tensor.Device) error {
		if err := t.load(ctx, device); err != nil {
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
