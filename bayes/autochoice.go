package bayes

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// The defaults of Auto.
const (
	autoBudget  = 10 * time.Minute
	autoChains  = 4
	autoSamples = 100 // of all chains
	autoGain    = 2   // of the prior by fan-in

	// Samples of a linear head on frozen features are small, and cost little to predict with. With
	// 100 of them, the scores of few test images would depend on the seed.
	autoHeadSamples = 400 // of all chains, for up to autoHeadClasses classes
	autoHeadClasses = 10
)

// The criteria of Auto.
const (
	minExactSteps = 1500   // of a sampler on all data
	maxExactSteps = 10_000 // more than chains of a small network need
	minLargeSteps = 4000   // in minibatches of 1/largeBatches of the data
	maxLargeSteps = 40_000
	largeBatches  = 6
	maxAutoEpochs = 100 // of small minibatches

	speedImages = 2000 // maximum number of images on which the speed is measured
	speedSteps  = 6    // the first two warm up

	autoNoise  = 4   // wanted ratio of the noisiest layer's minibatch noise to the friction's noise, in small minibatches
	largeNoise = 0.5 // the same, in large ones
	autoEpochs = 2   // of the pilot
	autoSteps  = 400 // of the pilot, at least
	autoFaster = 2   // maximum ratio of the run's rate to a stable pilot's
	autoTries  = 4   // maximum number of rates to try, each a quarter of the one before, until all numbers stay finite
)

// decided returns the specification with the method that Auto chooses, and its schedule and batch
// size. Other methods are left as they are. If Epochs is given, the choice depends on the data,
// the seed and the settings only.
func (s Spec) decided(ctx context.Context, data *datasets.Dataset, e environment) (Spec, error) {
	s = s.named()
	if _, ok := s.Method.(Auto); !ok {
		return s, nil
	}
	if _, err := s.Resolve(); err != nil {
		return s, err
	}
	// Find the mistakes of the run itself before any step.
	if err := s.checkCandidates(data, e); err != nil {
		return s, err
	}
	c, err := s.choose(ctx, data, e)
	if err != nil {
		return s, err
	}
	if c.noise == 0 {
		e.remark(fmt.Sprintf("chosen: %s with all %d examples at each step, %d steps%s; it finds its steps in the burn-in",
			MethodText(c.spec.Method), c.examples, c.spec.Epochs, c.text()))
		return c.spec, nil
	}
	e.remark("a pilot measures the noise of minibatches")
	constant, noise, err := c.spec.pilot(ctx, data, e, c.noise)
	if err != nil {
		return s, errors.WithMessage(err, "pollen: auto")
	}
	c.spec.Schedule = constant
	e.remark(fmt.Sprintf("chosen: %s in minibatches of %d of %d examples, %d epochs%s, at the rate %v, where the noise of minibatches is %s and less "+
		"elsewhere, by a pilot%s", MethodText(c.spec.Method), c.spec.Batch, c.examples, c.spec.Epochs, c.text(), constant.Rate, noise, c.lost))
	return c.spec, nil
}

// checkCandidates returns the errors of the specification that can be found before any step is
// made.
func (s Spec) checkCandidates(data *datasets.Dataset, e environment) error {
	list := s.candidates(s.examplesOf(data.Len()), data.Classes)
	if last := list[len(list)-1]; last.noise > 0 && last.spec.Batch >= last.examples {
		return invalid("auto: minibatches of %d from %d examples have no noise to choose a rate by: use a smaller batch, or the method mclmc without augment",
			last.spec.Batch, last.examples)
	}
	first := list[0]
	first.spec.Epochs = max(1, first.maxSteps*first.spec.Batch/first.examples)
	if s.Epochs > 0 { // which decides without a measurement
		var err error
		if first, err = s.chooseByEpochs(list); err != nil {
			return err
		}
	}
	if first.noise > 0 {
		first.spec.Schedule = scheduleOf(first.spec.Method)
	}
	_, err := newTraining(first.spec, data, "", e)
	return err
}

// candidate is a way to sample that Auto may choose.
type candidate struct {
	spec               Spec // with Method and Batch, and Epochs if they are given
	examples           int
	minSteps, maxSteps int     // bounds of the number of steps that the budget decides
	noise              float64 // ratio of the noisiest layer's noise to the friction's that a pilot aims at; 0 with all data

	time time.Duration // estimate for all steps; 0 if it was not measured
	lost string        // remark on the candidates that were excluded; "" if there are none
}

func (c candidate) minEpochs() int { return epochsOf(c.minSteps, c.spec.Batch, c.examples) }

// text returns the time that the steps take, "" if it was not measured.
func (c candidate) text() string {
	if c.time == 0 {
		return ""
	}
	return " in about " + shortTime(c.time)
}

// shortTime formats a duration with two digits, in seconds, minutes or hours.
func shortTime(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return fmt.Sprintf("%.2g s", d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("%.2g min", d.Minutes())
	}
	return fmt.Sprintf("%.2g h", d.Hours())
}

