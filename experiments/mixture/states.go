package main

import "math"

// states are the draws of all chains: one draw of every chain, then the next. With replica exchange
// these are the chains at the lowest temperature.
type states struct {
	chains         int
	theta1, theta2 []float64
	weights        []float64 // of the draws in averages
}

// last returns the last draw of every chain.
func (s states) last() (theta1, theta2 []float64) {
	from := len(s.theta1) - s.chains
	return s.theta1[from:], s.theta2[from:]
}

// chain returns the draws of one chain.
func (s states) chain(number int) states {
	one := states{chains: 1, weights: s.weights}
	for i := number; i < len(s.theta1); i += s.chains {
		one.theta1, one.theta2 = append(one.theta1, s.theta1[i]), append(one.theta2, s.theta2[i])
	}
	return one
}

// crossed returns the fraction of chains that have draws in both modes.
func (s states) crossed() float64 {
	both := 0
	for chain := range s.chains {
		low, high := math.Inf(1), math.Inf(-1)
		for i := chain; i < len(s.theta2); i += s.chains {
			low, high = min(low, s.theta2[i]), max(high, s.theta2[i])
		}
		if low < -1 && high > 1 {
			both++
		}
	}
	return float64(both) / float64(s.chains)
}

// summary has E[theta1], E[theta2] and P(theta2 > 0).
type summary struct{ mean1, mean2, positive float64 }

// summaries returns each chain's averages, weighted by the step size.
func (s states) summaries() []summary {
	chains, total := make([]summary, s.chains), 0.0
	for draw, weight := range s.weights {
		total += weight
		for chain := range chains {
			i := draw*s.chains + chain
			chains[chain].mean1 += weight * s.theta1[i]
			chains[chain].mean2 += weight * s.theta2[i]
			if s.theta2[i] > 0 {
				chains[chain].positive += weight
			}
		}
	}
	for i := range chains {
		chains[i] = summary{chains[i].mean1 / total, chains[i].mean2 / total, chains[i].positive / total}
	}
	return chains
}

// summary returns the mean over chains; its standard errors, which come from the differences
// between chains, since these are independent; and typical, the root mean square error of one
// chain's average of theta2.
func (s states) summary(truth summary) (mean, errors summary, typical float64) {
	chains, n := s.summaries(), float64(s.chains)
	for _, c := range chains {
		mean.mean1 += c.mean1 / n
		mean.mean2 += c.mean2 / n
		mean.positive += c.positive / n
	}
	for _, c := range chains {
		errors.mean1 += (c.mean1 - mean.mean1) * (c.mean1 - mean.mean1)
		errors.mean2 += (c.mean2 - mean.mean2) * (c.mean2 - mean.mean2)
		errors.positive += (c.positive - mean.positive) * (c.positive - mean.positive)
		typical += (c.mean2 - truth.mean2) * (c.mean2 - truth.mean2)
	}
	of := func(squares float64) float64 { return math.Sqrt(squares / (n * (n - 1))) }
	return mean, summary{of(errors.mean1), of(errors.mean2), of(errors.positive)}, math.Sqrt(typical / n)
}
