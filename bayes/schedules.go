package bayes

import (
	"math"
	"reflect"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// customarySchedule returns the method's schedule for the network, the number of examples and the
// cycles. For networks other than defaultNetwork, methods without noise get a warm-up if they begin
// at a high rate, at which some networks do not learn, or diverge.
func (s Spec) customarySchedule(c methodKind, examples int) optimizers.Schedule {
	schedule := s.customaryRates(c, examples)
	if c.traits().tempered || s.Network == defaultNetwork || s.isPretrained() || schedule == nil {
		return schedule
	}
	rising := s.risingSteps(s.Batch, examples)
	if rates, err := ratesOf(schedule, 2); err != nil || rates[0] < steepRate || rising < 1 {
		return schedule
	}
	return optimizers.WarmUp{Steps: rising, Then: schedule}
}

// risingSteps returns the number of steps of a warm-up: risingSteps, or a tenth of a shorter run.
func (s Spec) risingSteps(batch, examples int) int {
	return min(risingSteps, s.Epochs*examples/batch/10)
}

// customaryRates returns the method's schedule without a warm-up. Cycles begin at twice the
// constant rate.
func (s Spec) customaryRates(c methodKind, examples int) optimizers.Schedule {
	schedule := scheduleOf(s.Method)
	tuned := !c.traits().tempered && s.isPretrained() && !s.Frozen()
	if cosine, ok := schedule.(optimizers.Cosine); ok && tuned {
		return optimizers.Cosine{First: twoDigits(cosine.First * tuningFraction), Last: cosine.Last * tuningFraction}
	}
	constant, ok := schedule.(optimizers.Constant)
	if !ok {
		return schedule
	}
	if c.traits().tempered && s.Network != defaultNetwork {
		constant.Rate *= wideFraction
	}
	if tuned {
		constant.Rate = twoDigits(constant.Rate * tuningFraction)
	}
	// The rate of matched friction depends on the number of minibatches, see independentBatches.
	// That of other samplers grows with the root of the number of examples, see rateExamples.
	if batches := float64(examples) / float64(s.Batch); c.traits().independent && examples < manyExamples {
		constant.Rate = twoDigits(constant.Rate * math.Sqrt(independentBatches/batches))
	} else if c.traits().tempered && examples < rateExamples {
		constant.Rate = twoDigits(constant.Rate * math.Sqrt(float64(examples)/rateExamples))
	}
	if s.Cycles > 0 {
		return optimizers.Cyclical{Initial: 2 * constant.Rate, Cycles: s.Cycles}
	}
	return constant
}

// maxTuningRate returns the largest default rate for weights with the prior start:S: N S^2/8 for N
// examples. At N S^2, a step of gradient descent takes a weight from anywhere to the prior's mean,
// and at twice that it diverges. Networks forget what they have learnt, and samplers are too hot,
// before that. It is infinite without such a prior.
func (s Spec) maxTuningRate(examples int) float64 {
	most := math.Inf(1)
	limit := func(p langevin.Prior) {
		if p.Kind == langevin.StartPrior {
			most = min(most, float64(examples)*p.Scale*p.Scale/8)
		}
	}
	if s.Prior != nil {
		limit(*s.Prior)
	}
	for _, p := range s.Priors {
		limit(p)
	}
	return most
}

// atMost returns a schedule whose rates are at most the given one, if it is one of the kinds that
// are defaults.
func atMost(schedule optimizers.Schedule, rate float64) optimizers.Schedule {
	switch r := schedule.(type) {
	case optimizers.Constant:
		return optimizers.Constant{Rate: min(r.Rate, rate)}
	case optimizers.Cosine:
		return optimizers.Cosine{First: min(r.First, rate), Last: min(r.Last, rate)}
	case optimizers.Cyclical:
		return optimizers.Cyclical{Initial: min(r.Initial, rate), Cycles: r.Cycles}
	}
	return schedule
}

// checkSchedule refuses a schedule that is a nil pointer, is not valid, or cannot be restored from
// its text, as it must be when a run is opened.
func checkSchedule(what string, schedule optimizers.Schedule) error {
	if err := checkNil(what, schedule); err != nil {
		return err
	}
	if err := schedule.Validate(); err != nil {
		return &InvalidError{errors.WithMessage(err, "pollen: "+what)}
	}
	if again, err := optimizers.ParseSchedule(schedule.String()); err != nil || !reflect.DeepEqual(again, schedule) {
		return invalid("%s: %T is not what its text %q describes: a run could not be opened again; see optimizers.RegisterSchedule", what, schedule, schedule)
	}
	return nil
}

// ratesOf returns the rates of a run's steps, which a custom schedule may compute wrongly.
func ratesOf(schedule optimizers.Schedule, steps int) ([]float64, error) {
	rates, err := schedule.Rates(steps)
	if err != nil {
		return nil, &InvalidError{err}
	}
	if len(rates) != steps {
		return nil, invalid("schedule %s has %d rates for %d steps", schedule, len(rates), steps)
	}
	for step, rate := range rates {
		if !(rate >= 0 && rate <= math.MaxFloat32) {
			return nil, invalid("schedule %s: rates must be at least 0 and finite in float32, got %v at step %d", schedule, rate, step)
		}
	}
	return rates, nil
}
