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
// 2025): theta moves at the speed 1 in a direction u, which the gradient turns and noise spreads.
// With d elements of all parameters together, e = -gU/|gU| and the step size s, a step is
//
//	B  u     <- (u + e (sinh x + e.u (cosh x - 1)))/(cosh x + e.u sinh x),  x = s |gU|/(2 T (d-1))
//	A  theta <- theta + (s/2) u
//	O  u     <- (u + n z)/|u + n z|,    n^2 = (exp(2 Friction) - 1)/d,    z ~ N(0, 1)
//	A  as above
//	B  as above, at the new theta
//
// and at the start u is z/|z|. The energy U/T + (d - 1) log(cosh x + e.u sinh x), summed over all
// B, would stay as it is if steps were small; its error in a step is the trace TraceEnergyError.
// During warm-up the step size adapts until the mean of the error's square is d times
// EnergyVariance: in the first third it grows or shrinks by the error's side alone, and then it is
// the sixth root of the mean of the squares over the sixth power of their steps, weighted by how
// near they are to what is wanted. After warm-up it is frozen.
//
// In continuous time theta has the density exp(-U/T) for any Friction. The bias of its steps is
// what EnergyVariance E chooses. On a quadratic U of many dimensions, q being c s^2/(d T), the
// variance along any curvature c is T/c (1 + m/12) for small q, with their mean m. Where all
// curvatures are alike E is q^3/144, and the excess is (E/12)^(1/3), 3.5 % at the 5e-4 of the
// literature. Stiff directions, of which predictions depend on some, have no more of it than soft
// ones, as in BAOAB; with O after the last B, as the papers have it, there is q/4 - m/6 in the
// place of m/12. What is not quadratic has a bias of its own: what predictions of lenet-small on a
// thousand digits depend on, with the prior fan-in:2, was at 1.02 +- 0.06 of T at 2e-5 and at 3 +-
// 1 at 1e-4. With O after B it was at 1.25 +- 0.07 at 2e-5, for the same steps.
//
// Left out: the tuning of L = s/Friction by autocorrelations, the preconditioning by variances, and
// MILE's descent to where its chains start.
type MCLMC struct {
	Friction       float64 // s/L, L being the distance in which u forgets its direction, above 0
	EnergyVariance float64 // of a step, over d, above 0
}

// Name is what Unadjusted with these dynamics is called in the literature.
func (MCLMC) Name() string { return "mclmc" }

// Validate refuses attributes out of their range.
func (m MCLMC) Validate() error {
	switch {
	case !(m.Friction > 0 && m.Friction < math.Inf(1)):
		return errors.Errorf("mcmc: mclmc: Friction must be positive, got %v", m.Friction)
	case !(m.EnergyVariance > 0 && m.EnergyVariance < math.Inf(1)):
		return errors.Errorf("mcmc: mclmc: EnergyVariance must be positive, got %v", m.EnergyVariance)
	}
	return nil
}

// Unadjusted samples by MCLMC, whose bias no test removes. A step of the program is a step of it,
// with one evaluation of U and its gradient. Draws are in the states "<parameter>.position". At
// each step the metrics TracePotential, TraceStepSize, TraceEnergyError and "theta.g <name>" are
// recorded. The builder is of float64, as energies are those of all data.
type Unadjusted struct {
	Dynamics MCLMC
	StepSize float64 // s of the first step, a distance in all parameters' space
	Warmup   int     // steps
}

var _ Sampler = Unadjusted{}

// mclmcStartStep is where in their streams the normals of the first direction are: no step comes there.
const mclmcStartStep = random.MaxStep

// TraceEnergyError is the error of a step's energy, over T, that Unadjusted has as a trace.
const TraceEnergyError = "energy error"

// Name implements Sampler.
func (u Unadjusted) Name() string { return u.Dynamics.Name() }

// Validate implements Sampler.
func (u Unadjusted) Validate() error {
	switch {
	case !(u.StepSize > 0 && u.StepSize < math.Inf(1)):
		return errors.Errorf("mcmc: mclmc: StepSize must be positive, got %v", u.StepSize)
	case u.Warmup < 0 || u.Warmup > math.MaxInt32:
		return errors.Errorf("mcmc: mclmc: Warmup must be 0 to %d steps, got %d", math.MaxInt32, u.Warmup)
	}
	return u.Dynamics.Validate()
}

// Attach implements Sampler.
func (u Unadjusted) Attach(b *graph.Builder, target Target) (Chains, error) {
	b.Fail(u.Validate())
	b.Fail(target.validate(b, TraceEnergyError))
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
		direction, position := b.State(p.Name()+".direction", first, shape...), b.State(p.Name()+positionSuffix, nil, shape...)
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
