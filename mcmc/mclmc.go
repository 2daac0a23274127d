package mcmc

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// MCLMC is microcanonical Langevin dynamics without a Metropolis test (Robnik, De Luca, Silverstein
// and Seljak 2023, section 3; as MILE on networks: Sommer, Robnik, Nozadze, Seljak and Ruegamer
// 2025). theta moves at the speed 1 in a direction u, which the gradient turns and noise spreads.
// With d elements of all parameters together, e = -gU/|gU| and the step size s, a step is
//
//	B  u     <- (u + e (sinh x + e.u (cosh x - 1)))/(cosh x + e.u sinh x),  x = s |gU|/(2 T (d-1))
//	A  theta <- theta + (s/2) u
//	O  u     <- (u + n z)/|u + n z|,    n^2 = (exp(2 Friction) - 1)/d,    z ~ N(0, 1)
//	A  as above
//	B  as above, at the new theta
//
// and at the start u is z/|z|. The energy U/T + (d - 1) log(cosh x + e.u sinh x), the second term
// summed over all B, would stay constant if steps were small. Its error in a step is the trace
// TraceEnergyError.
//
// During warm-up the step size adapts until the mean square of this error is d times
// EnergyVariance, or MaxVariance if that is less. In the first third it grows by a fixed factor if
// the error is too small, and shrinks if it is too large. Afterwards it is m^(-1/6), where m is a
// weighted mean of the squared errors over this target, each divided by the sixth power of its step
// size; errors near the target have more weight. After warm-up it is frozen.
//
// In continuous time theta has the density exp(-U/T) for any Friction. EnergyVariance E sets the
// bias of finite steps. On a quadratic U of many dimensions, where q is c s^2/(d T), the variance
// along any curvature c is T/c (1 + m/12) for small q, where m is the mean of the q. Where all
// curvatures are equal, E is q^3/144 and the excess is (E/12)^(1/3), 3.5 % at the 5e-4 of the
// literature. As in BAOAB, stiff directions, on which predictions depend in part, have no more of
// the excess than soft ones; with O after the last B, as in the papers, it would be q/4 - m/6
// instead of m/12. A potential that is not quadratic adds a further bias: the directions on which
// the predictions of lenet-small on a thousand digits depend, with the prior fan-in:2, had the
// temperature 1.02 +- 0.06 of T at 2e-5 and 3 +- 1 at 1e-4. With O after B it was 1.25 +- 0.07 at
// 2e-5, for the same number of steps.
//
// Not implemented: tuning L = s/Friction by autocorrelations, preconditioning by variances, and
// MILE's descent to the starting points of its chains.
type MCLMC struct {
	// Friction is s/L, where L is the distance in which u forgets its direction; above 0, such as
	// 0.01.
	Friction float64
	// EnergyVariance is the variance of a step, divided by d; above 0, such as 2e-5.
	EnergyVariance float64
	// MaxVariance bounds the variance of a step, which is not divided by d; 0 is no bound. Without
	// it, the few directions of a large network that the data determine may become unstable, since
	// they make only a small part of the error: one at the edge of stability, q = 4, has a variance
	// of 4^3/144 = 0.44. Of four chains of a hidden layer with 82,000 weights on 245 images, whose
	// variance would be 1.6, one became unstable; with the bound 0.5, the split R-hat of
	// predictions was 1.003 instead of 1.13.
	MaxVariance float64
}

// Name returns the name in the literature of Unadjusted with these dynamics.
func (MCLMC) Name() string { return "mclmc" }

// Validate reports attributes that are out of range.
func (m MCLMC) Validate() error {
	switch {
	case !positive(m.Friction):
		return errors.Errorf("mcmc: mclmc: Friction must be positive, got %v", m.Friction)
	case !positive(m.EnergyVariance):
		return errors.Errorf("mcmc: mclmc: EnergyVariance must be positive, got %v", m.EnergyVariance)
	case !(m.MaxVariance >= 0 && m.MaxVariance < math.Inf(1)):
		return errors.Errorf("mcmc: mclmc: MaxVariance must be at least 0, got %v", m.MaxVariance)
	}
	return nil
}