// candidates returns the ways to sample the given number of examples, at least one, the most exact
// first.
func (s Spec) candidates(examples, classes int) (list []candidate) {
	if s.Prior == nil && !s.isPretrained() {
		s.Prior = new(langevin.FanIn(autoGain))
	}
	s.Chains = cmp.Or(s.Chains, autoChains)
	if s.Samples == 0 {
		samples := autoSamples
		if s.Frozen() && s.Head == headLinear {
			samples = min(autoHeadSamples, max(autoSamples, autoHeadSamples*autoHeadClasses/classes))
		}
		s.Samples = max(1, samples/s.Chains)
	}
	s.Budget = 0 // it does not apply to what is chosen
	of := func(m Method, batch, minSteps, maxSteps int, noise float64) {
		c := candidate{spec: s, examples: examples, minSteps: minSteps, maxSteps: maxSteps, noise: noise}
		c.spec.Method, c.spec.Batch = m, batch
		list = append(list, c)
	}
	fixed := !s.Augment.atEachStep() && !s.hasDropout() // whether the loss is a function of the weights
	if fixed && (s.Batch == 0 || s.Batch == examples) {
		of(exactSampler(), examples, minExactSteps, maxExactSteps, 0)
	}
	if fixed && s.Batch == 0 && examples >= largeBatches*standardBatch {
		of(autoSampler(), examples/largeBatches, minLargeSteps, maxLargeSteps, largeNoise)
	}
	batch := cmp.Or(s.Batch, customaryBatch(examples))
	most := max(minSteps, maxAutoEpochs*examples/batch)
	if len(list) == 0 || batch < examples {
		of(autoSampler(), batch, minSteps, most, autoNoise)
	}
	return list
}

// hasDropout reports whether the network has layers that drop elements in training. It is false for
// networks that cannot be built, which is an error elsewhere.
func (s Spec) hasDropout() bool {
	network, err := s.Build(1)
	return err == nil && drops(network)
}

// chooseByEpochs returns the first candidate whose minimum number of steps fits into the
// specification's epochs.
func (s Spec) chooseByEpochs(list []candidate) (c candidate, err error) {
	for _, c = range list {
		if s.Epochs >= c.minEpochs() {
			return c, nil
		}
	}
	return c, invalid("auto: epochs must be at least %d, for %d steps in minibatches of %d of %d examples, got %d: leave it out, and auto fills budget, a time",
		c.minEpochs(), c.minSteps, c.spec.Batch, c.examples, s.Epochs)
}

// choose returns the first candidate that the epochs or the budget allow, or the last one if the
// budget allows none.
func (s Spec) choose(ctx context.Context, data *datasets.Dataset, e environment) (c candidate, err error) {
	examples := s.examplesOf(data.Len())
	list := s.candidates(examples, data.Classes)
	if s.Epochs > 0 {
		return s.chooseByEpochs(list)
	}
	budget := cmp.Or(s.Budget, autoBudget)
	perEpoch, err := list[0].epochTime(ctx, data, e)
	if err != nil {
		return c, errors.WithMessage(err, "pollen: auto: to measure the speed")
	}
	var slow, large []string
	for i := range list {
		c = list[i]
		epochs, least := int(budget/perEpoch), c.minEpochs()
		c.spec.Epochs = max(least, twoDigitsDown(min(epochs, c.maxSteps*c.spec.Batch/examples)))
		c.time = time.Duration(c.spec.Epochs) * perEpoch
		fast, fits := epochs >= least, true
		if fast && c.noise == 0 {
			if fits, err = c.fitsMemory(data, e); err != nil {
				return c, err
			}
		}
		if fast && fits || i == len(list)-1 {
			break
		}
		steps := fmt.Sprintf("%d steps with %d of %d examples each", c.minSteps, c.spec.Batch, examples)
		if fast {
			large = append(large, steps)
		} else {
			slow = append(slow, fmt.Sprintf("%s, which would take %s", steps, shortTime(time.Duration(least)*perEpoch)))
		}
	}
	c.lost = lostText(budget, slow, large)
	return c, nil
}

// lostText returns the remark on candidates that would take too long, and on those for which there
// is not enough memory; "" without any.
func lostText(budget time.Duration, slow, large []string) string {
	var text string
	var more []string
	if len(large) > 0 {
		text, more = "; lost for want of memory: "+strings.Join(large, ", and "), append(more, "more memory")
	}
	if len(slow) > 0 {
		text += fmt.Sprintf("; lost by the budget of %s: %s", shortTime(budget), strings.Join(slow, ", and "))
		more = append(more, "a larger budget")
	}
	if more == nil {
		return ""
	}
	return text + ". Minibatches heat what predictions depend on: compare NLL and the temperature of predictions, or give " + strings.Join(more, " and ")
}

// twoDigitsDown rounds a number down to two significant digits.
func twoDigitsDown(n int) int {
	unit := 1
	for n/unit >= 100 {
		unit *= 10
	}
	return n / unit * unit
}

