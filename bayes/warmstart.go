package bayes

import (
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/optimizers"
)

// The images that a warm start is stopped by are the fraction warmShare of the training images, but
// not more than about maxWarmHeldOut, so that scoring them takes a fraction of an epoch's time.
const (
	warmShare      = 0.2
	maxWarmHeldOut = 1000
)

// minWarmEpochs is the number of epochs of a warm start by default, if they have minSteps steps.
const minWarmEpochs = 2

// warmPatience is the part of WarmEpochs that WarmPatience is by default: one in.
const warmPatience = 5

// checkWarmStart refuses values that do not fit together. Ranges of numbers are checked by
// validate.
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
		return InvalidError{err}
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

// fillWarmStart sets the defaults of a warm start on a number of examples, after Batch's. A
// sampler on all data has a batch of all of them; the optimizer has minibatches.
func (s *Spec) fillWarmStart(examples int) {
	if s.WarmStart == nil {
		return
	}
	if s.WarmEpochs == 0 {
		s.WarmEpochs = max(minWarmEpochs, epochsOf(minSteps, s.warmBatch(examples), examples))
	}
	if s.WarmPatience == 0 {
		s.WarmPatience = (s.WarmEpochs + warmPatience - 1) / warmPatience
	}
	if c, err := kindOf(s.WarmStart); err == nil && s.WarmSchedule == nil { // an error fails in checkWarmStart
		s.WarmSchedule = s.warmSpec(examples).customarySchedule(c, examples)
	}
}

// warmBatch returns the batch of a warm start: the run's, or fewer.
func (s Spec) warmBatch(examples int) int {
	batch := customaryBatch(examples)
	if s.Batch > 0 {
		batch = min(batch, s.Batch)
	}
	return batch
}

// warmSpec is the specification of the optimizer's part of a run.
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
		return nil, nil, InvalidError{errors.WithMessage(err, "pollen: warm-start: holding out training images")}
	}
	return used, heldOut, nil
}
