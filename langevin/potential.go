package langevin

import (
	"cmp"
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Potential returns the scalar node U = N loss - sum over the builder's parameters of log p(theta),
// with the normalising constants of the priors. For an exact Metropolis test the loss must be
// computed on all data. Prior and likelihood are summed separately, each in float64. Errors go to
// b.Fail.
func (p Posterior) Potential(b *graph.Builder, loss *graph.Node) *graph.Node {
	parameters := b.Parameters()
	priors, err := p.priorsOf(parameters)
	b.Fail(cmp.Or(p.Validate(), err, checkLoss(loss), p.CheckDataSize(b, loss)))
	if b.Err() != nil {
		return nil
	}
	potential := b.Apply(op.Scale{Factor: float64(p.DataSize)}, loss)
	var energies *graph.Node
	for i, parameter := range parameters {
		if priors[i].Kind == FlatPrior {
			continue
		}
		energy := priors[i].Potential(b, parameter)
		if energies != nil {
			energy = b.Apply(op.Add{}, energies, energy)
		}
		energies = energy
	}
	if energies == nil {
		return potential
	}
	return b.Apply(op.Add{}, potential, energies)
}

// Potential returns the scalar node of the sum of -log p(theta) over a parameter's elements.
func (p Prior) Potential(b *graph.Builder, parameter *graph.Node) *graph.Node {
	if p.Kind == FanInPrior || p.Kind == StartPrior {
		b.Fail(errors.Errorf("langevin: potential: the prior of a parameter must be one of Posterior.Priors, got %s", p))
		return nil
	}
	return b.Apply(priorEnergy{p}, parameter)
}

// checkLoss reports a loss that is nil or not a scalar.
func checkLoss(loss *graph.Node) error {
	if loss == nil {
		return errors.New("langevin: the loss must not be nil")
	}
	if len(graph.ShapeOf(loss)) != 0 {
		return errors.Errorf("langevin: the loss must be a scalar, got shape %v", graph.ShapeOf(loss))
	}
	return nil
}

// energy returns the function log p(0) - log p(theta). Leaving the constant out keeps digits;
// joinEnergies adds it once.
func (p Prior) energy() func(theta float64) float64 {
	switch p.Kind {
	case GaussianPrior:
		return func(theta float64) float64 {
			z := theta / p.Scale
			return 0.5 * z * z
		}
	case LaplacePrior:
		return func(theta float64) float64 { return math.Abs(theta) / p.Scale }
	case StudentTPrior:
		return func(theta float64) float64 {
			return (p.DoF + 1) / 2 * math.Log1p(theta*theta/(p.DoF*p.Scale*p.Scale))
		}
	case ScaleMixturePrior:
		return p.scaleMixtureEnergy()
	default:
		return func(float64) float64 { return 0 }
	}
}

// priorEnergy is -log p(theta), summed over a parameter's elements in float64: w [...] -> scalar.
type priorEnergy struct{ prior Prior }

func (priorEnergy) Name() string { return "prior energy" }

func (priorEnergy) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 1 {
		return nil, errors.Errorf("must have one input, a parameter, got %d", len(in))
	}
	return tensor.Shape{}, nil
}

