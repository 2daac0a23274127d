package mcmc

import (
	"cmp"
	"math"
	"strconv"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// NUTS is the no-U-turn sampler (Hoffman and Gelman 2014), with multinomial draws from trajectories
// and the generalised no-U-turn criterion (Betancourt, A conceptual introduction to Hamiltonian
// Monte Carlo, 2017, appendix A). It is HMC that chooses the number of leapfrog steps: a trajectory
// doubles, forwards or backwards in time, until its ends approach each other. It targets exp(-U/T).
//
// During warm-up the step size of each chain adapts by dual averaging, and the masses adapt, in
// windows of doubling lengths, to the inverse variances.
//
// It is for small models. A step of the session is a draw. Before it, the trees of all chains grow
// on the host side by side, and the graph computes U and its gradient at their leaves; chains wait
// for the one with the longest trajectory. The step then evaluates the draws once more for their
// metrics. Everything that a chain adapts is kept in the session's states. Steps that are made
// without the Chains, as by Plan.Run or Collect without them among its hooks, have no draws and
// fail.
type NUTS struct {
	StepSize         float64 // of a leapfrog step; with a warm-up, the start of the search for it, 0 for 1
	Warmup           int     // in draws
	TargetAcceptance float64 // the acceptance rate to which the step size adapts; 0 for 0.8, and without a warm-up
	MaxDepth         int     // the maximal number of doublings of a trajectory; 0 for 10
}

var _ Sampler = NUTS{}

// The traces that NUTS has in addition.
const (
	TraceLeapfrogSteps = "leapfrog steps" // of the trajectory
	TraceDiverged      = "diverged"       // 1 when the trajectory's energy rose by more than 1000 T: the step size is too large there
)

// Name implements Sampler.
func (NUTS) Name() string { return "nuts" }

// Validate implements Sampler.
func (n NUTS) Validate() error {
	switch {
	case !(n.StepSize >= 0 && n.StepSize < math.Inf(1)) || n.StepSize == 0 && n.Warmup == 0:
		return errors.Errorf("mcmc: nuts: StepSize must be positive, or 0 with a warm-up, got %v with %d draws of warm-up", n.StepSize, n.Warmup)
	case n.Warmup < 0:
		return errors.Errorf("mcmc: nuts: Warmup must be at least 0 draws, got %d", n.Warmup)
	case n.Warmup == 0 && n.TargetAcceptance != 0:
		return errors.Errorf("mcmc: nuts: TargetAcceptance must be 0 without a warm-up, in which the step size adapts to it, got %v", n.TargetAcceptance)
	case !(n.TargetAcceptance >= 0 && n.TargetAcceptance < 1):
		return errors.Errorf("mcmc: nuts: TargetAcceptance must be below 1, or 0 for 0.8, got %v", n.TargetAcceptance)
	case n.MaxDepth < 0 || n.MaxDepth > 30:
		return errors.Errorf("mcmc: nuts: MaxDepth must be 1 to 30, or 0 for 10, got %d", n.MaxDepth)
	}
	return nil
}

// The outputs that trajectories are made from.
const (
	potentialOutput = "nuts potential"
	gradientOutput  = "nuts slope "
)

// The states that hold what a chain keeps from draw to draw.
const (
	nutsWords         = "nuts" // nutsChain.words
	nutsInverseMasses = "nuts.inverse masses"
	nutsMeans         = "nuts.means"
	nutsSquares       = "nuts.squares"
)

// Attach implements Sampler.
func (n NUTS) Attach(b *graph.Builder, target Target) (Chains, error) {
	b.Fail(n.Validate())
	b.Fail(target.validate(b, false, TraceLeapfrogSteps, TraceDiverged, TraceEnergy))
	if b.Err() != nil {
		return nil, b.Err()
	}
	n.defaults()
	w := &nutsChains{nuts: n, target: target, streams: nutsStreams{b.Stream(), b.Stream(), b.Stream()}}
	parameters := b.Parameters()
	gradients := b.Gradients(target.Potential, parameters...)
	b.Header()
	b.Output(potentialOutput, copied(b, target.Potential))
	for i, parameter := range parameters {
		b.Output(gradientOutput+strconv.Itoa(i), copied(b, gradients[i]))
		b.Record(langevin.VirialPrefix+parameter.Name(), b.Apply(op.Multiply{}, parameter, gradients[i]))
		w.parameters = append(w.parameters, parameter.Name())
		w.sizes = append(w.sizes, graph.ShapeOf(parameter).Elements())
		w.dimensions += w.sizes[i]
	}
	target.output(b)
	w.attachStates(b)
	if b.Err() != nil {
		return nil, b.Err()
	}
	return w, nil
}

// attachStates adds the states with the values of a new chain.
func (w *nutsChains) attachStates(b *graph.Builder) {
	fresh := newNUTSChain(w)
	count := len(fresh.words())
	start := func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, words []float64) {
		for i, word := range fresh.words() {
			words[i] = *word
		}
	}
	words := b.State(nutsWords, start, count)
	b.Record(TracePotential, b.Apply(op.Add{}, w.target.Potential, preparation(b, b.Apply(array.Element{Index: count - 1}, words))))
	for i, name := range nutsTraced {
		b.Record(name, b.Apply(array.Element{Index: i}, words))
	}
	ones := func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, masses []float64) {
		copy(masses, fresh.inverseMasses)
	}
	b.Output(nutsInverseMasses, b.State(nutsInverseMasses, ones, w.dimensions))
	for _, name := range []string{nutsMeans, nutsSquares} {
		b.Output(name, b.State(name, nil, w.dimensions))
	}
}

// preparation returns 0 in a step for which the hook has made the draw, which the word tells, and
// otherwise NaN. Without it, a session whose Chains are not among the hooks would have the same
// draw in every step.
func preparation(b *graph.Builder, word *graph.Node) *graph.Node {
	defer b.Scope("nuts without its Chains as a hook")()
	expected := b.Apply(op.Periodic{}, b.Table("nuts.prepared", []float64{preparedWord(0), preparedWord(1)}), b.Header())
	return b.Apply(op.Restrict{Low: -0.5, High: 0.5}, b.Apply(op.Subtract{}, word, expected))
}

// preparedWord returns the word of a chain for which the draw of a step was made. It differs
// between consecutive steps, and from a new chain's 0.
func preparedWord(step uint64) float64 { return 1 + float64(step%2) }

func (n *NUTS) defaults() {
	n.StepSize = cmp.Or(n.StepSize, 1)
	n.TargetAcceptance = cmp.Or(n.TargetAcceptance, 0.8)
	n.MaxDepth = cmp.Or(n.MaxDepth, 10)
}
