package bayes

import (
	"cmp"
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/langevin"
)

// maxSteps bounds the tables that have an entry for each step of a run. 2^26 steps are a week at
// 100 steps per second.
const maxSteps = 1 << 26

// Resolve returns the specification with defaults for the fields that were left out, as for a large
// data set of 28x28 images. Fit resolves for its own data, for which batches, epochs, rates and
// shifts may differ. It returns the errors that Validate does.
func (s Spec) Resolve() (Spec, error) { return s.resolve(manyExamples) }

// Validate returns an InvalidError if a field is out of range or has no effect, as far as that does
// not depend on data.
func (s Spec) Validate() error {
	_, err := s.Resolve()
	return err
}

// resolve is Resolve for a number of examples. The order is essential: names and method first,
// since everything depends on the kind of method; then fields that do not apply are refused, while
// a field that was left out still differs from a default; then defaults; then ranges.
func (s Spec) resolve(examples int) (Spec, error) {
	s = s.namedFor(examples)
	c, err := kindOf(s.Method)
	if err != nil {
		return s, err
	}
	if err := s.checkApplicable(c); err != nil {
		return s, err
	}
	if _, ok := c.(autoKind); ok {
		if err := c.check(&s); err != nil {
			return s, &InvalidError{err}
		}
		return s, nil // the method that is chosen fills in the rest
	}
	s.fill(c, max(1, s.examplesOf(examples)))
	return s, s.validate(c)
}

// named returns the specification with a network and a method.
func (s Spec) named() Spec { return s.namedFor(manyExamples) }

// namedFor is like named; the method, if there is none, is the one recommended for the given number
// of examples.
func (s Spec) namedFor(examples int) Spec {
	if s.Network == "" && s.Layers == nil {
		s.Network = defaultNetwork
	}
	if s.isPretrained() {
		s.Head, s.Freeze = cmp.Or(s.Head, headLinear), cmp.Or(s.Freeze, pretrained.FreezeAll)
		if s.file == nil {
			s.file = pretrained.Open(s.Network)
		}
	}
	s = s.recommended(true, examples, standardSide)
	if s.Frozen() && s.Augment.atEachStep() { // features are computed once
		augment := *s.Augment
		augment.Copies = augmentCopies
		s.Augment = &augment
	}
	return s
}

// checkApplicable refuses fields that would have no effect, such as a temperature for Adam. A user
// who sets one expects an effect. It must be called before fill, which sets only fields that have
// an effect.
func (s Spec) checkApplicable(c methodKind) error {
	if s.Network != "" && s.Layers != nil {
		return invalid("network: only one of Network and Layers may be given")
	}
	if s.Layers != nil && len(s.Layers) == 0 {
		return invalid("network: Layers must be at least 1")
	}
	if err := s.checkPretrained(); err != nil {
		return err
	}
	if s.Schedule != nil && !c.traits().rated {
		return invalid("schedule does not apply to %s, which finds its own step size", MethodName(s.Method))
	}
	if s.BurnIn != nil && s.BurnInSteps != 0 {
		return invalid("burn-in is %d epochs and burn-in-steps is %d: only one of them may be given", *s.BurnIn, s.BurnInSteps)
	}
	if s.Samples != 0 && s.Thinning != 0 {
		return invalid("samples is %d and thinning is %d: only one of them may be given", s.Samples, s.Thinning)
	}
	if err := s.checkWarmStart(); err != nil {
		return err
	}
	if name, ok := s.inapplicable(c); ok {
		return notApplicable(name, s.Method, c)
	}
	return nil
}

// inapplicable returns the name of a setting that is given and that methods of a kind do not have,
// and whether there is one.
func (s Spec) inapplicable(c methodKind) (name string, ok bool) {
	for _, setting := range settings {
		if !setting.everywhere && setting.get(&s) != nil && !c.traits().applies(setting.Name) {
			return setting.Name, true
		}
	}
	return "", false
}

