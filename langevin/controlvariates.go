package langevin

import (
	"cmp"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// ControlVariates reduces the noise of minibatch gradients with an anchor, a point at which the
// gradient of all data is known:
//
//	gU~ = gU(anchor) + (N/n) sum over the minibatch of (gU_i(theta) - gU_i(anchor))
//	      + (prior's gradient at theta) - (prior's gradient at the anchor)
//
// The estimate is unbiased, and its noise is proportional to the distance from the anchor. With
// Refresh it is SVRG (Johnson and Zhang 2013), with SGLD as the sampler SVRG-LD (Dubey, Reddi,
// Poczos, Smola, Xing and Williamson 2016, algorithm 2). Without Refresh the anchor is the chain's
// initial state (Baker, Fearnhead, Fox and Nemeth 2019), which should be a mode. It pays near a
// mode and with small minibatches: each step evaluates two gradients.
type ControlVariates struct {
	// BatchSize is n. It must be below N and divide it, so that the minibatches of an epoch cover
	// all data once.
	BatchSize int
	// Refresh is the number of steps between two moves of the anchor to the parameters, beginning
	// at step 0. A move takes the time of an epoch. 0 moves the anchor only before the first step.
	Refresh int
}

// check reports attributes that are out of range or do not fit the data.
func (c ControlVariates) check(dataSize int) error {
	switch {
	case c.BatchSize < 1 || c.BatchSize >= dataSize || dataSize%c.BatchSize != 0:
		return errors.Errorf("langevin: control variates: BatchSize must be a divisor of the %d examples and smaller, got %d", dataSize, c.BatchSize)
	case c.Refresh < 0:
		return errors.Errorf("langevin: control variates: Refresh must be at least 1 step, or 0 for never, got %d", c.Refresh)
	}
	return nil
}

// The suffixes of the states that a parameter gets.
const (
	anchorSuffix         = ".anchor"
	anchorGradientSuffix = ".anchor slope" // gradient of the mean loss of all data at the anchor
	anchorSumSuffix      = ".anchor sum"   // sum of the minibatches' gradients at the anchor
)

// Attach is the function Attach with these gradients. The minibatches must come from an op.Batch of
// size BatchSize, and the loss must draw no random numbers. The returned Anchor must be passed to
// Plan.Run as a Hook; without it gradients are NaN.
func (c ControlVariates) Attach(b *graph.Builder, sampler Sampler, posterior Posterior, loss *graph.Node, stepSizes, temperatures []float64) (*Anchor, error) {
	parameters := b.Parameters()
	b.Fail(cmp.Or(checkAttach(b, sampler, posterior, loss, stepSizes, temperatures), c.check(posterior.DataSize)))
	b.Fail(errors.Wrap(posterior.checkEpochs(b, loss, c.BatchSize), "langevin: control variates"))
	if streams := int(b.Stream()) - 1; streams > len(parameters) { // each parameter has one, by which it is initialised
		b.Fail(errors.Errorf("langevin: control variates: the loss must not draw random numbers, which it does in %d places: it has no fixed gradient at the anchor",
			streams-len(parameters)))
	}
	if p, ok := sampler.(PSGLD); ok && p.Gamma.needsCurvature() {
		b.Fail(errors.Errorf("langevin: control variates: psgld: Gamma must be %q or %q, got %q, which has no correction at the anchor",
			GammaFrozen, GammaNone, p.Gamma))
	}
	if b.Err() != nil {
		return nil, b.Err()
	}
	// The loss is differentiated at the parameters and, with these replaced by the anchors, at the
	// anchors. Both use the same minibatch: that is what makes the difference small.
	both, places := slices.Clone(parameters), map[*graph.Node]*graph.Node{}
	for _, parameter := range parameters {
		anchor := b.State(parameter.Name()+anchorSuffix, nil, graph.ShapeOf(parameter)...)
		both, places[parameter] = append(both, anchor), anchor
	}
	sampler, gradients := differentiate(b, sampler, b.Apply(op.Add{}, loss, b.Substitute(loss, places)), both)
	estimates := make([]*graph.Node, len(parameters))
	for i, parameter := range parameters {
		shape, slope := graph.ShapeOf(parameter), gradients[len(parameters)+i]
		known := b.State(parameter.Name()+anchorGradientSuffix, constant(math.NaN()), shape...) // a step that no Anchor prepared fails
		difference := b.Apply(op.Subtract{}, gradients[i], slope)
		estimates[i] = b.Apply(op.Add{}, difference, known)
		b.Apply(accumulate{}, slope, b.State(parameter.Name()+anchorSumSuffix, nil, shape...))
	}
	err := attachUpdates(b, sampler, posterior, estimates, posterior.updateInputs(b, stepSizes, temperatures))
	return &Anchor{every: c.Refresh, epoch: posterior.DataSize / c.BatchSize}, err
}

// accumulate is sum <- sum + x: x, sum of x's shape -> the squares of x, summed by tile.
type accumulate struct{}

func (accumulate) Name() string   { return "accumulate" }
func (accumulate) Updates() []int { return []int{1} }

func (accumulate) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 2 || !in[0].Equal(in[1]) {
		return nil, errors.Errorf("must have two inputs of equal shape, got %v", in)
	}
	return tensor.Shape{op.UpdateTiles(in[0].Elements())}, nil
}

func (u accumulate) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	l.Emit("accumulate_update", op.UpdateGrid(n), op.UpdateHost(l, n, u, accumulateTile[float32], accumulateTile[float64]),
		l.Out(), l.In(0), l.InOut(1), tensor.Int(n))
}

func accumulateTile[T float32 | float64](_ accumulate, a *tensor.Args, lo, hi int) float64 {
	x, sum := tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi]
	for i, v := range x {
		sum[i] += v
	}
	return virial(x, x)
}
