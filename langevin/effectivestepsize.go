package langevin

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
)

// EffectiveStepSizer is an optional interface of a Sampler. A run needs it to estimate by how much
// the noise of minibatches heats its chains; without it the run reports no such estimate. Samplers
// of other packages may implement it, too.
type EffectiveStepSizer interface {
	// EffectiveStepSize returns, for each of the n elements of a parameter, the step size at which
	// SGLD would move as far as a chain of the session now does at the step size h: h itself for
	// SGLD, h over the friction with momentum, h G with a diagonal preconditioner G, which the
	// sampler reads from its states.
	EffectiveStepSize(s *graph.Session, chain int, parameter string, n int, h float64) ([]float64, error)
}

// EffectiveStepSize returns the sampler's effective step sizes, see EffectiveStepSizer. Minibatches
// whose gradient of U has the variance Var(gU) add the effective step size times Var(gU)/2 to the
// temperature of an element. The result is nil for samplers that do not implement
// EffectiveStepSizer, such as KSGLD, whose G is not diagonal. SGNHT, CCAdL and SMILE return the
// value for their initial friction, before it adapts to the noise.
func EffectiveStepSize(sampler Sampler, s *graph.Session, chain int, parameter string, n int, h float64) ([]float64, error) {
	if m, ok := sampler.(EffectiveStepSizer); ok {
		return m.EffectiveStepSize(s, chain, parameter, n, h)
	}
	return nil, nil
}

// exactFrictionStepSize returns the effective step size of velocities whose friction is solved
// exactly, h/2 (1 + c)/(1 - c) with c = exp(-friction).
func exactFrictionStepSize(friction float64, n int, h float64) []float64 {
	return slices.Repeat([]float64{h / (2 * math.Tanh(friction/2))}, n)
}

// preconditionedStepSize returns h G, where g computes G from a chain's second moments V.
func preconditionedStepSize(s *graph.Session, chain int, parameter string, n int, h float64, g func(v float64) float64) ([]float64, error) {
	second := make([]float32, n)
	if err := s.ReadFloats(parameter+secondMomentSuffix, chain, second); err != nil {
		return nil, errors.Wrap(err, "langevin: effective step size")
	}
	stepSizes := make([]float64, n)
	for i, v := range second {
		stepSizes[i] = h * g(float64(v))
	}
	return stepSizes, nil
}

// secondMomentSuffix ends the names of the states that hold V.
const secondMomentSuffix = ".second moment"