// fill sets defaults for the fields that were left out, for a data set of the given number of
// examples. Later defaults build on earlier ones: Epochs on Batch, BurnIn on Epochs, Schedule on
// Prior, and Weights on Cycles.
func (s *Spec) fill(c methodKind, examples int) {
	if !c.traits().exact {
		s.Batch = cmp.Or(s.Batch, customaryBatch(examples))
	}
	s.fillWarmStart(examples)
	// A burn-in that was given may be longer than the usual number of epochs. The run is then made
	// long enough for it, instead of being refused.
	if s.Epochs == 0 {
		s.Epochs = cmp.Or(c.traits().epochs, customaryEpochs(s.Batch, examples))
		if c.traits().dirichlet {
			s.Epochs = max(s.Epochs, customaryEpochs(s.Batch, examples))
		}
		if s.BurnIn != nil && *s.BurnIn >= s.cycleEpochs() {
			s.Epochs = max(1, s.Cycles) * (8**s.BurnIn + 2) / 3 // so that burn-in is the usual 3/8 of them
		}
	}
	switch m := s.Method.(type) {
	case Ensemble:
		s.Chains = cmp.Or(s.Chains, ensembleChains)
	case Distillation:
		s.Chains = cmp.Or(s.Chains, m.chains())
	}
	s.Chains = cmp.Or(s.Chains, 1)
	if s.Prior == nil && c.traits().applies("prior") {
		s.Prior = new(customaryPrior)
		if s.isPretrained() && !s.Frozen() {
			s.Prior = new(tuningPrior)
			if c.traits().tempered {
				s.Prior = new(sampledTuningPrior)
			}
		}
	}
	if s.Schedule == nil && c.traits().rated {
		s.Schedule = atMost(s.customarySchedule(c, examples), twoDigits(s.maxTuningRate(examples)))
	}
	if s.Temperature == nil && c.traits().applies("temperature") {
		s.Temperature = new(1.0)
		if len(s.Temperatures) > 0 {
			*s.Temperature = s.Temperatures[0]
		}
	}
	if s.BurnIn == nil && s.BurnInSteps == 0 && c.traits().applies("burn-in") {
		// Rounded to the nearest: 3 of 8 epochs.
		s.BurnIn = new((3*s.cycleEpochs() + 4) / 8)
		if s.Cycles > 0 {
			s.BurnIn = new(min((4*s.cycleEpochs()+2)/5, s.cycleEpochs()-1))
		}
	}
	if s.Weights == "" && c.traits().applies("weights") {
		s.Weights = StepSize
		if s.Cycles > 0 {
			s.Weights = Equal
		}
	}
	if s.Samples == 0 && s.Thinning == 0 && c.traits().applies("samples") {
		s.Samples = 10
	}
}

