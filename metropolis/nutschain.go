package metropolis

import (
	"iter"
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor/random"
)

// nutsStreams are the streams of a chain's random numbers. Their steps count draws.
type nutsStreams struct {
	momenta uint16 // of trajectories
	choices uint16 // directions, and which of two halves of a trajectory the draw comes from
	search  uint16 // momenta that step sizes are tried with
}

// nutsPoint is a point of a trajectory. It does not change once evaluated.
type nutsPoint struct {
	q, p       []float64
	u          float64
	slope      []float64 // of u
	quantities []float64
}

// nutsChain is one chain under NUTS: H = U/T + p' M^-1 p / 2, and exp(-H) is the density that
// trajectories leave invariant.
type nutsChain struct {
	nuts        NUTS
	temperature float64
	streams     nutsStreams
	seed        uint64
	number      uint32

	evaluate      func(point *nutsPoint) (goOn bool) // fills in the rest of a point that has q
	stopped       bool
	err           error
	made          int // draws, those of the warm-up included
	now           *nutsPoint
	step          float64
	inverseMasses []float64
	warmup        nutsWarmup

	// Of the last trajectory.
	energy      float64 // H at its start
	chosen      int     // choices made
	leaps       int
	probability float64 // the mean over its leaps of min(1, exp(-(H - energy)))
	diverged    bool
}

func newNUTSChain(n NUTS, temperature float64, streams nutsStreams, seed uint64, number uint32, dimensions int) *nutsChain {
	c := &nutsChain{
		nuts: n, temperature: temperature, streams: streams, seed: seed, number: number, step: n.StepSize,
		now: &nutsPoint{q: make([]float64, dimensions)}, inverseMasses: make([]float64, dimensions),
	}
	for i := range c.inverseMasses {
		c.inverseMasses[i] = 1
	}
	c.warmup = newNUTSWarmup(n.Warmup, dimensions)
	return c
}

// walk makes what is left of the warm-up, and then draws. It yields the points that it needs
// evaluated.
func (c *nutsChain) walk(draws, thinning int, record func()) iter.Seq[*nutsPoint] {
	return func(yield func(*nutsPoint) bool) {
		c.evaluate, c.stopped = yield, false
		if c.now.slope == nil {
			c.visit(c.now)
			if c.err == nil && !c.stopped && c.now.u-c.now.u != 0 {
				c.err = errors.Errorf("the potential is %v where the chain starts, wants a finite number", c.now.u)
			}
		}
		for last := max(c.made, c.nuts.Warmup) + draws*thinning; c.made < last && c.err == nil && !c.stopped; {
			c.adaptBefore()
			c.move()
			if c.stopped {
				return
			}
			c.adaptAfter()
			c.made++
			if n := last - c.made; n < draws*thinning && n%thinning == 0 {
				record()
			}
		}
	}
}

// visit evaluates a point. Once the walk is stopped, every potential is NaN, which ends
// trajectories at once.
func (c *nutsChain) visit(point *nutsPoint) {
	if c.stopped || !c.evaluate(point) {
		c.stopped = true
		point.u = math.NaN()
	}
}

func (c *nutsChain) address(stream uint16) random.Address {
	return random.Address{Seed: c.seed, Chain: c.number, Step: uint64(c.made), Stream: stream}
}

// choice is a uniform number in [0, 1).
func (c *nutsChain) choice() float64 {
	var u [1]float64
	random.Fractions(u[:], c.chosen, c.address(c.streams.choices))
	c.chosen++
	return u[0]
}

// launch is the present state with momenta p ~ N(0, M).
func (c *nutsChain) launch(stream uint16) *nutsPoint {
	point := *c.now
	point.p = make([]float64, len(point.q))
	random.Normals(point.p, 0, c.address(stream))
	for i, inverse := range c.inverseMasses {
		point.p[i] /= math.Sqrt(inverse)
	}
	return &point
}

// energyOf is H, infinite where it is not a number.
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

