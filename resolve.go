package pollen

import (
	"cmp"
	"math"
	"strconv"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
)

// defaultNetwork is the network that samplers' customary schedules are for. Others are wider and
// get wideShare of these rates: at T = 1 weights grow towards their prior's size, and the more
// inputs a layer has the smaller its steps must be.
const (
	defaultNetwork = "lenet-small"
	wideShare      = 0.25
)

// What is customary depends on how many examples there are. Of few, a minibatch is a share of them,
// epochs are those of some steps, and samplers' rates fall as the root of the examples, since noise
// is as the root of the rate over these.
const (
	standardBatch  = 100
	standardEpochs = 8
	minBatches     = 10     // in the data
	minSteps       = 1000   // of a run
	rateExamples   = 10_000 // from which on rates are the customary ones
	manyExamples   = 1 << 40
)

// maxSteps bounds the tables that have an entry for each step of a run.
const maxSteps = 1 << 26

// Resolve fills in what was left out, for many examples, and refuses what is wrong or has no
// effect, as far as that can be known without data.
func (s Spec) Resolve() (Spec, error) { return s.resolve(manyExamples) }

// resolve is Resolve for data of so many examples.
func (s Spec) resolve(examples int) (Spec, error) {
	s = s.named()
	c, err := kindOf(s.Method)
	if err != nil {
		return s, err
	}
	if err := s.checkApplicable(c); err != nil {
		return s, err
	}
	if _, ok := c.(autoKind); ok {
		if err := c.check(&s); err != nil {
			return s, InvalidError{err}
		}
		return s, nil // the rest by the method that is chosen
	}
	if s.Subset > 0 {
		examples = min(s.Subset, examples)
	}
	s.fill(c, max(1, examples))
	return s, s.checkValues(c)
}

// named has a network and a method.
func (s Spec) named() Spec {
	if s.Network == "" && s.Layers == nil {
		s.Network = defaultNetwork
	}
	if s.Method == nil {
		s.Method = langevin.SGLD{}
	}
	return s
}

// checkApplicable refuses settings that would have no effect.
func (s Spec) checkApplicable(c methodKind) error {
	if s.Network != "" && s.Layers != nil {
		return invalid("network: Network and Layers are both given, wants one")
	}
	if s.Layers != nil && len(s.Layers) == 0 {
		return invalid("network: Layers are none, wants at least one")
	}
	if s.Schedule != nil && !c.traits().rated {
		return invalid("schedule does not apply to %s, which finds its own step size", MethodName(s.Method))
	}
	if s.BurnIn != nil && s.BurnInSteps != 0 {
		return invalid("burn-in is %d epochs and burn-in-steps is %d, wants one of them", *s.BurnIn, s.BurnInSteps)
	}
	if s.Samples != 0 && s.Thinning != 0 {
		return invalid("samples is %d and thinning is %d, wants one of them", s.Samples, s.Thinning)
	}
	for _, setting := range settings {
		if !setting.everywhere && setting.get(&s) != nil && !c.applies(setting.Name) {
			return notApplicable(setting.Name, s.Method, c)
		}
	}
	return nil
}

// fill sets defaults for what was left out.
func (s *Spec) fill(c methodKind, examples int) {
	if !c.traits().exact {
		s.Batch = cmp.Or(s.Batch, customaryBatch(examples))
	}
	if s.Epochs == 0 {
		s.Epochs = cmp.Or(c.traits().epochs, max(standardEpochs, (minSteps*s.Batch+examples-1)/examples))
		if s.BurnIn != nil && *s.BurnIn >= s.cycleEpochs() {
			s.Epochs = max(1, s.Cycles) * (8**s.BurnIn + 2) / 3 // of which burn-in is the usual share
		}
	}
	s.Chains = cmp.Or(s.Chains, 1)
	if s.Schedule == nil && c.traits().rated {
		s.Schedule = s.customarySchedule(c, examples)
	}
	if s.Prior == nil && c.applies("prior") {
		s.Prior = new(langevin.Gaussian(0.316))
	}
	if s.Temperature == nil && c.applies("temperature") {
		s.Temperature = new(1.0)
		if len(s.Temperatures) > 0 {
			*s.Temperature = s.Temperatures[0]
		}
	}
	if s.BurnIn == nil && s.BurnInSteps == 0 && c.applies("burn-in") {
		s.BurnIn = new((3*s.cycleEpochs() + 4) / 8)
		if s.Cycles > 0 {
			s.BurnIn = new(min((4*s.cycleEpochs()+2)/5, s.cycleEpochs()-1))
		}
	}
	if s.Weights == "" && c.applies("weights") {
		s.Weights = StepSize
		if s.Cycles > 0 {
			s.Weights = Equal
		}
	}
	if s.Samples == 0 && s.Thinning == 0 && c.applies("samples") {
		s.Samples = 10
	}
}

