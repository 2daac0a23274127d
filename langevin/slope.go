package langevin

import (
	"math"

	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// slope computes the gradient of U/N, that of the mean loss plus the slope of the prior over N, in the program's float:
//
//	flat, Gaussian  dw + strength theta                       strength = 1/(N s^2)
//	Laplace         dw + strength sign(theta)                 strength = 1/(N b)
//	Student-t       dw + strength theta / (spread + theta^2)  strength = (freedom + 1)/N, spread = freedom s^2
type slope[T float32 | float64] struct {
	family           PriorKind
	strength, spread T
}

func slopeOf[T float32 | float64](p Prior, dataSize int) slope[T] {
	strength, spread := p.coefficients(dataSize)
	return slope[T]{p.Kind, T(strength), T(spread)}
}

// coefficients are strength and spread, see slope.
func (p Prior) coefficients(dataSize int) (strength, spread float64) {
	n := float64(dataSize)
	switch p.Kind {
	case GaussianPrior:
		return 1 / (n * p.Scale * p.Scale), 0
	case LaplacePrior:
		return 1 / (n * p.Scale), 0
	case StudentTPrior:
		return (p.Freedom + 1) / n, p.Freedom * p.Scale * p.Scale
	default:
		return 0, 0
	}
}

// arguments are how kernels get the prior and N: the family, strength and spread, and N.
func (p Prior) arguments(dtype tensor.DType, dataSize int) []tensor.Argument {
	strength, spread := p.coefficients(dataSize)
	return []tensor.Argument{
		tensor.Int(int(p.Kind)), tensor.Real(dtype, strength), tensor.Real(dtype, spread), tensor.Int(dataSize),
	}
}

// fill puts the gradients of parameters w into g, whose length is theirs.
func (s slope[T]) fill(g, w, dw []T) {
	w, dw = w[:len(g)], dw[:len(g)]
	switch s.family {
	case LaplacePrior:
		for i, theta := range w {
			g[i] = dw[i] + T(s.strength*sign(theta))
		}
	case StudentTPrior:
		for i, theta := range w {
			g[i] = dw[i] + T(s.strength*theta)/(s.spread+T(theta*theta))
		}
	default:
		for i, theta := range w {
			g[i] = op.Decayed(dw[i], theta, s.strength)
		}
	}
}

// sign is -1, 0 or 1. The signs of weights are random: a branch on them would be mispredicted.
func sign[T float32 | float64](x T) T {
	if x == 0 {
		return 0
	}
	return T(math.Copysign(1, float64(x)))
}

// virial is the sum of w g, in four interleaved sums: one alone would wait for each of its additions.
func virial[T float32 | float64](w, g []T) float64 {
	g = g[:len(w)]
	var a, b, c, d T
	for len(w) >= 4 && len(g) >= 4 {
		a += T(w[0] * g[0])
		b += T(w[1] * g[1])
		c += T(w[2] * g[2])
		d += T(w[3] * g[3])
		w, g = w[4:], g[4:]
	}
	for i := range w {
		a += T(w[i] * g[i])
	}
	return float64(a+b) + float64(c+d)
}