// leap is the point one leapfrog step further; time is negative backwards.
func (c *nutsChain) leap(from *nutsPoint, time float64) *nutsPoint {
	to := &nutsPoint{q: make([]float64, len(from.q)), p: make([]float64, len(from.q))}
	kick := time / 2 / c.temperature
	for i, p := range from.p {
		to.p[i] = p - float64(kick*from.slope[i])
		to.q[i] = from.q[i] + float64(time*c.inverseMasses[i]*to.p[i])
	}
	c.visit(to)
	for i, slope := range to.slope {
		to.p[i] -= float64(kick * slope)
	}
	return to
}

// nutsTree is a piece of a trajectory.
type nutsTree struct {
	first, last *nutsPoint // in time
	momentum    []float64  // the sum over its points of p
	weight      float64    // the logarithm of the sum over its points of exp(-(H - energy))
	draw        *nutsPoint // one of its points, drawn by weight
}

// move replaces the present state with a draw from a new trajectory.
func (c *nutsChain) move() {
	start := c.launch(c.streams.momenta)
	c.energy, c.chosen, c.leaps, c.probability, c.diverged = c.energyOf(start), 0, 0, 0, false
	tree := &nutsTree{first: start, last: start, momentum: start.p, draw: start}
	for depth := range c.nuts.MaxDepth {
		forwards := c.choice() < 0.5
		more := c.grow(tree, depth, forwards)
		if more == nil {
			break
		}
		// The new half is preferred to the old one, which leaves exp(-H) invariant as well and
		// moves farther.
		draw := tree.draw
		if c.choice() < math.Exp(more.weight-tree.weight) {
			draw = more.draw
		}
		turned := false
		tree, turned = c.join(tree, more, forwards)
		tree.draw = draw
		if turned {
			break
		}
	}
	if c.stopped {
		return
	}
	c.probability /= float64(c.leaps)
	c.now = tree.draw
}

// grow makes 2^depth further points at an end of a tree. It returns nil when these diverge or turn
// back on their own: then the trajectory ends as it was, as it would from any of its points.
func (c *nutsChain) grow(tree *nutsTree, depth int, forwards bool) *nutsTree {
	if depth == 0 {
		if forwards {
			return c.leaf(c.leap(tree.last, c.step))
		}
		return c.leaf(c.leap(tree.first, -c.step))
	}
	near := c.grow(tree, depth-1, forwards)
	if near == nil {
		return nil
	}
	far := c.grow(near, depth-1, forwards)
	if far == nil {
		return nil
	}
	both, turned := c.join(near, far, forwards)
	if both.draw = near.draw; c.choice() < math.Exp(far.weight-both.weight) {
		both.draw = far.draw
	}
	if turned {
		return nil
	}
	return both
}

// divergence is how far the energy of a point may be above the energy at the trajectory's start.
const divergence = 1000

// leaf is the tree of one point, nil when it diverges.
func (c *nutsChain) leaf(point *nutsPoint) *nutsTree {
	excess := c.energyOf(point) - c.energy
	c.leaps++
	c.probability += math.Min(1, math.Exp(-excess))
	if !(excess <= divergence) {
		c.diverged = true
		return nil
	}
	return &nutsTree{first: point, last: point, momentum: point.p, weight: -excess, draw: point}
}

// join is two neighbouring trees as one, without a draw, and reports whether the trajectory turns
// back: as a whole, or from one half to the first or last point of the other.
func (c *nutsChain) join(old, more *nutsTree, forwards bool) (both *nutsTree, turned bool) {
	a, b := old, more // in time
	if !forwards {
		a, b = more, old
	}
	top := math.Max(a.weight, b.weight)
	both = &nutsTree{
		first: a.first, last: b.last, momentum: plus(a.momentum, b.momentum),
		weight: top + math.Log(math.Exp(a.weight-top)+math.Exp(b.weight-top)),
	}
	return both, c.turns(a.first, b.last, both.momentum) ||
		c.turns(a.first, b.first, plus(a.momentum, b.first.p)) ||
		c.turns(a.last, b.last, plus(a.last.p, b.momentum))
}

// turns reports whether a trajectory's ends move towards each other: whether the velocity at one of
// them points against the sum of the momenta.
func (c *nutsChain) turns(first, last *nutsPoint, momentum []float64) bool {
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
