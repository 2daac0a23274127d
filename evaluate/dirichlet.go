package evaluate

import "math"

// The precision of a Dirichlet distribution is the sum of its concentrations. DirichletPrecision
// returns values from minPrecision to maxPrecision: beyond them the mutual information of the
// distribution is, within the rounding of float32, the entropy of its mean or 0.
const (
	minPrecision = 1e-2
	maxPrecision = 1e7
)

// DirichletInformation returns the mutual information, in nats, between the class and the
// probabilities pi ~ Dir(precision * mean), which is the entropy of the mean minus the expected
// entropy of pi (Malinin and Gales 2018):
//
//	I = H[mean] - E H[pi] = sum_k mean_k (r(alpha_k) - r(precision)),  alpha = precision * mean,
//
// where r(x) = digamma(x+1) - ln x. It decreases with the precision, from H[mean] to 0. This form
// avoids cancellation where alpha is large.
func DirichletInformation(mean []float64, precision float64) float64 {
	sum, whole := 0.0, digammaExcess(precision)
	for _, p := range mean {
		if alpha := p * precision; alpha > 0 {
			sum += p * (digammaExcess(alpha) - whole)
		}
	}
	return max(0, sum)
}

// DirichletPrecision returns the precision with which a Dirichlet distribution of the given mean
// has the given mutual information, the inverse of DirichletInformation, to a relative error of
// 1e-4. It is limited to 1e-2 and 1e7.
func DirichletPrecision(mean []float64, information float64) float64 {
	low, high := math.Log(minPrecision), math.Log(maxPrecision)
	if information >= DirichletInformation(mean, minPrecision) {
		return minPrecision
	}
	if information <= DirichletInformation(mean, maxPrecision) {
		return maxPrecision
	}
	for high-low > 1e-4 {
		middle := (low + high) / 2
		if DirichletInformation(mean, math.Exp(middle)) > information {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Exp((low + high) / 2)
}

// digammaShift is the distance by which digammaExcess moves small arguments, so that eight terms of
// the asymptotic series have an error below 1e-13.
const digammaShift = 6

// digammaExcess returns digamma(x+1) - ln x of x > 0.
func digammaExcess(x float64) float64 {
	if x >= digammaShift {
		s := 1 / (x * x)
		return 1/(2*x) - s*(1./12-s*(1./120-s*(1./252-s*(1./240-s*(1./132-s*(691./32760-s*(1./12)))))))
	}
	// digamma(x+1) = digamma(x+1+n) - sum_i 1/(x+i), whose terms are added as one fraction, since
	// divisions are slow.
	above, below := 0.0, 1.0
	for i := 1; i <= digammaShift; i++ {
		term := x + float64(i)
		above, below = above*term+below, below*term
	}
	return digammaExcess(x+digammaShift) + math.Log((x+digammaShift)/x) - above/below
}