// validate refuses values out of range in a specification that fill has completed. Comparisons are
// written so that NaN fails, as in !(x >= 0).
func (s Spec) validate(c methodKind) error {
	if err := s.checkCounts(c); err != nil {
		return err
	}
	if s.Schedule != nil {
		if err := checkSchedule("schedule", s.Schedule); err != nil {
			return err
		}
	} else if c.traits().rated {
		return invalid("schedule must be given, here or in Register: %s has no customary one", MethodName(s.Method))
	}
	switch {
	case s.Temperature != nil && !(*s.Temperature >= 0 && *s.Temperature < math.Inf(1)):
		return invalid("temperature must be finite and at least 0, got %v", *s.Temperature)
	case s.Weights != "" && s.Weights != Equal && s.Weights != StepSize:
		return invalid("weights must be %s or %s, got %q", Equal, StepSize, s.Weights)
	case s.Cycles < 0 || s.Cycles > s.Epochs:
		return invalid("cycles must be 1 to %d, the number of epochs, got %d", s.Epochs, s.Cycles)
	case s.Anchor < 0 || s.Anchor > s.Epochs:
		return invalid("anchor must be 1 to %d, the number of epochs, got %d", s.Epochs, s.Anchor)
	case s.BurnIn != nil && (*s.BurnIn < 0 || *s.BurnIn >= s.cycleEpochs()):
		return invalid("burn-in is %d of %d epochs, must be at least 0 and less than the epochs", *s.BurnIn, s.cycleEpochs())
	case s.Keep > 0 && s.Cycles > 0:
		return invalid("keep is %d with %d cycles: it might keep no sample of a cycle; use fewer samples", s.Keep, s.Cycles)
	}
	if s.Prior != nil {
		if err := s.Prior.Validate(); err != nil {
			return &InvalidError{err}
		}
	}
	for name, prior := range s.Priors {
		if err := prior.Validate(); err != nil {
			return &InvalidError{errors.Wrapf(err, "layer %s", name)}
		}
	}
	if err := s.checkLadder(); err != nil {
		return err
	}
	if err := s.ClassWeights.validate(); err != nil {
		return err
	}
	if err := s.checkAugment(c); err != nil {
		return err
	}
	if err := c.check(&s); err != nil {
		return &InvalidError{err}
	}
	return nil
}

// checkCounts refuses numbers of images, steps, samples and chains that are out of range.
func (s Spec) checkCounts(c methodKind) error {
	for _, count := range []struct {
		name  string
		value int
		unset bool // whether 0 is valid
	}{
		{"batch", s.Batch, c.traits().exact}, {"epochs", s.Epochs, false}, {"chains", s.Chains, false}, {"subset", s.Subset, true},
		{"burn-in-steps", s.BurnInSteps, true}, {"samples", s.Samples, true}, {"thinning", s.Thinning, true}, {"keep", s.Keep, true},
		{"warm-epochs", s.WarmEpochs, true}, {"warm-patience", s.WarmPatience, true},
	} {
		if count.value < 0 || count.value == 0 && !count.unset {
			return invalid("%s must be at least 1, got %d", count.name, count.value)
		}
	}
	// Sessions number chains with 16 bits, and each replica is a chain of the session.
	most := math.MaxUint16 / s.replicasOfEach()
	if s.Chains > most {
		return invalid("chains must be at most %d, got %d", most, s.Chains)
	}
	if s.FirstChain < 0 || s.FirstChain > most-s.Chains {
		return invalid("first-chain must be 0 to %d, got %d: a run has at most %d chains", most-s.Chains, s.FirstChain, most)
	}
	return nil
}

// plan returns the steps of the run on a number of examples, and the learning rate of each step,
// zero without a schedule. An epoch has examples/Batch steps, not necessarily an integer; steps are
// rounded down once, over all epochs.
func (s Spec) plan(c methodKind, examples int) (langevin.Plan, []float64, error) {
	if c.traits().exact && s.Batch != examples { // its Metropolis test is not valid on minibatches
		return langevin.Plan{}, nil, invalid("%s evaluates all data at each step: batch must be %d, all examples, got %d", MethodName(s.Method), examples, s.Batch)
	}
	if s.Batch > examples {
		return langevin.Plan{}, nil, invalid("batch must be at most %d, the number of examples, got %d", examples, s.Batch)
	}
	perEpoch := float64(examples) / float64(s.Batch)
	steps := perEpoch * float64(s.Epochs)
	if steps > maxSteps {
		return langevin.Plan{}, nil, invalid("%d epochs are %.3g steps, must be at most %d", s.Epochs, steps, maxSteps)
	}
	// Without burn-in the plan has one sample, the last state.
	plan := langevin.Plan{Steps: int(steps), BurnIn: int(steps) - 1, Thinning: 1}
	if c.traits().applies("burn-in") {
		if err := s.planSampling(c, perEpoch, &plan); err != nil {
			return plan, nil, err
		}
	}
	if s.Schedule == nil {
		return plan, make([]float64, plan.Steps), nil
	}
	if err := checkTables(plan.Steps); err != nil {
		return plan, nil, err
	}
	rates, err := ratesOf(s.Schedule, plan.Steps)
	if err != nil {
		return plan, nil, err
	}
	// Weights are proportional to the step size, so a sample at rate 0 would not count.
	for step, rate := range rates {
		if rate == 0 && c.traits().tempered && plan.SampleAt(step+1) {
			return plan, nil, invalid("schedule %s is 0 at step %d, after which a sample is drawn: it would have no weight", s.Schedule, step)
		}
	}
	return plan, rates, nil
}

