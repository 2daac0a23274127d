package bayes

import (
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// diverged returns a DivergedError for an error of numbers that are not finite, and other errors as
// they are.
func (t *training) diverged(err error) error {
	if !isNotFinite(err) {
		return err
	}
	if t.warmUp != nil && !t.warmUp.done {
		advice := "another warm-start or network"
		if optimizers.UsesRates(t.spec.WarmStart) {
			advice = "smaller learning rates of the warm start (warm-schedule)"
		}
		return &DivergedError{MethodName(t.spec.WarmStart), advice, err}
	}
	advice := "another network or method"
	if t.kind.traits().rated {
		advice = "smaller learning rates (schedule), or with the method auto, which finds one"
	}
	return &DivergedError{MethodName(t.spec.Method), advice, err}
}

// checkStart returns an InvalidError if a sample of another run, at which a chain now starts, does
// not predict finite probabilities.
func (t *training) checkStart(chain int, s samples.Sample) error {
	state, err := samples.FromSession(t.session, chain, 1) // in the order of this network's parameters
	if err != nil {
		return err
	}
	state.Chain, state.Step = s.Chain, s.Step
	if err := t.probe.Check(state); err != nil {
		return &InvalidError{err}
	}
	return nil
}
