package langevin

import (
	"math"

	"github.com/pkg/errors"
)

// Prior is the prior distribution of a parameter's elements, which are independent and centred on
// zero. Make one with Gaussian, Laplace, StudentT, ScaleMixture, FanIn, Start or Flat. The zero
// Prior has no family and is not valid; only a Posterior that leaves its Prior out has a flat one.
type Prior struct {
	Kind   PriorKind
	Scale  float64 // Gaussian and Student-t: s; Laplace: b; scale mixture: s of the wide Gaussian; fan-in: gain
	DoF    float64 // Student-t: degrees of freedom
	Narrow float64 // scale mixture: s of the narrow Gaussian
	Weight float64 // scale mixture: weight of the wide Gaussian
}

// PriorKind is a family of priors. The GPU kernels have the same numbers, in
// cuda/kernels/prior.cuh, except for the flat prior.
type PriorKind uint8

// The families of priors. 0 is none, so that a forgotten prior is not a flat one.
const (
	GaussianPrior PriorKind = 1 + iota
	LaplacePrior
	StudentTPrior
	ScaleMixturePrior
	FanInPrior
	FlatPrior
	StartPrior
)

// number returns the family's number in the GPU kernels, where the flat prior is 0.
func (k PriorKind) number() int {
	if k == FlatPrior {
		return 0
	}
	return int(k)
}

// Flat is the improper prior p(theta) = 1: the posterior is then proportional to the likelihood.
func Flat() Prior { return Prior{Kind: FlatPrior} }

// Gaussian is N(0, sigma^2): p(theta) is proportional to exp(-theta^2 / (2 sigma^2)).
func Gaussian(sigma float64) Prior { return Prior{Kind: GaussianPrior, Scale: sigma} }

// FanIn stands for N(0, gain/fan-in). The fan-in is the number of inputs of one output of the
// parameter's layer, also for its bias; it is 1 in layers without weights. With gain 2 or 1,
// networks initialized by layers.He{} or layers.LeCun{} have weights on the scale of their prior
// from the first step on. The density depends on the parameter: Posterior.Priors returns the
// Gaussian.
func FanIn(gain float64) Prior { return Prior{Kind: FanInPrior, Scale: gain} }

// Start stands for N(start, sigma^2), with the starting values of a weight as its mean. The
// parameter must be the offset from these values, as with onnx.Options.Offset, so that
// Posterior.Priors returns Gaussian(sigma) for it.
func Start(sigma float64) Prior { return Prior{Kind: StartPrior, Scale: sigma} }

// Laplace is the Laplace distribution: p(theta) is proportional to exp(-|theta| / scale).
func Laplace(scale float64) Prior { return Prior{Kind: LaplacePrior, Scale: scale} }

// StudentT is Student's t-distribution: p(theta) is proportional to (1 + theta^2 / (dof
// scale^2))^(-(dof+1)/2).
func StudentT(dof, scale float64) Prior {
	return Prior{Kind: StudentTPrior, Scale: scale, DoF: dof}
}

// Validate reports attributes that are not positive, and attributes that the family does not have.
func (p Prior) Validate() error {
	switch {
	case p.Kind == 0:
		return errors.Errorf("langevin: prior: no family: make a prior by Gaussian, Laplace, StudentT, ScaleMixture, FanIn, Start or Flat")
	case p.Kind > StartPrior:
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

// LogDensity returns the logarithm of the normalised density at theta: 0 for the flat prior, NaN
// for FanIn, whose density depends on the parameter. For Start, theta is the offset.
func (p Prior) LogDensity(theta float64) float64 {
	switch p.Kind {
	case GaussianPrior, StartPrior:
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

// positive reports whether v is above 0 and finite. It is false for NaN.
func positive(v float64) bool { return v > 0 && v < math.Inf(1) }
