package bayes

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// These numbers define the method of a specification that has none: each chain makes one short
// cycle from weights that an optimizer found at a high rate. A high rate finds solutions that
// generalize better than a low one, and many short chains predict better than a few long ones. The
// measurements behind these numbers are in docs/defaults.md.
const (
	minRecommendedChains  = 4
	maxRecommendedChains  = 12
	recommendedEpochs     = 10 // of a chain, on large data sets
	recommendedWarmEpochs = 5  // maximum, of its warm start

	// The minimum number of steps of a cycle on few images, and the maximum if that is more than
	// recommendedEpochs; see pilotEpochs.
	shortestCycle = 100
	longestCycle  = 250

	// A pilot compares training with and without mirrored images if there are at least minMirrored
	// images: a fifth of them is held out for the comparison, and a fifth of fewer images would not
	// decide it. The pilot uses at most maxMirrored images, and mirroringChains chains with and
	// without.
	minMirrored     = 2500
	maxMirrored     = 5000
	mirroringChains = 2

	recommendedPatience   = 200 // steps
	recommendedBurnIn     = 0.9 // of a cycle
	recommendedSamples    = 32  // of all chains
	minRecommendedSamples = 4   // of a chain: the minimum for a split R-hat

	// Images are shifted by up to their shorter side divided by these numbers. Small data sets gain
	// from larger shifts. On large ones, small networks cannot learn all shifted images:
	// lenet-small is worse on Fashion-MNIST with shifts by 2 of 28 pixels than without any.
	recommendedShiftOfFew  = 14
	recommendedShiftOfMany = 28

	// Learning rates of warm starts. The rates of cycles fall from these to 0. Deep networks do not
	// learn at the rate of defaultNetwork, see wideFraction.
	recommendedRate     = 0.06
	recommendedWideRate = 0.03

	// To train all weights of a pretrained network, Adam makes at least tuningSteps steps and
	// tuningEpochs epochs. Its rate rises to tuningRate and then falls to 0. The measurements are
	// in docs/pretrained.md.
	tuningRate   = 1e-4
	tuningSteps  = 100
	tuningEpochs = 5
)

// recommendedPrior is wider than customaryPrior, whose pull towards 0 makes chains that explore at
// a high rate underconfident.
var recommendedPrior = langevin.Gaussian(0.6)

// recommended returns the specification with a method if it has none. For an ONNX network it is
// Auto if all weights are frozen, and otherwise an ensemble trained by Adam, or SGHMC at its
// customary rate if a field is given that only samplers have. For other networks it is SGHMC with
// several chains, cycles and, if warm, a warm start. Fields that are given keep their values, and
// exclude defaults that they cannot be combined with. side is the shorter side of the images.
func (s Spec) recommended(warm bool, examples, side int) Spec {
	if s.Method != nil {
		return s
	}
	if s.isPretrained() && cmp.Or(s.Freeze, pretrained.FreezeAll) == pretrained.FreezeAll {
		s.Method = Auto{} // a head is cheap enough for samplers on all data
		return s
	}
	if s.Network == "" && s.Layers == nil {
		s.Network = defaultNetwork
	}
	examples = s.examplesOf(examples)
	if _, sampled := s.inapplicable(optimizerKind{}); s.isPretrained() && !sampled {
		s.fillTuning(max(1, examples), side)
		return s
	}
	s.Method = langevin.SGHMC{Friction: 0.1}
	if len(s.Temperatures) > 0 { // which cannot be combined with velocities
		s.Method = langevin.SGLD{}
	}
	if s.isPretrained() { // high rates would make it forget what it has learnt
		s.Chains = cmp.Or(s.Chains, minRecommendedChains)
		return s
	}
	if warm && s.WarmStart == nil && s.Start == "" {
		s.fillRecommendedWarmStart(max(1, examples))
	}
	s.Weights = cmp.Or(s.Weights, Equal)
	// With these settings, chains burn in once and are then sampled until the end of the run.
	constant := s.Schedule != nil || s.BurnIn != nil || s.BurnInSteps != 0 || s.Thinning != 0 || s.Keep != 0 || s.Anchor != 0 || len(s.Temperatures) > 0
	if constant && s.Cycles == 0 {
		s.Chains = cmp.Or(s.Chains, minRecommendedChains)
	} else {
		s.fillShortChains(max(1, examples), side)
	}
	return s
}

// fillTuning sets the defaults for training all weights of a pretrained network: an ensemble of
// chains, each of which Adam trains on shifted images.
func (s *Spec) fillTuning(examples, side int) {
	s.Method = customaryAdam
	batch := cmp.Or(s.Batch, customaryBatch(examples))
	s.Chains = cmp.Or(s.Chains, minRecommendedChains)
	s.Epochs = cmp.Or(s.Epochs, max(tuningEpochs, epochsOf(tuningSteps, batch, examples)))
	if s.Augment == nil {
		s.Augment = &Augment{Shift: recommendedShift(side, batch, examples)}
	}
	if s.Schedule == nil {
		falling := optimizers.Cosine{First: tuningRate}
		s.Schedule = falling
		if rising := s.risingSteps(batch, examples); rising > 0 {
			s.Schedule = optimizers.WarmUp{Steps: rising, Then: falling}
		}
	}
}

