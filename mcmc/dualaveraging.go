package mcmc

import "math"

// The constants of dual averaging that Hoffman and Gelman (2014, section 3.2.1) recommend: how
// strongly the step size follows the observations, how many observations the start counts for, and
// how fast the first observations are forgotten.
const (
	averagingShrinkage = 0.05
	averagingDelay     = 10
	averagingDecay     = 0.75
)

// dualAveraging adapts the logarithm of a step size until proposals are accepted at a target rate
// (Hoffman and Gelman 2014, equation 6, with gamma = 0.05, t0 = 10 and kappa = 0.75). After
// proposal m, which had the acceptance probability a:
//
//	H    <- (1 - 1/(m + t0)) H + (target - a)/(m + t0)
//	x    <- anchor - sqrt(m)/gamma H,    anchor = log(10 first step size), see anchorOf
//	mean <- m^-kappa x + (1 - m^-kappa) mean
//
// x is the logarithm of the step size during warm-up; mean is the logarithm of the step size
// afterwards.
type dualAveraging struct {
	step    float64 // x
	average float64 // mean
	deficit float64 // H
}

// minAnchoredHigh is the length of the warm-ups that can correct step sizes as large as ten times
// the first one. After shorter ones, the mean would still be so large that no proposal is accepted.
const minAnchoredHigh = 10

// anchorOf returns the logarithm of the step size towards which step sizes are shrunk: ten times
// the first one, because a step size that is too large is cheap to detect. In a warm-up of fewer
// than minAnchoredHigh proposals it is the first one itself.
func anchorOf(stepSize float64, warmup int) float64 {
	if warmup < minAnchoredHigh {
		return math.Log(stepSize)
	}
	return math.Log(10 * stepSize)
}

func (d *dualAveraging) observe(m int, probability, target, anchor float64) {
	d.deficit += (target - probability - d.deficit) / float64(m+averagingDelay)
	d.step = anchor - float64(math.Sqrt(float64(m))/averagingShrinkage*d.deficit)
	weight := math.Pow(float64(m), -averagingDecay)
	d.average += float64(weight * (d.step - d.average))
}