// epochTime returns the time of a pass over the data by all chains, measured over a few steps with
// some of the data.
func (c candidate) epochTime(ctx context.Context, data *datasets.Dataset, e environment) (time.Duration, error) {
	s := c.spec
	images := min(c.examples, speedImages)
	s.Subset, s.Start, s.FirstChain = images, "", 0
	s.Batch = min(s.Batch, images)
	// The plan is as long as a run's, but only a few steps are made.
	s.Epochs, s.BurnIn, s.Samples, s.Keep = minExactSteps, new(minExactSteps/2), 1, 0
	if c.noise > 0 {
		s.Epochs, s.BurnIn = maxAutoEpochs, new(0)
	}
	var first, last time.Time
	done := 0
	quiet := e
	quiet.observe = func(event Event) {
		if event.Task != tryTask { // such as the computation of features
			return
		}
		if last, done = e.now(), event.Done; first.IsZero() {
			first = last
		}
	}
	t, err := newTraining(s, data, "", quiet)
	if err != nil {
		return 0, err
	}
	if err := t.loaded(ctx, func(tensor.Device) error { return t.try(ctx, speedSteps, 2) }); err != nil {
		return 0, err
	}
	seen := float64((done - 2) * s.Batch)
	return max(time.Nanosecond, time.Duration(float64(last.Sub(first))/seen*float64(c.examples))), nil
}

// fitsMemory reports whether there is memory for the candidate's steps.
func (c candidate) fitsMemory(data *datasets.Dataset, e environment) (fits bool, err error) {
	t, err := newTraining(c.spec, data, "", e)
	if err != nil {
		return false, err
	}
	err = t.on(func(device tensor.Device) error {
		m, err := t.estimate(device)
		fits = err == nil && m.Fits()
		return err
	})
	return fits, err
}

// pilot returns the learning rate at which the minibatch noise of the noisiest layer is wanted
// times the noise of the friction, but at most autoFaster times the rate of a stable pilot, and at
// most the largest default rate under a prior around starting weights. noise describes the noise at
// the rate returned. A thermostat compensates this amount of noise; with more, layers whose noise
// differs would be at different temperatures. The pilot's chain is not kept.
//
// The noise of minibatches is proportional to the rate, so that one pilot at a stable rate gives
// the factor by which to change it.
func (s Spec) pilot(ctx context.Context, data *datasets.Dataset, e environment, wanted float64) (rate optimizers.Constant, noise string, err error) {
	examples := s.examplesOf(data.Len())
	epochs := max(autoEpochs, (autoSteps*s.Batch+examples-1)/examples)
	s.Chains, s.FirstChain, s.Epochs, s.Start = 1, 0, epochs, ""
	// All of the pilot's steps are measured, and one sample is the minimum of a plan.
	s.BurnIn, s.Samples, s.Keep = new(0), 1, 0
	c, err := kindOf(s.Method)
	if err != nil {
		return rate, "", err
	}
	resolved, err := s.resolve(examples) // with the prior, which may limit the rate
	if err != nil {
		return rate, "", err
	}
	most := twoDigits(resolved.maxTuningRate(examples))
	rate = s.customarySchedule(c, manyExamples).(optimizers.Constant)
	rate.Rate = min(rate.Rate, most)
	for range autoTries {
		s.Schedule = rate
		var layers []diagnostics.Temperature
		if layers, err = s.pilotNoise(ctx, data, e); err == nil {
			noisiest := slices.MaxFunc(layers[1:], func(a, b diagnostics.Temperature) int { return cmp.Compare(a.GradientNoise, b.GradientNoise) })
			factor := min(wanted/float64(noisiest.GradientNoise), autoFaster, most/rate.Rate)
			// The estimate has fewer than two significant digits.
			rate.Rate = twoDigits(rate.Rate * factor)
			return rate, fmt.Sprintf("%.2g times the friction's in %s", factor*float64(noisiest.GradientNoise), noisiest.Layer), nil
		}
		// If numbers did not stay finite, the rate was too high. Other errors end the pilot.
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
func (s Spec) pilotNoise(ctx context.Context, data *datasets.Dataset, e environment) (layers []diagnostics.Temperature, err error) {
	e.observe = func(Event) {} // its progress is not the run's
	t, err := newTraining(s, data, "", e)
	if err != nil {
		return nil, err
	}
	err = t.loaded(ctx, func(device tensor.Device) error {
		t.observing()
		if err := t.try(ctx, t.plan.Steps, window); err != nil {
			return err
		}
		layers, err = t.temperaturesByLayer(device)
		return err
	})
	return layers, err
}

// assumed returns the specification with the method that Auto chooses. Its rate, which a pilot
// would find, is left out.
func (s Spec) assumed(data *datasets.Dataset, e environment) (Spec, error) {
	s = s.named()
	if _, ok := s.Method.(Auto); !ok {
		return s, nil
	}
	if _, err := s.Resolve(); err != nil {
		return s, err
	}
	c, err := s.choose(context.Background(), data, e)
	return c.spec, err
}
