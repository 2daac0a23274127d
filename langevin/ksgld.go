package langevin

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// KSGLD is SGLD preconditioned by K-FAC, a Kronecker-factored approximation of the Fisher
// information (Palacci and Hess 2018; Martens and Grosse 2015). For the weights W [O I] of a linear
// layer, with inputs a and the gradients s of an example's loss by the layer's outputs,
//
//	A <- Alpha A + (1 - Alpha) mean of a a',    S <- Alpha S + (1 - Alpha) mean of s s'
//	G gU = S^-1 gU A^-1,    A and S damped, see Damping
//	W <- W - h G gU + sqrt(2 h T) P' Xi Q,    P'P = S^-1,    Q'Q = A^-1,    Xi ~ N(0, 1)
//
// with means over the minibatch's examples: the noise has the covariance 2 h T (A^-1 x S^-1). A
// convolution's weights [K C R S] are a matrix [K C*R*S]; A is then the sum over an image's
// patches, and S the mean over its places (Grosse and Martens 2016, theorem 1). A bias is treated
// as a separate layer with the single input 1: G = S^-1. The factors approximate the empirical
// Fisher information, computed from the data's labels, of the likelihood only. The loss must be a
// mean over the examples on the first axis.
//
// The inverses are computed at every Refresh-th step before FreezeAt and at the last one; at the
// first step nothing moves. From step FreezeAt on, which must lie within burn-in, it targets
// exp(-U/T), up to SGLD's bias at the step size h G. Before, the adaptation biases it. At T = 0 it
// is natural gradient descent with the rate h N.
//
// It leaves out correlations between layers, and between weights and their biases. A layer's
// factors take 2 (I^2 + O^2) numbers of memory. A factorisation takes time of the third powers of I
// and O on one thread, and until FreezeAt each step costs about I/O + O/I times the layer's forward
// pass more.
type KSGLD struct {
	Alpha float64 // memory of the factors, in [0, 1); usually 0.99
	// Damping is lambda, usually 0.1: A + pi sqrt(lambda) and S + sqrt(lambda)/pi, where pi^2 is
	// (trace A/I)/(trace S/O); a bias has S + lambda.
	Damping  float64
	Refresh  int // steps from one factorisation to the next; usually 20
	FreezeAt int // the step at which G stops adapting

	// Rest moves the parameters that are not the weights or bias of one linear layer or
	// convolution, such as a normalisation's. If it is nil, such parameters are an error.
	Rest Sampler
}

// Name implements Sampler.
func (KSGLD) Name() string { return "ksgld" }

// Validate implements Sampler.
func (k KSGLD) Validate() error {
	if err := checkFreezing(k.Name(), k.Alpha, k.Damping, k.FreezeAt); err != nil {
		return err
	}
	if k.Refresh < 1 || k.Refresh > math.MaxInt32 {
		return errors.Errorf("langevin: ksgld: Refresh must be 1 to %d, got %d", math.MaxInt32, k.Refresh)
	}
	if k.Rest == nil {
		return nil
	}
	if _, ok := k.Rest.(KSGLD); ok {
		return errors.New("langevin: ksgld: Rest must be another sampler, got ksgld")
	}
	if _, ok := k.Rest.(jointSampler); ok {
		return errors.Errorf("langevin: ksgld: Rest must be able to move some of the parameters, got %s, which moves all together", k.Rest.Name())
	}
	if p, ok := k.Rest.(PSGLD); ok && p.Gamma.needsCurvature() {
		return errors.Errorf("langevin: ksgld: Rest must need only gradients, got psgld with Gamma %q", p.Gamma)
	}
	return errors.Wrap(k.Rest.Validate(), "langevin: ksgld: Rest")
}

// FreezeStep implements Freezer.
func (k KSGLD) FreezeStep() int { return k.FreezeAt }

// Freeze implements Freezer.
func (k KSGLD) Freeze(step int) Sampler {
	k.FreezeAt = step
	return k
}

// Update implements Sampler. It fails, because it does not know the parameter's layer: Attach calls
// the Update of boundKSGLD instead.
func (k KSGLD) Update(b *graph.Builder, in UpdateInputs, _, _ *graph.Node) *graph.Node {
	b.Fail(errors.Errorf("langevin: ksgld: the layer of %s is unknown: the sampler must be attached by Attach, which finds the layers", in.Name))
	return nil
}

// layerUse is the layer that uses a parameter.
type layerUse struct {
	parameter, output *graph.Node
	inputs            *graph.Node // [B I], or [B C*R*S P Q]; nil for a bias
}

