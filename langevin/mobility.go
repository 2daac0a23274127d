package langevin

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
)

// Mobility is, for each of a parameter's n elements, the step size at which SGLD would move as a
// chain of the session does at the step size h: h over the friction, h G. The noise of minibatches
// adds Mobility Var(gU)/2 to the temperature of an element. It is nil for KSGLD, whose G is no
// diagonal. For SGNHT it is that of the friction a, before chi grows by the noise.
func Mobility(sampler Sampler, s *graph.Session, chain int, parameter string, n int, h float64) ([]float64, error) {
	switch r := sampler.(type) {
	case SGLD:
	case SGHMC:
		h /= r.Friction
	case BAOAB:
		h /= 2 * math.Tanh(r.Friction/2)
	case OBABO:
		h /= 2 * math.Tanh(r.Friction/2)
	case SGNHT:
		h /= r.Friction
	case PSGLD:
		return adaptedMobility(s, chain, parameter, n, h, func(v float64) float64 { return 1 / (r.Lambda + math.Sqrt(v)) })
	case FisherSGLD:
		return adaptedMobility(s, chain, parameter, n, h, func(v float64) float64 { return 1 / (r.Damping + v) })
	default:
		return nil, nil
	}
	return slices.Repeat([]float64{h}, n), nil
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
