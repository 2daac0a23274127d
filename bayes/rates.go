package bayes

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
)

// The learning rates at which chains explore well are close to those at which they diverge. While a
// chain is only optimized, in a warm start or in the exploring part of a cycle, it may diverge
// without ending the run: it goes back to earlier weights, and its learning rate is halved for the
// rest of the run. If it still diverges after maxHalvings halvings, the run fails. Chains of
// methods that do not sample are trained again instead, see retrain.
const maxHalvings = 10

// halvingsState is the name of the state that holds the number of a chain's halvings, or
// stoppedRate.
const halvingsState = "rate halvings"

// stoppedRate takes the place of a number of halvings for a learning rate of 0. A chain gets it if
// it diverges after its warm start has ended, while others are still optimized.
const stoppedRate = maxHalvings + 1

// rateFactors returns the factors of learning rates: 2^-n after n halvings, and 0 for stoppedRate.
func rateFactors() []float64 {
	factors := make([]float64, stoppedRate+1)
	for i := range stoppedRate {
		factors[i] = math.Ldexp(1, -i)
	}
	return factors
}

// stepRates returns the learning rate in the present step, of each chain if rates can be halved.
func (t *job) stepRates(b *graph.Builder) *graph.Node {
	rates := b.Table("rates", t.rates)
	if !t.halves {
		return rates
	}
	return b.Apply(op.ScaledEntry{}, rates, b.Table("rate factors", rateFactors()), b.State(halvingsState, nil, 1), b.Header())
}

// attachHalvable is langevin.Attach with step sizes that are halved with a chain's learning rate.
func (t *job) attachHalvable(b *graph.Builder, sampler langevin.Sampler, posterior langevin.Posterior, loss *graph.Node, stepSizes []float64) error {
	factors := rateFactors()[:stoppedRate] // which must be positive
	return langevin.AttachScaled(b, sampler, posterior, loss, stepSizes, t.temperatures, factors, b.State(halvingsState, nil, 1))
}

// setRateFactor sets a chain's number of halvings, or stoppedRate.
func setRateFactor(s *graph.Session, chain, number int) error {
	return s.WriteFloats(halvingsState, chain, []float32{float32(number)})
}

// rate returns the learning rate of a chain of the session in a step.
func (t *job) rate(chain, step int) (float64, error) {
	if !t.halves {
		return t.rates[step], nil
	}
	number, err := t.halvingsOf(chain)
	return t.rates[step] * rateFactors()[number], err
}

// halvingsOf returns how often the learning rate of a chain of the session was halved, or
// stoppedRate.
func (t *job) halvingsOf(chain int) (int, error) {
	var number [1]float32
	err := t.session.ReadFloats(halvingsState, chain, number[:])
	return int(number[0]), err
}

// putBack gives a chain earlier weights, the initial values of its other states, such as
// velocities, and a number of halvings, or stoppedRate.
func putBack(s *graph.Session, chain int, weights [][]float32, number int) error {
	if err := s.Restart(chain); err != nil {
		return err
	}
	if err := writeWeights(s, chain, weights); err != nil {
		return err
	}
	return setRateFactor(s, chain, number)
}

// writeWeights sets the parameters of a chain, in the order of the program's.
func writeWeights(s *graph.Session, chain int, weights [][]float32) error {
	for i, p := range s.Program().Parameters() {
		if err := s.WriteFloats(p.Name, chain, weights[i]); err != nil {
			return err
		}
	}
	return nil
}

// divergedChain returns the chain of the session and the step that a graph.NotFinite or an
// explodedError names. ok is false for other errors.
func divergedChain(err error, firstChain int) (chain, step int, ok bool) {
	if exploded := (*explodedError)(nil); errors.As(err, &exploded) {
		return exploded.chain, exploded.window.To - 1, true
	}
	var bad *graph.NotFinite
	if !errors.As(err, &bad) {
		return 0, 0, false
	}
	return bad.Chain - firstChain, int(bad.Step), true
}
