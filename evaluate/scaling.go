package evaluate

import "math"

// The exponent that fitExponent returns maximizes the posterior for a prior that is a Gamma
// distribution with its mode at 1 and the rate scalingPrior, whose standard deviation is .56. A few
// dozen examples move the exponent away from 1 only as far as they are evidence for it; hundreds
// determine it. It is between 1/maxExponent and maxExponent: examples that are all classified
// correctly with little confidence would make it larger.
const (
	scalingPrior = 4
	maxExponent  = 16.0
)

// scalingLogarithms limits the number of probabilities from which an exponent is fitted, which
// bounds the time for many classes.
const scalingLogarithms = 1 << 20

// fitExponent returns the exponent with which the examples of p with the given numbers are most
// probable, under the prior above: temperature scaling with the inverse of the exponent as its
// temperature, of averaged probabilities instead of logits.
//
// Source: Guo, Pleiss, Sun, Weinberger 2017, on calibration of modern neural networks, section 4.2;
// Rahaman and Thiery 2021, uncertainty quantification and deep ensembles, who scale the average of
// an ensemble.
//
// Examples of one group together count as one example. The derivative of the objective
//
//	sum_n -log softmax(exponent log p_n)[label_n] + scalingPrior (exponent - log exponent)
//
// increases with the exponent, so that its zero is found by bisection.
func fitExponent(p *Predictions, examples []int) float64 {
	step := 1 + (len(examples)*p.Classes-1)/scalingLogarithms
	var logs []float64 // relative to the label's, [examples K]
	count := 0
	groups := map[string]bool{}
	for i := 0; i < len(examples); i += step {
		row := p.row(examples[i])
		own := logarithm(row[p.Labels[examples[i]]])
		for _, v := range row {
			logs = append(logs, logarithm(v)-own)
		}
		count++
		if p.Groups != nil {
			groups[p.Groups[examples[i]]] = true
		}
	}
	independent := float64(len(examples))
	if p.Groups != nil {
		independent = float64(len(groups))
	}
	slope := func(exponent float64) float64 {
		sum := 0.0
		for from := 0; from < len(logs); from += p.Classes {
			sum += expectedLogarithm(logs[from:from+p.Classes], exponent)
		}
		return sum/float64(count)*independent + scalingPrior*(1-1/exponent)
	}
	low, high := -math.Log(maxExponent), math.Log(maxExponent)
	for range 40 {
		if middle := (low + high) / 2; slope(math.Exp(middle)) > 0 {
			high = middle
		} else {
			low = middle
		}
	}
	return math.Exp((low + high) / 2)
}

// logarithm returns ln p, at least ln 2^-149.
func logarithm(p float64) float64 { return math.Log(max(p, math.SmallestNonzeroFloat32)) }

// expectedLogarithm returns the mean of logs weighted by exp(exponent logs).
func expectedLogarithm(logs []float64, exponent float64) float64 {
	most := logs[0]
	for _, v := range logs {
		most = max(most, v)
	}
	sum, total := 0.0, 0.0
	for _, v := range logs {
		weight := math.Exp(exponent * (v - most))
		sum += weight * v
		total += weight
	}
	return sum / total
}