// fillRecommendedWarmStart sets a warm start by momentum, which is SGHMC at T = 0, at a high rate,
// until it no longer improves.
func (s *Spec) fillRecommendedWarmStart(examples int) {
	s.WarmStart = optimizers.Momentum{Decay: 0.9}
	batch := s.warmBatch(examples)
	if s.WarmEpochs == 0 {
		s.WarmEpochs = max(recommendedWarmEpochs, epochsOf(minSteps, batch, examples))
	}
	if s.WarmPatience == 0 {
		s.WarmPatience = min(s.WarmEpochs, epochsOf(recommendedPatience, batch, examples))
	}
	if s.WarmSchedule == nil {
		s.WarmSchedule = optimizers.Constant{Rate: s.recommendedRate()}
		// A warm-up must be shorter than the warm start, whose epochs lack the images held out.
		if steps := s.WarmEpochs * examples / batch; steps > 2*risingSteps {
			s.WarmSchedule = optimizers.WarmUp{Steps: risingSteps, Then: s.WarmSchedule}
		}
	}
}

// RecommendedSteps returns the maximum number of steps, warm start included, that all chains of a
// run of the network without a Method make together on the given number of training images; 0 if
// Auto decides.
func RecommendedSteps(network Spec, examples int) int {
	s := Spec{Network: network.Network, Freeze: network.Freeze}.recommended(true, examples, standardSide)
	return s.Chains * (s.WarmEpochs + s.Epochs) * examples / customaryBatch(examples)
}

// recommendedRate returns the learning rate of a warm start, at which a cycle also begins.
func (s *Spec) recommendedRate() float64 {
	if s.Network != defaultNetwork {
		return recommendedWideRate
	}
	return recommendedRate
}

// cycleRate returns the learning rate at which a cycle begins: the highest one of a warm start by
// momentum, which is SGHMC at T = 0.
func (s *Spec) cycleRate(examples int) float64 {
	if _, ok := s.WarmStart.(optimizers.Momentum); ok && s.WarmSchedule != nil {
		const most = 1 << 16 // steps: schedules have risen by then
		epochs := min(s.WarmEpochs, most/max(1, examples/s.warmBatch(examples)))
		steps := epochs * examples / s.warmBatch(examples)
		if rates, err := ratesOf(s.WarmSchedule, max(2, steps)); err == nil { // errors are found later
			return slices.Max(rates)
		}
	}
	return s.recommendedRate()
}

// fillShortChains sets the defaults of many short chains. side is the shorter side of the images.
// The more epochs a chain needs to make enough steps, the more chains there are.
func (s *Spec) fillShortChains(examples, side int) {
	batch := cmp.Or(s.Batch, customaryBatch(examples))
	epochs := customaryEpochs(batch, examples)
	s.Chains = cmp.Or(s.Chains, min(maxRecommendedChains, minRecommendedChains*epochs/standardEpochs))
	if s.Augment == nil && s.Anchor == 0 && len(s.Temperatures) == 0 { // which need a deterministic potential
		s.Augment = &Augment{Shift: recommendedShift(side, batch, examples)}
	}
	s.Epochs = cmp.Or(s.Epochs, max(recommendedEpochs, epochsOf(longestCycle, batch, examples)))
	s.Cycles = cmp.Or(s.Cycles, 1)
	if _, ok := s.Method.(langevin.SGHMC); ok && s.Schedule == nil && s.Cycles == 1 {
		s.Schedule = optimizers.Cyclical{Initial: s.cycleRate(examples), Cycles: 1}
	}
	if length := s.cycleEpochs(); s.BurnIn == nil && s.BurnInSteps == 0 && length > 0 {
		s.BurnIn = new(min(int(recommendedBurnIn*float64(length)), length-1))
	}
	if s.Samples == 0 && s.Thinning == 0 {
		s.Samples = max(minRecommendedSamples, recommendedSamples/s.Chains, s.Cycles)
		if s.BurnIn != nil && s.Cycles == 1 { // a step has at most one
			s.Samples = max(1, min(s.Samples, (s.Epochs-*s.BurnIn)*examples/batch))
		}
	}
	if s.Prior == nil {
		s.Prior = new(recommendedPrior)
	}
}

// recommendedShift returns the number of pixels by which images are shifted at most.
func recommendedShift(side, batch, examples int) int {
	if customaryEpochs(batch, examples) > standardEpochs {
		return side / recommendedShiftOfFew
	}
	return side / recommendedShiftOfMany
}

// recommendedFor returns the recommended specification for data. There is no warm start if no image
// can be held out of it, because each class has only one image or one group.
func (s Spec) recommendedFor(data *datasets.Dataset, e environment) Spec {
	side := min(data.Height, data.Width)
	if s.Method != nil || s.isPretrained() {
		return s.recommended(true, data.Len(), side)
	}
	of := data
	if s.Subset > 0 && s.Subset < data.Len() {
		if first, err := data.First(s.Subset); err == nil { // otherwise taking the subset fails in Fit
			of = first
		}
	}
	_, _, err := s.divided(of)
	if err != nil && s.WarmStart == nil && s.Start == "" {
		e.remark(fmt.Sprintf("no warm start: %v", err))
	}
	return s.recommended(err == nil, data.Len(), side)
}

// needsLength reports whether a pilot must find the length of the recommended cycle: if there is
// one cycle, after a warm start, and Epochs is not given. On 2500 images or more, a network does
// not memorize its images within recommendedEpochs.
func (s Spec) needsLength(recommended Spec) bool {
	return s.Method == nil && s.Epochs == 0 && recommended.WarmStart != nil && recommended.Cycles == 1 && recommended.Epochs > recommendedEpochs
}

// needsMirroring reports whether a pilot must find out whether mirrored images help.
func (s Spec) needsMirroring(recommended Spec, examples int) bool {
	return s.Method == nil && s.Augment == nil && recommended.Augment != nil && recommended.WarmStart != nil && s.examplesOf(examples) >= minMirrored
}
