package langevin

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
)

// mobile is a Sampler that knows its Mobility.
type effectiveStepSizer interface {
	effectiveStepSize(s *graph.Session, chain int, parameter string, n int, h float64) ([]float64, error)
}

// EffectiveStepSize is, for each of a parameter's n elements, the step size at which SGLD would
// move as a chain of the session does at the step size h: h over the friction, h G. The noise of
// minibatches adds Mobility Var(gU)/2 to the temperature of an element. It is nil for samplers that
// do not know it, such as KSGLD, whose G is no diagonal. For SGNHT it is that of the friction a,
// before chi grows by the noise.
func EffectiveStepSize(sampler Sampler, s *graph.Session, chain int, parameter string, n int, h float64) ([]float64, error) {
	if m, ok := sampler.(effectiveStepSizer); ok {
		return m.effectiveStepSize(s, chain, parameter, n, h)
	}
	return nil, nil
}

// kickedMobility is that of velocities whose friction is solved exactly.
func kickedMobility(friction float64, n int, h float64) []float64 {
	return slices.Repeat([]float64{h / (2 * math.Tanh(friction/2))}, n)
}

// adaptedMobility is h G of the second moments V that a chain has.
func adaptedMobility(s *graph.Session, chain int, parameter string, n int, h float64, g func(v float64) float64) ([]float64, error) {
	second := make([]float32, n)
	if err := s.ReadFloats(parameter+".second moment", chain, second); err != nil {
		return nil, errors.Wrap(err, "langevin: mobility")
	}
	mobility := make([]float64, n)
	for i, v := range second {
		mobility[i] = h * g(float64(v))
	}
	return mobility, nil
}
