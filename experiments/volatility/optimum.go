package main

import (
	"math"
	"slices"
)

// hermite has the nodes and weights of Gauss-Hermite quadrature for expectations over a standard
// normal, exact for polynomials up to degree 17.
var hermite = [9]struct{ at, weight float64 }{
	{-4.512745863399783, 2.234584400774658e-05}, {-3.205429002856470, 0.002789141321231769}, {-2.076847978677830, 0.04991640676521786},
	{-1.023255663789133, 0.2440975028949394}, {0, 0.4063492063492063}, {1.023255663789133, 0.2440975028949394},
	{2.076847978677830, 0.04991640676521786}, {3.205429002856470, 0.002789141321231769}, {4.512745863399783, 2.234584400774658e-05},
}

// expectations has expectations under q: for each day the first and second derivative by s of the
// return's log density; and the sum over days plus the prior of freedom, with its derivatives by
// ln freedom.
type expectations struct {
	slopes, curvatures []float64
	freedom, slope     float64
	curvature          float64
}

func (q meanField) expectations(returns []float64) expectations {
	n := len(returns)
	e := expectations{slopes: make([]float64, n), curvatures: make([]float64, n)}
	var freedoms, totals [len(hermite)]float64
	spread := math.Sqrt(q.logFreedom.variance)
	for k, node := range hermite {
		v := math.Exp(q.logFreedom.mean + spread*node.at)
		upper, _ := math.Lgamma((v + 1) / 2)
		lower, _ := math.Lgamma(v / 2)
		freedoms[k] = v
		totals[k] = float64(n)*(upper-lower-math.Log(math.Pi*v)/2) + math.Log(0.1) - 0.1*v + math.Log(v)
	}
	for i, day := range q.walk() {
		std := math.Sqrt(day.variance)
		for _, node := range hermite {
			s := day.mean + std*node.at
			square := returns[i] * returns[i] * math.Exp(-2*s)
			for k, v := range freedoms {
				share := node.weight * hermite[k].weight
				totals[k] -= node.weight * ((v+1)/2*math.Log1p(square/v) + s)
				e.slopes[i] += share * ((v+1)*square/(v+square) - 1)
				e.curvatures[i] -= share * 2 * (v + 1) * v * square / ((v + square) * (v + square))
			}
		}
	}
	// Stein's identities for x = mean + spread z: E[f'] = E[z f]/spread,
	// E[f''] = E[(z^2 - 1) f]/spread^2.
	for k, node := range hermite {
		e.freedom += node.weight * totals[k]
		e.slope += node.weight * totals[k] * node.at / spread
		e.curvature += node.weight * totals[k] * (node.at*node.at - 1) / (spread * spread)
	}
	return e
}

// precisions returns E[1/deviation^2] for each step, and 1/100 for the first one.
func (q meanField) precisions() []float64 {
	precisions := make([]float64, len(q.steps))
	for i := range precisions {
		precisions[i] = math.Exp(2*q.logStd.variance - 2*q.logStd.mean)
	}
	precisions[0] = 1.0 / (firstStd * firstStd)
	return precisions
}

// bound returns the evidence lower bound, E[ln p(returns, parameters)] plus the entropy of q, with
// all constants.
func (q meanField) bound(returns []float64) float64 {
	std := math.Exp(q.logStd.mean + q.logStd.variance/2)
	total := q.expectations(returns).freedom + math.Log(10) - 10*std + q.logStd.mean*float64(2-len(q.steps)) - math.Log(firstStd)
	entropy := func(f normalFactor) float64 { return (1 + math.Log(2*math.Pi*f.variance)) / 2 }
	total += entropy(q.logStd) + entropy(q.logFreedom)
	for i, precision := range q.precisions() {
		step := q.steps[i]
		total += entropy(step) - (precision*(step.mean*step.mean+step.variance)+math.Log(2*math.Pi))/2
	}
	return total
}

// squares returns the expected sum of the squared steps except the first.
func (q meanField) squares() float64 {
	sum := 0.0
	for _, step := range q.steps[1:] {
		sum += step.mean*step.mean + step.variance
	}
	return sum
}

// improve makes one round of coordinate ascent on the bound in all parameters of q except the mean
// of ln deviation. It returns how far the walk moved.
func (q *meanField) improve(returns []float64) (moved float64) {
	e, precisions, n := q.expectations(returns), q.precisions(), len(returns)
	// Newton's step of the walk's means: the matrix is tridiagonal.
	slope, diagonal := make([]float64, n), make([]float64, n)
	for i, step := range q.steps {
		slope[i] += e.slopes[i] - precisions[i]*step.mean
		diagonal[i] += precisions[i] - e.curvatures[i]
		if i > 0 {
			slope[i-1] += precisions[i] * step.mean
			diagonal[i-1] += precisions[i]
		}
	}
	for i := 1; i < n; i++ {
		factor := precisions[i] / diagonal[i-1]
		diagonal[i] -= factor * precisions[i]
		slope[i] += factor * slope[i-1]
	}
	for i := n - 1; i >= 0; i-- {
		if i < n-1 {
			slope[i] += precisions[i+1] * slope[i+1]
		}
		slope[i] /= diagonal[i]
		moved = max(moved, math.Abs(slope[i]))
	}
	later := 0.0
	for i := n - 1; i >= 0; i-- {
		later -= e.curvatures[i]
		q.steps[i].variance = 1 / (precisions[i] + later)
		q.steps[i].mean += slope[i]
		if i > 0 {
			q.steps[i].mean -= slope[i-1]
		}
	}
	f := &q.logFreedom
	f.variance = -1 / e.curvature
	f.mean += f.variance * e.slope
	d := &q.logStd
	d.variance = 1 / (2*q.squares()*q.precisions()[1] + 10*math.Exp(d.mean+d.variance/2))
	return max(moved, math.Abs(f.variance*e.slope))
}

// settle maximises the bound at the given mean of ln deviation, and returns the derivative of the
// maximum by this mean.
func (q *meanField) settle(returns []float64, logStd float64) (slope float64) {
	const rounds, still = 200, 1e-6
	q.logStd.mean = logStd
	for range rounds {
		if q.improve(returns) < still {
			break
		}
	}
	std := math.Exp(logStd + q.logStd.variance/2)
	return float64(2-len(returns)) + q.squares()*q.precisions()[1] - 10*std
}

// optimum returns the best q and its bound. It runs coordinate ascent at each mean of ln deviation
// on a grid, and bisects where the slope of the bound changes its sign. The grid spans deviations
// from 0.003 to 0.3, so that several maxima would be noticed.
//
// For the 2905 returns of the S&P 500 the deviation is 0.0045, the freedom 2.98 and the bound 9328.
func optimum(returns []float64) (best meanField, bound float64) {
	const least, most, points, halvings = 0.003, 0.3, 12, 16
	at := func(i int) float64 { return math.Log(least) + math.Log(most/least)*float64(i)/(points-1) }
	bound = math.Inf(-1)
	q := start(returns)
	slopes := make([]float64, points)
	for i := range slopes {
		slopes[i] = q.settle(returns, at(i))
		if i == 0 || slopes[i-1] < 0 || slopes[i] > 0 {
			continue
		}
		low, high := at(i-1), at(i)
		peak := q
		peak.steps = slices.Clone(q.steps)
		for range halvings {
			if middle := (low + high) / 2; peak.settle(returns, middle) > 0 {
				low = middle
			} else {
				high = middle
			}
		}
		if b := peak.bound(returns); b > bound {
			best, bound = peak, b
		}
	}
	return best, bound
}