func customaryBatch(examples int) int {
	return min(standardBatch, max(1, examples/minBatches))
}

// customarySchedule is the method's; with cycles, each begins at twice the constant rate.
func (s Spec) customarySchedule(c methodKind, examples int) optimizers.Schedule {
	constant, ok := scheduleOf(s.Method).(optimizers.Constant)
	if !ok {
		return scheduleOf(s.Method)
	}
	if c.traits().tempered && s.Network != defaultNetwork {
		constant.Rate *= wideShare
	}
	if c.traits().tempered && examples < rateExamples {
		constant.Rate = twoDigits(constant.Rate * math.Sqrt(float64(examples)/rateExamples))
	}
	if s.Cycles > 0 {
		return optimizers.Cyclical{Initial: 2 * constant.Rate, Cycles: s.Cycles}
	}
	return constant
}

// twoDigits rounds a rate.
func twoDigits(rate float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(rate, 'g', 2, 64), 64)
	if err != nil {
		panic(err) // it was just written
	}
	return rounded
}

// checkValues refuses values out of range in a filled specification.
func (s Spec) checkValues(c methodKind) error {
	for _, count := range []struct {
		name  string
		value int
	}{{"batch", s.Batch}, {"epochs", s.Epochs}, {"chains", s.Chains}} {
		if count.value < 1 && (count.name != "batch" || !c.traits().exact) {
			return invalid("%s is %d, wants at least 1", count.name, count.value)
		}
	}
	most := math.MaxUint16 / s.replicasOfEach()
	if s.Chains > most {
		return invalid("chains is %d, wants at most %d", s.Chains, most)
	}
	if s.FirstChain < 0 || s.FirstChain > most-s.Chains {
		return invalid("first-chain is %d, wants 0 to %d: there are no more than %d chains of a run", s.FirstChain, most-s.Chains, most)
	}
	if s.Schedule != nil {
		if err := s.Schedule.Validate(); err != nil {
			return InvalidError{err}
		}
	} else if c.traits().rated {
		return invalid("schedule is left out, and %s has no customary one: wants one, here or in Register", MethodName(s.Method))
	}
	switch {
	case s.Subset < 0:
		return invalid("subset is %d, wants at least 1", s.Subset)
	case s.Temperature != nil && !(*s.Temperature >= 0 && *s.Temperature < math.Inf(1)):
		return invalid("temperature is %v, wants a finite number of at least 0", *s.Temperature)
	case s.Weights != "" && s.Weights != Equal && s.Weights != StepSize:
		return invalid("weights is %q, wants %s or %s", s.Weights, Equal, StepSize)
	case s.Cycles < 0 || s.Cycles > s.Epochs:
		return invalid("cycles is %d in %d epochs, wants 1 to as many", s.Cycles, s.Epochs)
	case s.Anchor < 0 || s.Anchor > s.Epochs:
		return invalid("anchor is %d of %d epochs, wants 1 to as many", s.Anchor, s.Epochs)
	case s.BurnIn != nil && (*s.BurnIn < 0 || *s.BurnIn >= s.cycleEpochs()):
		return invalid("burn-in is %d of %d epochs, wants at least 0 and fewer than the epochs", *s.BurnIn, s.cycleEpochs())
	case s.BurnInSteps < 0:
		return invalid("burn-in-steps is %d, wants at least 1", s.BurnInSteps)
	case s.Samples < 0:
		return invalid("samples is %d, wants at least 1", s.Samples)
	case s.Thinning < 0:
		return invalid("thinning is %d, wants at least 1", s.Thinning)
	case s.Keep < 0:
		return invalid("keep is %d, wants at least 1", s.Keep)
	case s.Keep > 0 && s.Cycles > 0:
		return invalid("keep is %d with %d cycles: it might leave none of a cycle; wants fewer samples", s.Keep, s.Cycles)
	}
	if s.Prior != nil {
		if err := s.Prior.Validate(); err != nil {
			return InvalidError{err}
		}
	}
	for name, prior := range s.Priors {
		if err := prior.Validate(); err != nil {
			return InvalidError{errors.Wrapf(err, "layer %s", name)}
		}
	}
	if err := s.checkLadder(); err != nil {
		return err
	}
	if err := s.checkAugment(c); err != nil {
		return err
	}
	if err := c.check(&s); err != nil {
		return InvalidError{err}
	}
	return nil
}

