package langevin

import (
	"cmp"
	"math"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/floats"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

// MatchedFriction is BAOAB with friction that balances all of the minibatches' noise, in every
// direction of the space of all parameters together. The gradient g of a minibatch, of U, is itself
// the direction of that friction:
//
//	M  v     <- v - (1 - keep) g g.v/g.g,    keep = sqrt(1 - h g.g/T)
//	B  v     <- v - h g
//	A  theta <- theta + v/2
//	O  v     <- c v + sqrt((1 - c^2) h T) xi,    c = exp(-Friction),    v ~ N(0, h T) at the start
//	A  theta <- theta + v/2
//
// M and B are one kick along g, by h + (1 - keep) g.v/g.g. On average over minibatches M removes
// E[(1 - keep^2) g g'/g.g] h T = h^2 E[g g'] from the covariance h T of the velocities, exactly
// what the noise of B adds. This is the covariance-controlled friction of Shang, Zhu, Leimkuhler
// and Storkey (2015) with the full covariance, which is never computed: each minibatch contributes
// its outer product. The noise of a minibatch must be independent of the velocities, which depend
// on the minibatches of earlier steps. Minibatches must therefore be drawn independently at each
// step (op.Independent), as runs do. Attach refuses epochs.
//
// It targets exp(-U/T), for any covariance of the noise, also one that depends on theta. On a
// quadratic U with strong noise the configurational temperature is T up to the fraction Friction/2.
// The noise share h g.g/T, which is recorded as a metric, must stay below 1: above 1, keep is 0 and
// the noise heats. The noise share is the sum over all weights of h Var(g)/T, so that h must be far
// smaller than for other samplers, and Friction, which is per step, correspondingly small.
//
// E[g g'] contains the gradient of all data next to the noise. With BatchSize, 1 - keep^2 is
// multiplied by 1 - n/N, which is the fraction of noise in equilibrium if the model's predictions
// are calibrated. Without this factor a direction of curvature k is colder by the fraction h k/(2
// Friction + h Var(g)/T), which is 1/10 where ten minibatches are all data. Velocities at the end
// of a step point uphill, too, so that g.v is on average half of h T times the trace of U's
// Hessian. The force is therefore too large, and the temperature too low, by a fraction of the
// order of the noise share over the number of minibatches in all data: a negligible one on MNIST in
// 600 minibatches, 0.1 on 1000 digits in ten at a noise share of 1. Smaller steps reduce it.
//
// The effective step size is h/Friction where minibatches have little noise, and 2 T/Var(g) where
// they have much. The kinetic temperature is T up to the noise of a single step. M has no effect in
// the first step, before the velocities are drawn. At T = 0 the rule is BAOAB.
type MatchedFriction struct {
	Friction  float64 // of one step, above 0; usually 3e-4
	Masses    Masses
	BatchSize int // n, the examples of a minibatch; 0 if n is small compared with N
}

// Masses selects the masses of MatchedFriction's parameters. The step size of a parameter is
// h/mass.
type Masses string

// The masses.
const (
	// MassesEqual gives all parameters the mass 1.
	MassesEqual Masses = "equal"
	// MassesPrior makes the masses proportional to the precisions of the priors, which must be
	// Gaussian. They are scaled so that the mean of 1/mass over all weights is 1. Weights
	// constrained only by the prior then all decorrelate at the same rate.
	MassesPrior Masses = "prior"
)

// Name implements Sampler.
func (MatchedFriction) Name() string { return "matched friction" }

// Validate implements Sampler.
func (s MatchedFriction) Validate() error {
	if s.BatchSize < 0 || s.BatchSize > math.MaxInt32 {
		return errors.Errorf("langevin: %s: BatchSize must be 1 to %d, or 0, got %d", s.Name(), math.MaxInt32, s.BatchSize)
	}
	if s.Masses != MassesEqual && s.Masses != MassesPrior {
		return errors.Errorf("langevin: %s: Masses must be %q or %q, got %q", s.Name(), MassesEqual, MassesPrior, s.Masses)
	}
	return checkFriction(s.Name(), s.Friction)
}

// inverseMasses returns 1/mass of each parameter.
func (s MatchedFriction) inverseMasses(inputs []UpdateInputs, parameters []*graph.Node) ([]float64, error) {
	inverse, mean, weights := make([]float64, len(inputs)), 0.0, 0.0
	for i, in := range inputs {
		inverse[i] = 1
		if s.Masses == MassesPrior {
			if in.Prior.Kind != GaussianPrior {
				return nil, errors.Errorf("langevin: %s: Masses must be %q, since the prior of %s is not Gaussian, got %q", s.Name(), MassesEqual, in.Name, s.Masses)
			}
			inverse[i] = in.Prior.Scale * in.Prior.Scale
		}
		n := float64(graph.ShapeOf(parameters[i]).Elements())
		mean, weights = mean+n*inverse[i], weights+n
	}
	for i := range inverse {
		inverse[i] *= weights / mean
	}
	return inverse, nil
}

// Update implements Sampler. It fails, because the friction couples all parameters: Attach
// calls updates instead.
func (s MatchedFriction) Update(b *graph.Builder, in UpdateInputs, _, _ *graph.Node) *graph.Node {
	b.Fail(errors.Errorf("langevin: %s: %s cannot be moved without the others: the sampler must be attached by Attach, to all parameters", s.Name(), in.Name))
	return nil
}

// NoiseShare is the name of the metric in which MatchedFriction records h g.g/T.
const NoiseShare = "noise share"

// InBatches implements IndependentBatches. It sets BatchSize if that is 0.
func (s MatchedFriction) InBatches(n int) Sampler {
	s.BatchSize = cmp.Or(s.BatchSize, n)
	return s
}

// updates attaches the updates of all parameters, which share one factor of the force: it depends
// on the products g.v and g.g of all of them.
func (s MatchedFriction) updates(b *graph.Builder, inputs []UpdateInputs, parameters, gradients []*graph.Node) []*graph.Node {
	inverse, err := s.inverseMasses(inputs, parameters)
	if err != nil {
		b.Fail(err)
		return make([]*graph.Node, len(parameters))
	}
	var along, squares *graph.Node
	sum := func(total, x *graph.Node, scale float64) *graph.Node {
		part := b.Apply(op.Scale{Factor: scale}, b.Apply(op.ViewAs(1), b.Apply(op.Sum{}, x)))
		if total == nil {
			return part
		}
		return b.Apply(op.Add{}, total, part)
	}
	var velocities []*graph.Node
	for i, in := range inputs {
		v := b.State(in.Name+velocitySuffix, nil, graph.ShapeOf(parameters[i])...)
		g := b.Apply(posteriorGradient{in.Prior, in.DataSize}, parameters[i], gradients[i])
		along, squares = sum(along, b.Apply(op.Multiply{}, g, v), 1), sum(squares, b.Apply(op.Squared{}, g), inverse[i])
		velocities = append(velocities, v)
	}
	factors := b.Apply(frictionFactor{inputs[0].DataSize, s.noisePart(inputs[0].rows)}, along, squares, inputs[0].Rates, inputs[0].Temperatures, b.Header())
	b.Record(NoiseShare, b.Apply(array.Element{Index: 1}, factors))
	outputs := make([]*graph.Node, len(parameters))
	for i, in := range inputs {
		end := b.Scope(LayerOf(in.Name))
		switch {
		case inverse[i] == 1:
		case in.stepSizes == nil: // a single entry
			in.Rates = b.Apply(op.Scale{Factor: inverse[i]}, in.Rates)
		default:
			in.Rates = b.Table("rates of "+in.Name, scaled(in.stepSizes, inverse[i]*float64(in.DataSize)))
		}
		outputs[i] = attachVelocities(b, matchedBAOAB{BAOAB{s.Friction}}, in, parameters[i], gradients[i], velocities[i], 1, factors)
		end()
	}
	return outputs
}

// scaled returns the values times a factor.
func scaled(values []float64, factor float64) []float64 {
	products := make([]float64, len(values))
	floats.ScaleTo(products, factor, values)
	return products
}

// noisePart returns the fraction of E[g g'] that is noise.
func (s MatchedFriction) noisePart(rows int) float64 {
	return max(0, 1-float64(s.BatchSize)/float64(rows))
}

// frictionFactor computes the factor by which M and B together multiply the force, and the noise
// share. Inputs: g.v and g.g [1] for the gradient g of U/N, rates and temperatures by step, header.
// Output: [2].
type frictionFactor struct {
	DataSize int
	Noise    float64 // the fraction of E[g g'] that is noise
}

func (frictionFactor) Name() string { return "friction factor" }

func (frictionFactor) Shape(in []tensor.Shape) (tensor.Shape, error) {
	one := tensor.Shape{1}
	if len(in) != 5 || !in[0].Equal(one) || !in[1].Equal(one) || len(in[2]) != 1 || len(in[3]) != 1 || len(in[4]) != 1 {
		return nil, errors.Errorf("must have two products [1], two tables and the header, got %v", in)
	}
	return tensor.Shape{2}, nil
}

func (f frictionFactor) Lower(l *graph.Lowering) {
	host := tensor.Rows(1, 1, graph.Pick(l, factorRow[float32](f), factorRow[float64](f)))
	l.Emit("friction_factor_fwd", tensor.Threads(1), host,
		l.Out(), l.In(0), l.In(1), l.In(2), l.In(3), l.In(4), tensor.Int(l.Shapes[2][0]), tensor.Int(l.Shapes[3][0]), tensor.Int(f.DataSize),
		tensor.Float(tensor.Float64, f.Noise))
}

// factorRow computes the factor of the force and the noise share h g.g/T. The factor adds friction
// along the gradient that balances the minibatch's noise in that direction.
func factorRow[T float32 | float64](f frictionFactor) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, _, _ int) {
		header := tensor.Slice[uint64](a, 5)
		along, squares := float64(tensor.Slice[T](a, 1)[0]), float64(tensor.Slice[T](a, 2)[0])
		rate, temperature := float64(op.Entry(tensor.Slice[T](a, 3), header)), float64(op.Entry(tensor.Slice[T](a, 4), header))
		factor, share := 1.0, 0.0
		if temperature > 0 && rate*squares > 0 {
			// With rate = h N and g = gU/N, h gU.gU is rate N g.g.
			share = f.Noise * rate * float64(f.DataSize) * squares / temperature
			factor = 1 + (1-math.Sqrt(max(0, 1-share)))*along/(rate*squares)
		}
		out := tensor.Slice[T](a, 0)
		out[0], out[1] = T(factor), T(share)
	}
}

// matchedBAOAB is BAOAB with a further input, whose first element multiplies the force.
type matchedBAOAB struct{ BAOAB }

// Name implements Sampler: kernels are named after it.
func (matchedBAOAB) Name() string { return "matched_baoab" }
