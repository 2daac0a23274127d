package mcmc

import (
	"math"
	"slices"
)

// The warm-up has three parts. In the first, chains find where the density is. Then come windows,
// each followed by setting the masses from the variances seen in it. The last part adapts the step
// size only. The lengths are from Stan's reference manual (section HMC algorithm parameters,
// automatic parameter tuning).
const (
	warmupFirst  = 75
	warmupWindow = 25 // of the first window; each further window is twice as long as the one before
	warmupLast   = 50
)

// nutsWarmup is the state of a chain's adaptation.
type nutsWarmup struct {
	ends     []int // of windows, in draws
	from     int   // where the first window begins
	average  dualAveraging
	anchor   float64
	observed float64   // draws observed by average
	seen     float64   // draws in the present window
	means    []float64 // of the draws in the present window
	squares  []float64 // sums of the squared deviations from the means
}

func newNUTSWarmup(draws, dimensions int) nutsWarmup {
	from, ends := warmupWindows(draws)
	return nutsWarmup{from: from, ends: ends, means: make([]float64, dimensions), squares: make([]float64, dimensions)}
}

// warmupWindows divides a warm-up into its parts. A short warm-up has them in proportion, and only
// the last part when there is no room for a window. A window after which no other fits extends to
// the last part.
func warmupWindows(draws int) (from int, ends []int) {
	from, length, last := warmupFirst, warmupWindow, draws-warmupLast
	if from+length > last {
		from, last = draws*15/100, draws-max(draws*10/100, 10)
		if length = last - from; length < 20 {
			return from, nil
		}
	}
	for end := from + length; ; end += length {
		length *= 2
		if end+length > last {
			return from, append(ends, last)
		}
		ends = append(ends, end)
	}
}

// adaptBefore searches for a step size whenever the metric is new: at the start, and after each
// window.
func (c *nutsChain) adaptBefore() {
	w := &c.warmup
	if c.draws >= c.nuts.Warmup || w.observed > 0 {
		return
	}
	c.findStepSize()
	w.average, w.anchor = dualAveraging{}, anchorOf(c.step, c.nuts.Warmup)
}

// findStepSize doubles or halves the step size until the probability of accepting one leapfrog step
// crosses one half (Hoffman and Gelman 2014, algorithm 4).
func (c *nutsChain) findStepSize() {
	start := c.withMomenta(c.streams.search)
	accepted := func() bool { return c.energyOf(c.leapfrog(start, c.step))-c.energyOf(start) < math.Ln2 }
	factor := 0.5
	if accepted() {
		factor = 2
	}
	for range 60 {
		c.step *= factor
		if accepted() != (factor == 2) || c.stopped {
			return
		}
	}
}

// adaptAfter adapts to the last trajectory and its draw.
func (c *nutsChain) adaptAfter() {
	w := &c.warmup
	draw := c.draws + 1
	if draw > c.nuts.Warmup {
		return
	}
	w.observed++
	w.average.observe(int(w.observed), c.probability, c.nuts.TargetAcceptance, w.anchor)
	c.step = math.Exp(w.average.step)
	if n := len(w.ends); n > 0 && draw > w.from && draw <= w.ends[n-1] {
		w.add(c.current.q)
		if slices.Contains(w.ends, draw) {
			c.updateMetric()
		}
	}
	if draw == c.nuts.Warmup && w.observed > 0 {
		c.step = math.Exp(w.average.average)
	}
}

// add updates the moments of the window by Welford's algorithm.
func (w *nutsWarmup) add(q []float64) {
	w.seen++
	for i, x := range q {
		d := x - w.means[i]
		w.means[i] += d / w.seen
		w.squares[i] += float64(d * (x - w.means[i]))
	}
}

// updateMetric sets the masses from the window's variances, shrunk towards 0.001 as by five more
// draws, and begins another window.
func (c *nutsChain) updateMetric() {
	w := &c.warmup
	for i, squares := range w.squares {
		variance := squares / (w.seen - 1)
		c.inverseMasses[i] = (w.seen*variance + 5*1e-3) / (w.seen + 5)
	}
	clear(w.means)
	clear(w.squares)
	w.seen, w.observed = 0, 0
}
