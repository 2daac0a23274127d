package main

import "math"

// startSpread is the initial standard deviation of a step of the walk.
const startSpread = 0.0005

// meanField is an approximation of the posterior: independent normals of ln deviation, ln freedom
// and the walk's steps, starting with s_0.
type meanField struct {
	logStd, logFreedom normalFactor
	steps              []normalFactor
}

type normalFactor struct{ mean, variance float64 }

// result converts q into the result of a method.
func (q meanField) result(method string) result {
	r := result{
		method:  method,
		std:     logNormal(q.logStd.mean, math.Sqrt(q.logStd.variance)),
		freedom: logNormal(q.logFreedom.mean, math.Sqrt(q.logFreedom.variance)),
	}
	for _, day := range q.walk() {
		r.bands = append(r.bands, normal(day.mean, math.Sqrt(day.variance)))
	}
	return r
}

// walk returns the distribution of each day's s.
func (q meanField) walk() []normalFactor {
	days := make([]normalFactor, len(q.steps))
	var sum normalFactor
	for i, step := range q.steps {
		sum.mean, sum.variance = sum.mean+step.mean, sum.variance+step.variance
		days[i] = sum
	}
	return days
}

// start returns the initial meanField of the search for the best one: the walk that fits the
// returns best with startStd.
func start(returns []float64) meanField {
	walk, _ := smooth(returns, startStd)
	q := meanField{normalFactor{math.Log(startStd), 0.01}, normalFactor{math.Log(startFreedom), 0.01}, make([]normalFactor, len(walk))}
	for i := range walk {
		q.steps[i] = normalFactor{walk[i] - walk[max(i-1, 0)], startSpread * startSpread}
	}
	q.steps[0].mean = walk[0]
	return q
}