// planSampling sets the cycles, burn-in and thinning of a plan. Thinning is Spec.Thinning, or
// follows from the number of samples, rounded down, so that there are no fewer samples than
// requested.
func (s Spec) planSampling(c methodKind, perEpoch float64, plan *langevin.Plan) error {
	plan.Cycles, plan.BurnIn = s.Cycles, s.BurnInSteps
	if s.BurnIn != nil {
		plan.BurnIn = int(perEpoch * float64(*s.BurnIn))
	}
	if steps := plan.Steps / max(1, s.Cycles); plan.BurnIn >= steps {
		return invalid("burn-in is %d of %d steps, must be less than the steps", plan.BurnIn, steps)
	}
	sampling := plan.Steps - max(1, s.Cycles)*plan.BurnIn
	if plan.Thinning = s.Thinning; plan.Thinning > 0 {
		if err := plan.Validate(); err != nil {
			return invalid("thinning of %d steps gives no sample in %d steps, burn-in of %d included, or none in a cycle",
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
		return invalid("%d %s in the %d steps after burn-in: a step has at most one, a cycle at least one; use %s", kept, what, sampling, less)
	}
	return nil
}

// checkAugment refuses values out of range, and methods that need the potential as a function of
// the parameters: with changes at each step, evaluating it twice at the same parameters gives two
// values.
func (s Spec) checkAugment(c methodKind) error {
	if s.Augment.isNone() {
		return nil
	}
	if err := s.Augment.op(1).Validate(); err != nil {
		return invalid("augment: %v", err)
	}
	if n := s.Augment.Copies; n < 0 || n > maxAugmentCopies || n > 0 && !s.Frozen() {
		return invalid("augment: copies must be 1 to %d for a head on a frozen network, and 0 for others, got %d", maxAugmentCopies, n)
	}
	const function = "which must be a function of the parameters, and is not while images change at random"
	switch {
	case c.traits().exact && s.Augment.atEachStep():
		return invalid("augment does not apply to %s: its test compares values of the potential, %s", MethodName(s.Method), function)
	case s.Augment.Copies > 0 && (len(s.Temperatures) > 0 || s.Anchor > 0):
		return invalid("augment cannot be combined with temperatures or an anchor, which need epochs of unchanged images")
	case len(s.Temperatures) > 0:
		return invalid("augment cannot be combined with temperatures: swaps compare values of the potential, %s", function)
	case s.Anchor > 0:
		return invalid("augment cannot be combined with an anchor, which is the gradient of all data, %s", function)
	}
	return nil
}

// checkLadder refuses temperatures of replica exchange that are not a valid ladder, or that cannot
// be combined with other fields.
func (s Spec) checkLadder() error {
	if len(s.Temperatures) == 0 {
		return nil
	}
	if err := s.exchange(math.MaxInt32).Validate(); err != nil {
		return &InvalidError{err}
	}
	switch {
	case s.Temperature != nil && *s.Temperature != s.Temperatures[0]:
		return invalid("temperature must be %v, the first of temperatures %s, got %v", s.Temperatures[0], joinNumbers(s.Temperatures), *s.Temperature)
	case s.Cycles != 0 || s.Anchor != 0:
		return invalid("temperatures %s: replica exchange cannot be combined with cycles or an anchor", joinNumbers(s.Temperatures))
	}
	return nil
}
