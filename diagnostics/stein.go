package diagnostics

import (
	"math"

	"github.com/pkg/errors"
)

// InverseMultiquadric is the kernel k(x, y) = (Scale^2 + |x - y|^2)^Exponent, with an exponent
// between -1 and 0. For targets whose log density is concave far out, its discrepancies tend to 0
// only if the samples converge to the target, in any number of dimensions (Gorham and Mackey,
// Measuring sample quality with kernels, 2017, theorem 8). Their choice is a scale of 1 and an
// exponent of -1/2.
type InverseMultiquadric struct {
	Scale    float64 // in the units of the parameters
	Exponent float64
}

// Validate reports scales that are not positive and exponents that are not between -1 and 0.
func (k InverseMultiquadric) Validate() error {
	if !(k.Scale > 0 && k.Scale < math.Inf(1)) || !(k.Exponent > -1 && k.Exponent < 0) {
		return errors.Errorf("diagnostics: inverse multiquadric kernel: Scale must be positive and Exponent between -1 and 0, got %v and %v",
			k.Scale, k.Exponent)
	}
	return nil
}

// SteinDiscrepancy measures how far n samples are from a distribution that is known only by its
// score, the gradient of its log density: -gradient of U / T for the posterior at temperature T. It
// estimates the square of the kernelised Stein discrepancy, the mean over independent x, y of
//
//	k0(x, y) = s(x).s(y) k + s(x).dk/dy + s(y).dk/dx + sum over i of d2k/dx_i dy_i
//
// which is 0 for the distribution itself and positive for any other. samples [n d] are states and
// scores [n d] the scores there. vStatistic averages over all n^2 pairs: it is never negative, its
// root is the discrepancy of Gorham and Mackey, and it has a bias of order 1/n. uStatistic averages
// over the n (n-1) pairs of different samples: it has no bias for independent samples and may be
// negative (Liu, Lee and Jordan, 2016; Chwialkowski, Strathmann and Gretton, 2016). The time is of
// order n^2 d. The trap: modes far from all samples go unnoticed.
//
// Fewer than two samples, and samples and scores that are not finite or differ in size, are errors.
func SteinDiscrepancy(kernel InverseMultiquadric, samples, scores [][]float64) (vStatistic, uStatistic float64, err error) {
	if err := kernel.Validate(); err != nil {
		return 0, 0, err
	}
	if len(samples) < 2 || len(samples) != len(scores) || len(samples[0]) == 0 {
		return 0, 0, errors.Errorf("diagnostics: Stein discrepancy: there must be at least 2 samples of at least 1 element, and a score for each, got %d and %d",
			len(samples), len(scores))
	}
	for i := range samples {
		if err := checkState("sample", i, samples[i], len(samples[0])); err != nil {
			return 0, 0, err
		}
		if err := checkState("score", i, scores[i], len(samples[0])); err != nil {
			return 0, 0, err
		}
	}
	same, different := 0.0, 0.0
	for i := range samples {
		same += kernel.stein(samples[i], samples[i], scores[i], scores[i])
		row := 0.0
		for j := range i {
			row += kernel.stein(samples[i], samples[j], scores[i], scores[j])
		}
		different += 2 * row
	}
	n := float64(len(samples))
	return (same + different) / (n * n), different / (n * (n - 1)), nil
}

func checkState(what string, i int, values []float64, dimensions int) error {
	if len(values) != dimensions {
		return errors.Errorf("diagnostics: Stein discrepancy: %s %d must have %d elements, as sample 0, got %d", what, i, dimensions, len(values))
	}
	for _, v := range values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return errors.Errorf("diagnostics: Stein discrepancy: %s %d must be finite, got %v", what, i, v)
		}
	}
	return nil
}

// stein is k0(x, y). With r = x - y, q = Scale^2 + |r|^2 and b = Exponent:
//
//	dk/dx = 2 b q^(b-1) r = -dk/dy,
//	sum over i of d2k/dx_i dy_i = -2 b d q^(b-1) - 4 b (b-1) q^(b-2) |r|^2
func (k InverseMultiquadric) stein(x, y, sx, sy []float64) float64 {
	distance, product, along := 0.0, 0.0, 0.0
	for i := range x {
		r := x[i] - y[i]
		distance += r * r
		product += sx[i] * sy[i]
		along += (sy[i] - sx[i]) * r
	}
	q, b := k.Scale*k.Scale+distance, k.Exponent
	return math.Pow(q, b) * (product + 2*b/q*(along-float64(len(x))-2*(b-1)*distance/q))
}
