package langevin

import (
	"math"

	"github.com/pkg/errors"
)

// Prior is the distribution of a parameter's elements before any data, independent and centred on
// zero.
type Prior struct {
	Kind   PriorKind
	Scale  float64 // Gaussian, Student-t: s; Laplace: b; scale mixture: the wide Gaussian's s; fan-in: gain
	DoF    float64 // Student-t: degrees of freedom
	Narrow float64 // scale mixture: the narrow Gaussian's standard deviation
	Weight float64 // scale mixture: the weight of the wide Gaussian
}

// PriorKind is a family of priors.
type PriorKind uint8

// The families. Flat is the improper prior 1.
const (
	FlatPrior PriorKind = iota
	GaussianPrior
	LaplacePrior
	StudentTPrior
	ScaleMixturePrior
	FanInPrior
)

// Flat is the improper prior p(theta) = 1: the posterior is then the likelihood.
func Flat() Prior { return Prior{} }

// Gaussian is p(theta) proportional to exp(-theta^2 / (2 deviation^2)).
func Gaussian(sigma float64) Prior { return Prior{Kind: GaussianPrior, Scale: sigma} }

// FanIn stands for N(0, gain/fan-in), the fan-in being the number of inputs of an output of the
// parameter's layer, 1 in layers without weights: networks that start as layers.He{} or LeCun{}
// have weights of the size of their prior, of the gain 2 or 1, from the beginning. It is a density
// once the parameter is known, see Posterior.Priors.
func FanIn(gain float64) Prior { return Prior{Kind: FanInPrior, Scale: gain} }

// Laplace is p(theta) proportional to exp(-|theta| / scale).
func Laplace(scale float64) Prior { return Prior{Kind: LaplacePrior, Scale: scale} }

// StudentT is p(theta) proportional to (1 + theta^2 / (freedom scale^2))^(-(freedom+1)/2).
func StudentT(dof, scale float64) Prior {
	return Prior{Kind: StudentTPrior, Scale: scale, DoF: dof}
}

// Validate refuses attributes that are not positive, and any that the family does not have.
func (p Prior) Validate() error {
	switch {
	case p.Kind > FanInPrior:
		return errors.Errorf("langevin: prior: unknown family %d", p.Kind)
	case p.Kind == FlatPrior && p.Scale != 0:
		return errors.Errorf("langevin: prior: a flat prior must have no scale, got %v", p.Scale)
	case p.Kind != FlatPrior && !positive(p.Scale):
		return errors.Errorf("langevin: prior: scale must be positive, got %v", p.Scale)
	case p.Kind != StudentTPrior && p.DoF != 0, p.Kind == StudentTPrior && !positive(p.DoF):
		return errors.Errorf("langevin: prior: DoF must be positive for Student-t and 0 otherwise, got %v", p.DoF)
	case p.Kind != ScaleMixturePrior && (p.Narrow != 0 || p.Weight != 0), p.Kind == ScaleMixturePrior && !p.isScaleMixture():
		return errors.Errorf("langevin: prior: a scale mixture must have 0 < weight < 1 and 0 < narrow < %v, other priors neither, got weight %v and narrow %v",
			p.Scale, p.Weight, p.Narrow)
	}
	return nil
}

// LogDensity is the logarithm of the normalised density at theta; the flat prior's is 0, and that
// of FanIn, which has none, is NaN.
func (p Prior) LogDensity(theta float64) float64 {
	switch p.Kind {
	case GaussianPrior:
		z := theta / p.Scale
		return -0.5*z*z - math.Log(p.Scale) - 0.5*math.Log(2*math.Pi)
	case LaplacePrior:
		return -math.Abs(theta)/p.Scale - math.Log(2*p.Scale)
	case StudentTPrior:
		half, _ := math.Lgamma((p.DoF + 1) / 2)
		whole, _ := math.Lgamma(p.DoF / 2)
		return half - whole - 0.5*math.Log(p.DoF*math.Pi) - math.Log(p.Scale) -
			(p.DoF+1)/2*math.Log1p(theta*theta/(p.DoF*p.Scale*p.Scale))
	case ScaleMixturePrior:
		return p.logScaleMixture(theta)
	case FanInPrior:
		return math.NaN()
	default:
		return 0
	}
}
