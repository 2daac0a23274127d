package bayes

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/optimizers"
)

// A warm start is stopped by its loss on training images that are held out: the fraction warmShare
// of them, but at most about maxWarmHeldOut, so that scoring takes a fraction of an epoch's time.
const (
	warmShare      = 0.2
	maxWarmHeldOut = 1000
)

// minWarmEpochs is the default number of epochs of a warm start, if they have at least minSteps
// steps.
const minWarmEpochs = 2

// warmPatience is the ratio of WarmEpochs to the default WarmPatience.
const warmPatience = 5

// checkWarmStart refuses settings of a warm start that cannot be combined. Ranges of numbers are
// checked by validate.
func (s Spec) checkWarmStart() error {
	switch {
	case s.WarmStart == nil && (s.WarmSchedule != nil || s.WarmEpochs != 0 || s.WarmPatience != 0):
		return invalid("warm-schedule, warm-epochs and warm-patience apply to a warm-start, such as adam, and none is given")
	case s.WarmStart == nil:
		return nil
	case s.Start != "":
		return invalid("start %s and warm-start %s: only one of them may be given", s.Start, MethodText(s.WarmStart))
	}
	if err := checkNil("warm-start", s.WarmStart); err != nil {
		return err
	}
	if err := s.WarmStart.Validate(); err != nil {
		return &InvalidError{err}
	}
	switch {
	case s.WarmSchedule == nil:
		return nil
	case !optimizers.UsesRates(s.WarmStart):
		return invalid("warm-schedule does not apply to %s, which finds its own step size", MethodName(s.WarmStart))
	}
	return checkSchedule("warm-schedule", s.WarmSchedule)
}

// parseWarmStart reads an optimizer, as ParseMethod reads it.
func parseWarmStart(text string) (optimizers.Optimizer, error) {
	name, _, _ := strings.Cut(text, ":")
	var names []string
	for _, k := range registry {
		if _, ok := k.method.(optimizers.Optimizer); ok {
			names = append(names, k.name)
		}
	}
	if !slices.Contains(names, strings.TrimSpace(name)) {
		return nil, invalid("warm-start must be an optimizer, which are %s, got %q", strings.Join(names, ", "), text)
	}
	m, err := ParseMethod(text)
	if err != nil {
		return nil, err
	}
	return m.(optimizers.Optimizer), nil
}

// fillWarmStart sets the defaults of a warm start on the given number of examples. Batch must have
// its default already. The optimizer uses minibatches even if the sampler uses all data at each
// step.
func (s *Spec) fillWarmStart(examples int) {
	if s.WarmStart == nil {
		return
	}
	if s.WarmEpochs == 0 {
		s.WarmEpochs = max(minWarmEpochs, epochsOf(minSteps, s.warmBatch(examples), examples))
	}
	s.WarmPatience = cmp.Or(s.WarmPatience, (s.WarmEpochs+warmPatience-1)/warmPatience)
	if c, err := kindOf(s.WarmStart); err == nil && s.WarmSchedule == nil { // an error fails in checkWarmStart
		s.WarmSchedule = s.warmSpec(examples).customarySchedule(c, examples)
	}
}

// warmBatch returns the batch size of a warm start: the run's, but at most the customary one.
func (s Spec) warmBatch(examples int) int {
	batch := customaryBatch(examples)
	if s.Batch > 0 {
		batch = min(batch, s.Batch)
	}
	return batch
}

// warmSpec returns the specification of the optimizer's part of a run.
func (s Spec) warmSpec(examples int) Spec {
	return Spec{
		Network: s.Network, Layers: s.Layers, Cut: s.Cut, Head: s.Head, Freeze: s.Freeze, Input: s.Input, file: s.file,
		Method: s.WarmStart, Schedule: s.WarmSchedule, Batch: s.warmBatch(examples), Epochs: s.WarmEpochs,
		Chains: s.Chains, FirstChain: s.FirstChain, Seed: s.Seed, Augment: s.Augment, ClassWeights: s.ClassWeights,
	}
}

// divided returns the images that a warm start optimizes on, and those held out: a part of each
// class or, if the data have groups, whole groups.
func (s Spec) divided(d *datasets.Dataset) (used, heldOut *datasets.Dataset, err error) {
	used, heldOut, err = d.Stratified(min(warmShare, maxWarmHeldOut/float64(d.Len())), s.Seed)
	if err != nil {
		return nil, nil, &InvalidError{errors.WithMessage(err, "pollen: warm-start: holding out training images")}
	}
	return used, heldOut, nil
}