func (e priorEnergy) Lower(l *graph.Lowering) {
	n := l.Shapes[0].Elements()
	// The host has two phases, a GPU two calls: partial sums of tiles, in float64, and their sum in
	// a fixed order. The bits then do not depend on the number of threads.
	host := tensor.HostKernel{
		Workspace: 8 * op.UpdateTiles(n),
		Phases: []tensor.Phase{
			{Tiles: op.UpdateTiles(n), Run: graph.Pick(l, sumEnergies[float32], sumEnergies[float64])(e.prior, n)},
			{Tiles: 1, Run: graph.Pick(l, joinEnergies[float32], joinEnergies[float64])(e.prior, n)},
		},
	}
	partial := tensor.NewWorkspace(tensor.Float64, op.UpdateTiles(n))
	energies := []tensor.Argument{l.In(0), tensor.Int(n), tensor.Int(e.prior.Kind.number()), tensor.Float(l.DType, e.prior.Scale),
		tensor.Float(l.DType, e.prior.DoF), tensor.Float(l.DType, e.prior.Narrow), tensor.Float(l.DType, e.prior.Weight)}
	constant := tensor.Float(l.DType, -e.prior.LogDensity(0))
	calls := []tensor.Call{
		l.Call("prior_energy_fwd", tensor.Blocks{Count: op.UpdateTiles(n), Threads: min(n, op.SumThreads)},
			append([]tensor.Argument{tensor.Out(partial)}, energies...)...),
		l.Call("prior_energy_join", tensor.Block(min(op.UpdateTiles(n), op.SumThreads)),
			l.Out(), tensor.In(partial), tensor.Int(op.UpdateTiles(n)), tensor.Int(n), constant),
	}
	l.EmitCalls("prior_energy_fwd", calls, host, append(append([]tensor.Argument{l.Out()}, energies...), constant)...)
}

// sumEnergies is the first phase: the sum of log p(0) - log p(theta) over a tile.
func sumEnergies[T float32 | float64](p Prior, n int) func(a *tensor.Args, tile int) {
	energy := p.energy()
	return func(a *tensor.Args, tile int) {
		total := 0.0
		lo, hi := op.TileOfUpdate(n, tile)
		for _, theta := range tensor.Slice[T](a, 1)[lo:hi] {
			total += energy(float64(theta))
		}
		tensor.Workspace[float64](a)[tile] = total
	}
}

// joinEnergies is the second phase: it adds up the tiles, and the constant -log p(0) of every
// element.
func joinEnergies[T float32 | float64](p Prior, n int) func(a *tensor.Args, _ int) {
	constant := -float64(n) * p.LogDensity(0)
	return func(a *tensor.Args, _ int) {
		total := 0.0
		for _, sum := range tensor.Workspace[float64](a)[:op.UpdateTiles(n)] {
			total += sum
		}
		tensor.Slice[T](a, 0)[0] = T(total + constant)
	}
}

// Gradients implements graph.Differentiable.
func (e priorEnergy) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(priorEnergyGradient(e), in[0], dout)}
}

// priorEnergyGradient is the gradient of priorEnergy: w [...], dout scalar -> dw of w's shape.
type priorEnergyGradient struct{ prior Prior }

func (priorEnergyGradient) Name() string { return "prior energy gradient" }

func (priorEnergyGradient) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 2 || len(in[1]) != 0 {
		return nil, errors.Errorf("must have a parameter and a scalar, got shapes %v", in)
	}
	return in[0], nil
}

func (e priorEnergyGradient) Lower(l *graph.Lowering) {
	n := l.Shape.Elements()
	run := graph.Pick(l, fillEnergyGradients[float32], fillEnergyGradients[float64])(e.prior)
	l.Emit("prior_energy_bwd", tensor.Threads(n), tensor.Rows(n, 1, run), append([]tensor.Argument{l.Out(), l.In(0), l.In(1), tensor.Int(n)},
		e.prior.KernelArguments(l.DType, 1)...)...)
}

// fillEnergyGradients computes -(log p)'(theta), which is the prior's part of the gradient of U/N
// for N = 1 and a loss without a gradient, and multiplies it by dout.
func fillEnergyGradients[T float32 | float64](p Prior) func(a *tensor.Args, lo, hi int) {
	term := priorTermOf[T](p, 1)
	return func(a *tensor.Args, lo, hi int) {
		dw, w, dout := tensor.Slice[T](a, 0)[lo:hi], tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[0]
		clear(dw)
		term.fill(dw, w, dw)
		for i := range dw {
			dw[i] *= dout
		}
	}
}