// Unadjusted samples by MCLMC without a test that removes the bias. A step of the program is a step
// of MCLMC, with one evaluation of U and its gradient. Draws are in the states
// "<parameter>.position". At each step the metrics TracePotential, TraceStepSize, TraceEnergyError
// and "theta.g <name>" are recorded. The builder must be of float64, because energies are sums over
// all data.
type Unadjusted struct {
	Dynamics MCLMC
	StepSize float64 // s of the first step, above 0: a distance in the space of all parameters
	Warmup   int     // in steps
}

var _ Sampler = Unadjusted{}

// mclmcStartStep is the step in the address of the normals of the initial direction. No run reaches
// it.
const mclmcStartStep = random.MaxStep

// TraceEnergyError is the trace of Unadjusted with the error of a step's energy, over T.
const TraceEnergyError = "energy error"

// Name implements Sampler.
func (u Unadjusted) Name() string { return u.Dynamics.Name() }

// Validate implements Sampler.
func (u Unadjusted) Validate() error {
	switch {
	case !positive(u.StepSize):
		return errors.Errorf("mcmc: mclmc: StepSize must be positive, got %v", u.StepSize)
	case u.Warmup < 0 || u.Warmup > math.MaxInt32:
		return errors.Errorf("mcmc: mclmc: Warmup must be 0 to %d steps, got %d", math.MaxInt32, u.Warmup)
	}
	return u.Dynamics.Validate()
}

// Attach implements Sampler.
func (u Unadjusted) Attach(b *graph.Builder, target Target) (Chains, error) {
	b.Fail(u.Validate())
	b.Fail(target.validate(b, false, TraceEnergyError))
	if b.Err() != nil {
		return nil, b.Err()
	}
	parameters := b.Parameters()
	gradients := b.Gradients(target.Potential, parameters...)
	d := mclmcDecide{dynamics: u.Dynamics, warmup: u.Warmup, temperature: target.Temperature}
	for _, p := range parameters {
		d.dimensions += graph.ShapeOf(p).Elements()
	}
	if d.dimensions < 2 {
		b.Fail(errors.New("mcmc: mclmc: the parameters must have at least 2 dimensions, got 1: there is no direction to turn"))
		return nil, b.Err()
	}
	start := func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, words []float64) { words[mclmcStep] = u.StepSize }
	words := b.State(mclmcState, start, mclmcWords)
	inputs := []*graph.Node{target.Potential, words, b.Header()}
	var moves []func(decision *graph.Node)
	for i, p := range parameters {
		shape := graph.ShapeOf(p)
		noise, gradient := b.Stream(), gradients[i]
		first := func(seed uint64, chain uint32, _ uint16, _ tensor.Shape, values []float64) {
			random.Normals(values, 0, random.Address{Seed: seed, Chain: chain, Step: mclmcStartStep, Stream: noise})
		}
		direction, position := b.State(p.Name()+".direction", first, shape...), b.State(p.Name()+langevin.PositionSuffix, nil, shape...)
		inputs = append(inputs, b.Apply(mclmcProducts{noise}, direction, gradient, b.Header()))
		moves = append(moves, func(decision *graph.Node) {
			b.Record(langevin.VirialPrefix+p.Name(), b.Apply(mclmcMove{noise}, p, gradient, direction, position, decision, b.Header()))
		})
	}
	decision := b.Apply(d, inputs...)
	for _, move := range moves {
		move(decision)
	}
	record(b, mclmcTraced, decision)
	target.output(b)
	if b.Err() != nil {
		return nil, b.Err()
	}
	return &evaluationChains{sampler: u.Name(), target: target, state: mclmcState, words: mclmcWords, traced: mclmcTraced, unadjusted: true,
		end: func(from uint64, thinning, draw int) uint64 {
			return max(from, uint64(u.Warmup)) + uint64((draw+1)*thinning)
		}}, nil
}
