package mcmc

import (
	"iter"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor/random"
)

// nutsStreams are the streams of a chain's random numbers. The steps of their addresses count
// draws.
type nutsStreams struct {
	momenta uint16 // of trajectories
	choices uint16 // directions, and from which half of a trajectory the draw comes
	search  uint16 // momenta for trying step sizes
}

// nutsPoint is a point of a trajectory. It does not change once it is evaluated.
type nutsPoint struct {
	q, p     []float64
	u        float64
	gradient []float64 // of u; nil before the point is evaluated
}

// nutsChain is one chain under NUTS. With H = U/T + p' M^-1 p / 2, trajectories leave the density
// exp(-H) invariant.
type nutsChain struct {
	nuts        NUTS
	temperature float64
	streams     nutsStreams
	seed        uint64
	number      uint32

	// Kept from draw to draw.
	draws         int // draws, including the warm-up's
	current       *nutsPoint
	step          float64 // of the next leapfrog step
	inverseMasses []float64
	warmup        nutsWarmup
	prepared      float64 // preparedWord of the last step that the hook made a draw for

	// Of the present trajectory.
	evaluate      func(point *nutsPoint) (goOn bool) // computes u and the gradient of a point
	stopped       bool
	err           error
	energy        float64 // H at its start
	choices       int     // choices made
	leapfrogSteps float64
	length        float64 // of a leapfrog step
	probability   float64 // the mean over its leapfrog steps of min(1, exp(-(H - energy)))
	diverged      float64 // 1 when it did
	drawEnergy    float64 // H at the draw from it
}

// newNUTSChain returns a chain that has no position and has not adapted.
func newNUTSChain(w *nutsChains) *nutsChain {
	return &nutsChain{
		nuts: w.nuts, temperature: w.target.Temperature, streams: w.streams, current: &nutsPoint{}, step: w.nuts.StepSize,
		inverseMasses: slices.Repeat([]float64{1}, w.dimensions), warmup: newNUTSWarmup(w.nuts.Warmup, w.dimensions),
	}
}

// nutsTraced are the traces that a chain's first words hold.
var nutsTraced = []string{TraceAcceptance, TraceStepSize, TraceLeapfrogSteps, TraceDiverged, TraceEnergy}

// words returns the numbers that are kept from draw to draw.
func (c *nutsChain) words() []*float64 {
	w := &c.warmup
	return []*float64{
		&c.probability, &c.length, &c.leapfrogSteps, &c.diverged, &c.drawEnergy,
		&c.step, &w.average.step, &w.average.average, &w.average.deficit, &w.anchor, &w.observed, &w.seen,
		&c.prepared, // last, see preparation
	}
}

// draw makes a trajectory from the present state and replaces the state with a draw from it. It
// yields the points that must be evaluated.
func (c *nutsChain) draw() iter.Seq[*nutsPoint] {
	return func(yield func(*nutsPoint) bool) {
		c.evaluate, c.stopped, c.err = yield, false, nil
		if c.current.gradient == nil {
			c.evaluatePoint(c.current)
			if !c.stopped && c.current.u-c.current.u != 0 {
				c.err = errors.Errorf("the potential must be finite where the chain starts, got %v", c.current.u)
			}
		}
		if c.err != nil || c.stopped {
			return
		}
		c.adaptBefore()
		c.transition()
		if !c.stopped {
			c.adaptAfter()
		}
	}
}

// evaluatePoint evaluates a point. Once the iteration is stopped every potential is NaN, which ends
// trajectories at once. A potential of -Inf stops it with an error: no draw could follow from an
// infinite density.
func (c *nutsChain) evaluatePoint(point *nutsPoint) {
	if c.stopped || !c.evaluate(point) {
		c.stopped = true
	} else if math.IsInf(point.u, -1) {
		c.stopped, c.err = true, errors.New("the potential must not be -Inf")
	}
	if c.stopped {
		point.u = math.NaN()
	}
}

func (c *nutsChain) address(stream uint16) random.Address {
	return random.Address{Seed: c.seed, Chain: c.number, Step: uint64(c.draws), Stream: stream}
}

// uniform returns a uniform number in [0, 1).
func (c *nutsChain) uniform() float64 {
	var u [1]float64
	random.Fractions(u[:], c.choices, c.address(c.streams.choices))
	c.choices++
	return u[0]
}

// withMomenta returns the present state with momenta p ~ N(0, M).
func (c *nutsChain) withMomenta(stream uint16) *nutsPoint {
	point := *c.current
	point.p = make([]float64, len(point.q))
	random.Normals(point.p, 0, c.address(stream))
	for i, inverse := range c.inverseMasses {
		point.p[i] /= math.Sqrt(inverse)
	}
	return &point
}

// energyOf returns H, infinite where it is NaN.
func (c *nutsChain) energyOf(point *nutsPoint) float64 {
	h := 0.0
	for i, p := range point.p {
		h += float64(p * p * c.inverseMasses[i])
	}
	if h = point.u/c.temperature + h/2; math.IsNaN(h) {
		return math.Inf(1)
	}
	return h
}

