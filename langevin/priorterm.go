package langevin

import (
	"math"

	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// priorTerm computes the gradient of U/N from dw, the gradient of the mean loss, by adding the
// prior's part, -(log p)'/N, in the program's float:
//
//	flat, Gaussian  dw + strength theta                       strength = 1/(N s^2)
//	Laplace         dw + strength sign(theta)                 strength = 1/(N b)
//	Student-t       dw + strength theta / (spread + theta^2)  strength = (dof + 1)/N,
//	                                                          spread = dof s^2
//	scale mixture   dw + theta (strength + narrow q)/(1 + q)  strength = 1/(N wide^2),
//	                q = exp(odds - bend theta^2)              narrow = 1/(N narrow^2),
//	                odds = ln((1-weight)/weight wide/narrow)  bend = (1/narrow^2 - 1/wide^2)/2
//
// where q is the odds that theta was drawn from the narrow Gaussian.
type priorTerm[T float32 | float64] struct {
	family           PriorKind
	strength, spread T

	narrow, odds, bend float64 // of the exponential, which would lose too much precision in float32
}

func priorTermOf[T float32 | float64](p Prior, dataSize int) priorTerm[T] {
	s := p.term(dataSize)
	return priorTerm[T]{s.family, T(s.strength), T(s.spread), s.narrow, s.odds, s.bend}
}

// term returns the coefficients in float64.
func (p Prior) term(dataSize int) priorTerm[float64] {
	n := float64(dataSize)
	s := priorTerm[float64]{family: p.Kind}
	switch p.Kind {
	case GaussianPrior:
		s.strength = 1 / (n * p.Scale * p.Scale)
	case LaplacePrior:
		s.strength = 1 / (n * p.Scale)
	case StudentTPrior:
		s.strength, s.spread = (p.DoF+1)/n, p.DoF*p.Scale*p.Scale
	case ScaleMixturePrior:
		s.strength, s.narrow = 1/(n*p.Scale*p.Scale), 1/(n*p.Narrow*p.Narrow)
		s.odds = math.Log1p(-p.Weight) - math.Log(p.Weight) + math.Log(p.Scale/p.Narrow)
		s.bend = (1/(p.Narrow*p.Narrow) - 1/(p.Scale*p.Scale)) / 2
	}
	return s
}

// KernelArguments returns the prior and N as the arguments that PRIOR declares in a CUDA kernel
// (cuda/kernels/prior.cuh): the family, its coefficients, the scale mixture's in float64, and N.
// Update ops of samplers pass them last.
func (p Prior) KernelArguments(dtype tensor.DType, dataSize int) []tensor.Argument {
	s := p.term(dataSize)
	return []tensor.Argument{
		tensor.Int(s.family.number()), tensor.Float(dtype, s.strength), tensor.Float(dtype, s.spread), tensor.Float(tensor.Float64, s.narrow),
		tensor.Float(tensor.Float64, s.odds), tensor.Float(tensor.Float64, s.bend), tensor.Int(dataSize),
	}
}

// linear reports whether the gradient is dw + strength w, for which kernels fuse the gradient with
// the step.
func (s priorTerm[T]) linear() bool {
	return s.family != LaplacePrior && s.family != StudentTPrior && s.family != ScaleMixturePrior
}

// fill fills g with the gradients of U/N at the parameters w, and returns their virial. g and dw
// may be the same slice.
func (s priorTerm[T]) fill(g, w, dw []T) float64 {
	w, dw = w[:len(g)], dw[:len(g)]
	switch s.family {
	case LaplacePrior:
		return kernel.LaplaceGradient(g, w, dw, s.strength)
	case StudentTPrior:
		return kernel.StudentGradient(g, w, dw, s.strength, s.spread)
	case ScaleMixturePrior:
		s.fillScaleMixture(g, w, dw)
		return virial(w, g)
	default:
		return kernel.DecayedGradient(g, w, dw, s.strength)
	}
}

// virial returns the sum of w g.
func virial[T float32 | float64](w, g []T) float64 { return kernel.Dot(w, g) }