// plan turns epochs into steps, on that many examples, and the schedule into the learning rate of
// each step; zeros without one.
func (s Spec) plan(c methodKind, examples int) (langevin.Plan, []float64, error) {
	if c.traits().exact {
		if err := s.checkExact(examples); err != nil {
			return langevin.Plan{}, nil, err
		}
	}
	if s.Batch > examples {
		return langevin.Plan{}, nil, invalid("batch of %d from %d examples, wants at most as many", s.Batch, examples)
	}
	perEpoch := float64(examples) / float64(s.Batch)
	steps := perEpoch * float64(s.Epochs)
	if steps > maxSteps {
		return langevin.Plan{}, nil, invalid("%d epochs are %.3g steps, wants at most %d", s.Epochs, steps, maxSteps)
	}
	plan := langevin.Plan{Steps: int(steps), BurnIn: int(steps) - 1, Thinning: 1}
	if c.applies("burn-in") {
		if err := s.planSampling(c, perEpoch, &plan); err != nil {
			return plan, nil, err
		}
	}
	if s.Schedule == nil {
		return plan, make([]float64, plan.Steps), nil
	}
	rates, err := s.Schedule.Rates(plan.Steps)
	if err != nil {
		return plan, nil, InvalidError{err}
	}
	for step, rate := range rates {
		if rate == 0 && c.traits().tempered && plan.SampleAt(step+1) {
			return plan, nil, invalid("schedule %s is 0 at step %d, after which a sample is drawn: it would have no weight", s.Schedule, step)
		}
	}
	return plan, rates, nil
}

// planSampling says when chains that burn in are sampled.
func (s Spec) planSampling(c methodKind, perEpoch float64, plan *langevin.Plan) error {
	plan.Cycles, plan.BurnIn = s.Cycles, s.BurnInSteps
	if s.BurnIn != nil {
		plan.BurnIn = int(perEpoch * float64(*s.BurnIn))
	}
	if steps := plan.Steps / max(1, s.Cycles); plan.BurnIn >= steps {
		return invalid("burn-in is %d of %d steps, wants fewer than the steps", plan.BurnIn, steps)
	}
	sampling := plan.Steps - max(1, s.Cycles)*plan.BurnIn
	if plan.Thinning = s.Thinning; plan.Thinning > 0 {
		if err := plan.Validate(); err != nil {
			return invalid("a sample per %d steps in %d steps, burn-in of %d included, wants one at least, and one of each cycle",
				s.Thinning, plan.Steps, plan.BurnIn)
		}
		return nil
	}
	kept := c.kept(&s)
	plan.Thinning = sampling / kept
	if err := plan.Validate(); err != nil {
		what, less := "samples", "more epochs or fewer samples"
		if c.traits().collected {
			what, less = "states that "+MethodName(s.Method)+" collects", "more epochs"
		}
		return invalid("%d %s in the %d steps after burn-in: a step has one at most, a cycle one at least; wants %s", kept, what, sampling, less)
	}
	return nil
}

// checkAugment refuses values out of range, and what needs the potential as a function of the
// parameters.
func (s Spec) checkAugment(c methodKind) error {
	if s.Augment.isNone() {
		return nil
	}
	if err := s.Augment.op(1).Validate(); err != nil {
		return invalid("augment: %v", err)
	}
	const function = "which must be a function of the parameters, and is not while images change at random"
	switch {
	case c.traits().exact:
		return invalid("augment does not apply to %s: its test compares values of the potential, %s", MethodName(s.Method), function)
	case len(s.Temperatures) > 0:
		return invalid("augment does not go with temperatures: swaps compare values of the potential, %s", function)
	case s.Anchor > 0:
		return invalid("augment does not go with an anchor, which has the gradient of all data, %s", function)
	}
	return nil
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

// Build is the network for that many classes, from images to logits, with what the method adds to
// it.
func (s Spec) Build(classes int) (network layers.Sequential, err error) {
	s = s.named()
	c, err := kindOf(s.Method)
	if err != nil {
		return nil, err
	}
	if network = s.Layers; network == nil {
		if network, err = namedNetwork(s.Network, classes); err != nil {
			return nil, InvalidError{err}
		}
	}
	if network, err = c.network(network); err != nil {
		return nil, InvalidError{errors.WithMessage(err, "pollen: network")}
	}
	return network, nil
}
