package mcmc

import (
	"context"
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Sampler samples from a target with all data at each step. Metropolis and NUTS are exact:
// exp(-U/T) itself is their stationary distribution, without a discretisation bias. Unadjusted has
// a bias, which one of its attributes controls. All need a builder of float64, for positions and
// energies. The network itself may compute in float32 (see graph.Builder.Within): rounding then
// changes the potential slightly, and the samplers target the changed potential as exactly.
type Sampler interface {
	// Name returns the name of the sampler in the literature.
	Name() string
	// Validate reports attributes that are out of range or have no effect.
	Validate() error
	// Attach differentiates the potential and attaches the updates of the builder's parameters,
	// which must exist by then. It returns the builder's error. The program compiles and loads as
	// usual.
	Attach(b *graph.Builder, target Target) (Chains, error)
}

// Chains runs the Markov chains of one session. Everything that the chains adapt is kept in the
// session's states: Chains of another session with the same states continue with the same bits.
//
// As a langevin.Hook they also run under a langevin.Plan. A step of Metropolis or of Unadjusted is
// an evaluation of U, and the hook does nothing; a step of NUTS is a draw, whose trajectory the
// hook makes. At each step, the traces that all samplers have are recorded as metrics.
type Chains interface {
	langevin.Hook
	// Sample lets every chain finish its warm-up, makes the given number of draws, and returns
	// their traces. Consecutive draws are thinning proposals apart. When the context is done it
	// returns the context's error; the session can then continue.
	Sample(ctx context.Context, s *graph.Session, draws, thinning int) (*langevin.Traces, error)
	// Current returns the last draw of a chain as a sample of weight 1.
	Current(s *graph.Session, chain int) (samples.Sample, error)
}

// Target is the distribution of the parameters whose density is proportional to exp(-U/T).
type Target struct {
	// Potential is U, a scalar function of the parameters without noise: no dropout, and no
	// minibatches except MALA.BatchHeader's. langevin.Posterior.Potential makes it for a network.
	// Where it is +Inf or NaN the density is 0, but not where a chain starts, and nowhere for
	// Unadjusted: there the run stops with an error, as it does where it is -Inf.
	Potential *graph.Node
	// Temperature is T, above 0; 1 for the posterior.
	Temperature float64
	// Quantities are traced in addition to the potential. Parameters are traced only if they are
	// among them.
	Quantities []Quantity
}

// Quantity is a node whose values at the draws are traced: a parameter, or a function of the
// parameters.
type Quantity struct {
	Name string
	Node *graph.Node
}

// The traces of all samplers, besides the target's quantities.
const (
	TracePotential  = "potential"  // U
	TraceAcceptance = "acceptance" // the probability of accepting the proposal before the draw; 1 without a test
	TraceStepSize   = "step size"  // of that proposal
)

// TraceAccepted is a trace of Metropolis: 1 if the proposal before the draw was accepted, else 0.
const TraceAccepted = "accepted"

// TraceEnergy is a trace of HMC and NUTS: (U + K)/T at the draw, where K is the kinetic energy at
// that point of the trajectory. diagnostics.BFMI takes it.
const TraceEnergy = "energy"

// drawSuffix ends the names of the states and outputs from which quantities are read.
const drawSuffix = ".draw"

// ReadDraw fills values with a quantity's values at a chain's last draw.
func ReadDraw(s *graph.Session, chain int, quantity string, values []float64) error {
	return errors.Wrap(graph.Read(s, quantity+drawSuffix, chain, 0, values), "mcmc")
}

// validate reports an invalid target, and quantities that are named like one of the sampler's
// traces. If steps are paired, the potential may depend on minibatches of BatchHeader.
func (t Target) validate(b *graph.Builder, paired bool, others ...string) error {
	switch {
	case b.DType() != tensor.Float64:
		return errors.Errorf("mcmc: target: the builder must be of float64, got %v", b.DType())
	case t.Potential == nil:
		return errors.New("mcmc: target: the potential must not be nil")
	case len(graph.ShapeOf(t.Potential)) != 0 || graph.DTypeOf(t.Potential) != tensor.Float64:
		return errors.Errorf("mcmc: target: the potential must be a scalar of float64, got %v of shape %v",
			graph.DTypeOf(t.Potential), graph.ShapeOf(t.Potential))
	case !positive(t.Temperature):
		return errors.Errorf("mcmc: target: temperature must be positive, got %v", t.Temperature)
	case len(b.Parameters()) == 0:
		return errors.New("mcmc: target: the graph has no parameters to sample")
	}
	if a, ok := changing(b, t.Potential, paired); ok {
		return errors.Errorf("mcmc: target: the potential must be a function of the parameters, without random numbers or minibatches, got %s in %q",
			a.Op.Name(), a.Scope)
	}
	taken := map[string]bool{TracePotential: true, TraceAcceptance: true, TraceStepSize: true}
	for _, name := range others {
		taken[name] = true
	}
	for _, q := range t.Quantities {
		if q.Name == "" {
			return errors.New("mcmc: target: the name of a quantity must not be empty")
		}
		if taken[q.Name] {
			return errors.Errorf("mcmc: target: quantity %q: the name must be unique, and differ from those of the sampler's own traces", q.Name)
		}
		if q.Node == nil {
			return errors.Errorf("mcmc: target: quantity %q: the node must not be nil", q.Name)
		}
		if graph.DTypeOf(q.Node) != tensor.Float64 {
			return errors.Errorf("mcmc: target: quantity %q: the node must be of float64, got %v", q.Name, graph.DTypeOf(q.Node))
		}
		taken[q.Name] = true
	}
	return nil
}

// positive reports whether v is above 0 and finite. It is false for NaN.
func positive(v float64) bool { return v > 0 && v < math.Inf(1) }

// checkSample checks the arguments of Chains.Sample.
func checkSample(ctx context.Context, sampler string, s *graph.Session, draws, thinning int) error {
	if ctx == nil || s == nil {
		return errors.Errorf("mcmc: %s: the context and the session must not be nil", sampler)
	}
	if draws < 1 || thinning < 1 {
		return errors.Errorf("mcmc: %s: draws and thinning must be at least 1, got %d and %d", sampler, draws, thinning)
	}
	return nil
}

// traces returns empty traces of the quantities that all samplers have, of those named in more, and
// of the target's quantities.
func (t Target) traces(chains int, more ...string) *langevin.Traces {
	traces := langevin.NewTraces(chains)
	for _, name := range append([]string{TracePotential, TraceAcceptance, TraceStepSize}, more...) {
		traces.Add(name, 1)
	}
	for _, q := range t.Quantities {
		traces.Add(q.Name, graph.ShapeOf(q.Node).Elements())
	}
	return traces
}

// output makes the quantities outputs, for Target.read.
func (t Target) output(b *graph.Builder) {
	for _, q := range t.Quantities {
		b.Output(q.Name+drawSuffix, copied(b, q.Node))
	}
}

// copied returns a copy of a node for an output or a metric. A node can be kept under one name
// only, and the gradients of a sum are one node.
func copied(b *graph.Builder, n *graph.Node) *graph.Node { return b.Apply(op.Scale{Factor: 1}, n) }

// read appends a chain's last draw to the traces of the target's quantities.
func (t Target) read(s *graph.Session, chain int, traces *langevin.Traces) error {
	for _, q := range t.Quantities {
		if err := ReadDraw(s, chain, q.Name, traces.Extend(q.Name, chain)); err != nil {
			return err
		}
	}
	return nil
}