// differentiate implements lossDifferentiator. It finds the layers, and also differentiates by
// their outputs.
func (k KSGLD) differentiate(b *graph.Builder, loss *graph.Node, parameters []*graph.Node) (Sampler, []*graph.Node) {
	with := slices.Clone(parameters)
	uses := layerUses(b, parameters)
	var found []layerUse
	for _, parameter := range parameters {
		use, ok := uses[parameter]
		if !ok {
			if k.Rest == nil {
				b.Fail(errors.Errorf("langevin: ksgld: Rest must be set for %v, which is not the weights or bias of one linear layer or convolution",
					parameter.Name()))
			}
			continue
		}
		found, with = append(found, use), append(with, use.output)
	}
	gradients := b.Gradients(loss, with...)
	known := boundKSGLD{KSGLD: k, layers: map[*graph.Node]layerStatistics{}}
	for i, use := range found {
		known.layers[use.parameter] = layerStatistics{inputs: use.inputs, outputGradients: gradients[len(parameters)+i]}
	}
	return known, gradients[:len(parameters)]
}

// layerUses returns the layers of the parameters that are used once, as weights or bias.
func layerUses(b *graph.Builder, parameters []*graph.Node) map[*graph.Node]layerUse {
	uses, count := map[*graph.Node]layerUse{}, map[*graph.Node]int{}
	for _, a := range b.Applications() {
		for _, in := range a.Inputs {
			count[in]++
		}
		if len(a.Inputs) != 2 {
			continue
		}
		use := layerUse{parameter: a.Inputs[1], output: a.Output}
		switch o := a.Op.(type) {
		case op.MatMul:
			if o != (op.MatMul{TransposeB: true}) {
				continue
			}
			use.inputs = a.Inputs[0]
		case op.Conv2D:
			use.inputs = patchesOf(b, o, a.Inputs[0], graph.ShapeOf(use.parameter))
		case op.BiasAdd:
		default:
			continue
		}
		uses[use.parameter] = use
	}
	once := map[*graph.Node]layerUse{}
	for _, parameter := range parameters {
		if use, ok := uses[parameter]; ok && count[parameter] == 1 {
			once[parameter] = use
		}
	}
	return once
}

// patchesOf returns the matrix by which a convolution multiplies its weights [K C R S].
func patchesOf(b *graph.Builder, o op.Conv2D, x *graph.Node, weights []int) *graph.Node {
	return b.Apply(op.Patches{Conv: o, Height: weights[2], Width: weights[3]}, x)
}

// layerStatistics are the nodes from which a layer's factors are computed: its inputs, nil for a
// bias, and the gradients of the mean loss by its outputs.
type layerStatistics struct{ inputs, outputGradients *graph.Node }

// boundKSGLD is KSGLD with the layers of its parameters. Rest moves all other parameters.
type boundKSGLD struct {
	KSGLD
	layers map[*graph.Node]layerStatistics
}

// Update implements Sampler.
func (k boundKSGLD) Update(b *graph.Builder, in UpdateInputs, parameter, gradient *graph.Node) *graph.Node {
	if b.Err() != nil {
		return nil
	}
	layer, ok := k.layers[parameter]
	if !ok {
		return k.Rest.Update(b, in, parameter, gradient)
	}
	shape, slopes := graph.ShapeOf(parameter), graph.ShapeOf(layer.outputGradients)
	examples, outputs := float64(slopes[0]), shape[0]
	places := float64(slopes.Elements()) / (examples * float64(outputs))
	// The gradients of an example's own loss are B times the mean loss's, so that the mean of their
	// products is B times the sum.
	factors := factorsUpdate{Alpha: k.Alpha, Damping: k.Damping, Refresh: k.Refresh, FreezeAt: k.FreezeAt}
	var inputs []*graph.Node
	side := func(name string, n int, data *graph.Node) (whitener *graph.Node) {
		factor := b.State(in.Name+"."+name+" factor", nil, n, n)
		whitener = b.State(in.Name+"."+name+" whitener", nil, n, n)
		inputs = append(inputs, factor, whitener, data)
		return whitener
	}
	var q *graph.Node
	if layer.inputs != nil {
		factors.Scales = [2]float64{1 / examples, examples / places}
		q = side("input", shape.Elements()/outputs, layer.inputs)
	} else {
		factors.Scales[0] = examples
	}
	p := side("output", outputs, layer.outputGradients)
	b.Apply(factors, append(inputs, b.Header())...)

	// The move is P' (-h N P g Q' + sqrt(2 h T) Xi) Q. In the whitened coordinates G is the
	// identity, so that the noise is independent; transforming back gives the drift -h S^-1 gU A^-1
	// and the noise P' Xi Q.
	g := b.Apply(posteriorGradient{in.Prior, in.DataSize}, parameter, gradient)
	move := b.Apply(op.MatMul{}, p, b.Apply(op.ViewAs(outputs, shape.Elements()/outputs), g))
	if q != nil {
		move = b.Apply(op.MatMul{TransposeB: true}, move, q)
	}
	move = b.Apply(whitenedMove{in.DataSize, b.Stream()}, move, in.Rates, in.Temperatures, b.Header())
	move = b.Apply(op.MatMul{TransposeA: true}, p, move)
	if q != nil {
		move = b.Apply(op.MatMul{}, move, q)
	}
	return b.Apply(moveUpdate{}, parameter, g, b.Apply(op.ViewAs(shape...), move))
}