// leapfrog returns the point one leapfrog step further. A negative time goes backwards.
func (c *nutsChain) leapfrog(from *nutsPoint, time float64) *nutsPoint {
	to := &nutsPoint{q: make([]float64, len(from.q)), p: make([]float64, len(from.q))}
	kick := time / 2 / c.temperature
	for i, p := range from.p {
		to.p[i] = p - float64(kick*from.gradient[i])
		to.q[i] = from.q[i] + float64(time*c.inverseMasses[i]*to.p[i])
	}
	c.evaluatePoint(to)
	for i, slope := range to.gradient {
		to.p[i] -= float64(kick * slope)
	}
	return to
}

// nutsTree is a section of a trajectory.
type nutsTree struct {
	first, last *nutsPoint // in time
	momentum    []float64  // the sum over its points of p
	weight      float64    // the logarithm of the sum over its points of exp(-(H - energy))
	draw        *nutsPoint // one of its points, drawn by weight
}

// transition replaces the present state with a draw from a new trajectory.
func (c *nutsChain) transition() {
	start := c.withMomenta(c.streams.momenta)
	c.energy, c.choices, c.leapfrogSteps, c.length, c.probability, c.diverged = c.energyOf(start), 0, 0, c.step, 0, 0
	tree := &nutsTree{first: start, last: start, momentum: start.p, draw: start}
	for depth := range c.nuts.MaxDepth {
		forwards := c.uniform() < 0.5
		more := c.buildTree(tree, depth, forwards)
		if more == nil {
			break
		}
		// The new half is preferred to the old one (biased progressive sampling). This leaves
		// exp(-H) invariant as well, and moves farther.
		draw := tree.draw
		if c.uniform() < math.Exp(more.weight-tree.weight) {
			draw = more.draw
		}
		turned := false
		tree, turned = c.merge(tree, more, forwards)
		tree.draw = draw
		if turned {
			break
		}
	}
	if c.stopped {
		return
	}
	c.probability /= c.leapfrogSteps
	c.current, c.drawEnergy = tree.draw, c.energyOf(tree.draw)
}

// buildTree makes 2^depth further points at an end of a tree. It returns nil when these diverge or
// make a U-turn among themselves: the trajectory then ends without them, as it would from any of
// its points.
func (c *nutsChain) buildTree(tree *nutsTree, depth int, forwards bool) *nutsTree {
	if depth == 0 {
		if forwards {
			return c.leaf(c.leapfrog(tree.last, c.step))
		}
		return c.leaf(c.leapfrog(tree.first, -c.step))
	}
	near := c.buildTree(tree, depth-1, forwards)
	if near == nil {
		return nil
	}
	far := c.buildTree(near, depth-1, forwards)
	if far == nil {
		return nil
	}
	both, turned := c.merge(near, far, forwards)
	if both.draw = near.draw; c.uniform() < math.Exp(far.weight-both.weight) {
		both.draw = far.draw
	}
	if turned {
		return nil
	}
	return both
}

// divergence is the maximal rise of a point's energy above the energy at the trajectory's start, in
// units of T.
const divergence = 1000

// leaf returns the tree of one point, nil when the point diverges.
func (c *nutsChain) leaf(point *nutsPoint) *nutsTree {
	excess := c.energyOf(point) - c.energy
	c.leapfrogSteps++
	c.probability += math.Min(1, math.Exp(-excess))
	if !(excess <= divergence) {
		c.diverged = 1
		return nil
	}
	return &nutsTree{first: point, last: point, momentum: point.p, weight: -excess, draw: point}
}

// merge returns two neighbouring trees as one, without a draw, and reports whether the trajectory
// makes a U-turn: as a whole, or from one half to the first or last point of the other.
func (c *nutsChain) merge(old, more *nutsTree, forwards bool) (both *nutsTree, turned bool) {
	a, b := old, more // in time
	if !forwards {
		a, b = more, old
	}
	top := math.Max(a.weight, b.weight)
	both = &nutsTree{
		first: a.first, last: b.last, momentum: plus(a.momentum, b.momentum),
		weight: top + math.Log(math.Exp(a.weight-top)+math.Exp(b.weight-top)),
	}
	return both, c.isTurning(a.first, b.last, both.momentum) ||
		c.isTurning(a.first, b.first, plus(a.momentum, b.first.p)) ||
		c.isTurning(a.last, b.last, plus(a.last.p, b.momentum))
}

// isTurning reports whether a trajectory's ends move towards each other: whether the velocity at
// either end points against the sum of the momenta.
func (c *nutsChain) isTurning(first, last *nutsPoint, momentum []float64) bool {
	atFirst, atLast := 0.0, 0.0
	for i, sum := range momentum {
		along := c.inverseMasses[i] * sum
		atFirst += float64(first.p[i] * along)
		atLast += float64(last.p[i] * along)
	}
	return !(atFirst > 0 && atLast > 0)
}

func plus(a, b []float64) []float64 {
	sum := make([]float64, len(a))
	for i := range sum {
		sum[i] = a[i] + b[i]
	}
	return sum
}
