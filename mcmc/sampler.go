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

// Sampler samples from a target by all data at each step. Metropolis and NUTS are exact: exp(-U/T)
// itself is their stationary distribution, without a discretisation bias. Unadjusted has one, and a
// number that chooses it. All need a builder of float64: positions and energies are in it. The
// network within may compute in float32 (see graph.Builder.Within): its potential is then another
// one, by what rounding moves it, and that one's distribution is sampled as exactly.
type Sampler interface {
	// Name is what the sampler is called in the literature.
	Name() string
	// Validate refuses attributes out of their range.
	Validate() error
	// Attach differentiates the potential and attaches what moves the builder's parameters, which
	// must exist by then. An error is the builder's too. The program compiles and loads as usual.
	Attach(b *graph.Builder, target Target) (Chains, error)
}

// Chains makes the chains of a session walk through a target. It is for one session, in which all
// that chains have learnt is kept: another walk, in a session with their states, goes on bit for
// bit.
//
// A langevin.Plan runs them when the walk is among its interventions. A step of Metropolis or of
// Unadjusted is an evaluation of U, and there is nothing to do between two; a step of NUTS is a
// draw, whose trajectory is made before it. At each step, the traces that every walk has are
// recorded as metrics.
type Chains interface {
	langevin.Hook
	// Sample lets every chain finish its warm-up and make that many more draws, each thinning
	// proposals after the one before, and returns their traces. It ends early, with the context's
	// error, when the context is done; the session can then go on.
	Sample(ctx context.Context, s *graph.Session, draws, thinning int) (*Traces, error)
	// Current is the last draw of a chain of the session as a sample of weight 1.
	Current(s *graph.Session, chain int) (samples.Sample, error)
}

// Target is the distribution of the parameters whose density is proportional to exp(-U/T).
type Target struct {
	// Potential is U, a scalar function of the parameters without noise (dropout, minibatches);
	// where it is infinite or NaN, the density is 0. Posterior.Potential makes it for a network.
	Potential *graph.Node
	// Temperature is T, above 0; 1 for the posterior.
	Temperature float64
	// Quantities are what is traced besides the potential.
	Quantities []Quantity
}

// Quantity is a node whose value at the draws is traced: a parameter, or a function of the
// parameters.
type Quantity struct {
	Name string
	Node *graph.Node
}

// The traces that every walk has, besides its target's quantities.
const (
	TracePotential  = "potential"  // U
	TraceAcceptance = "acceptance" // the probability of accepting the proposal before the draw; 1 without a test
	TraceStepSize   = "step size"  // of that proposal
)

// drawSuffix ends the names of the states and outputs from which quantities are read.
const drawSuffix = ".draw"

// ReadDraw gets a quantity's values at a chain's last draw.
func ReadDraw(s *graph.Session, chain int, quantity string, values []float64) error {
	return errors.Wrap(graph.Read(s, quantity+drawSuffix, chain, 0, values), "mcmc")
}

// validate also refuses quantities with the name of another trace.
func (t Target) validate(b *graph.Builder, others ...string) error {
	switch {
	case b.DType() != tensor.Float64:
		return errors.Errorf("mcmc: target: the builder must be of float64, got %v", b.DType())
	case t.Potential == nil:
		return errors.New("mcmc: target: the potential must not be nil")
	case len(graph.ShapeOf(t.Potential)) != 0 || graph.DTypeOf(t.Potential) != tensor.Float64:
		return errors.Errorf("mcmc: target: the potential must be a scalar of float64, got %v of shape %v",
			graph.DTypeOf(t.Potential), graph.ShapeOf(t.Potential))
	case !(t.Temperature > 0 && t.Temperature < math.Inf(1)):
		return errors.Errorf("mcmc: target: temperature must be positive, got %v", t.Temperature)
	case len(b.Parameters()) == 0:
		return errors.New("mcmc: target: the graph has no parameters to sample")
	}
	taken := map[string]bool{TracePotential: true, TraceAcceptance: true, TraceStepSize: true}
	for _, name := range others {
		taken[name] = true
	}
	for _, q := range t.Quantities {
		if taken[q.Name] || q.Name == "" {
			return errors.Errorf("mcmc: target: quantity %q: the name is empty or taken", q.Name)
		}
		if q.Node == nil || graph.DTypeOf(q.Node) != tensor.Float64 {
			return errors.Errorf("mcmc: target: quantity %q must be a node of float64, got nil or %v", q.Name, graph.DTypeOf(q.Node))
		}
		taken[q.Name] = true
	}
	return nil
}

// traces are empty traces: those that every walk has, more of the sampler's, and the quantities.
func (t Target) traces(chains int, more ...string) *Traces {
	traces := &Traces{chains: chains, values: map[string]*trace{}}
	for _, name := range append([]string{TracePotential, TraceAcceptance, TraceStepSize}, more...) {
		if traces.values[name] == nil {
			traces.add(name, 1)
		}
	}
	for _, q := range t.Quantities {
		traces.add(q.Name, graph.ShapeOf(q.Node).Elements())
	}
	return traces
}

// output makes the quantities outputs, from which read gets them.
func (t Target) output(b *graph.Builder) {
	for _, q := range t.Quantities {
		b.Output(q.Name+drawSuffix, copied(b, q.Node))
	}
}

// copied is a copy of a node, as outputs and metrics are: a node can be kept under one name only,
// and gradients of a sum are one node.
func copied(b *graph.Builder, n *graph.Node) *graph.Node { return b.Apply(op.Scale{Factor: 1}, n) }

// read appends a chain's last draw to the traces of the target's quantities.
func (t Target) read(s *graph.Session, chain int, traces *Traces) error {
	for _, q := range t.Quantities {
		if err := ReadDraw(s, chain, q.Name, traces.extend(q.Name, chain)); err != nil {
			return err
		}
	}
	return nil
}

// Traces are the values of quantities at the draws of all chains.
type Traces struct {
	chains, draws int
	names         []string
	values        map[string]*trace
}

// trace is one quantity's values: of each chain, draw after draw.
type trace struct {
	size   int
	chains [][]float64
}

func (t *Traces) add(name string, size int) {
	t.names = append(t.names, name)
	t.values[name] = &trace{size, make([][]float64, t.chains)}
}

// extend makes room for one more draw of a quantity.
func (t *Traces) extend(name string, chain int) []float64 {
	trace := t.values[name]
	n := len(trace.chains[chain])
	trace.chains[chain] = append(trace.chains[chain], make([]float64, trace.size)...)
	return trace.chains[chain][n:]
}

// Names are the quantities' names; the ones that every walk traces come first.
func (t *Traces) Names() []string { return t.names }

// Draws is the number of draws of each chain.
func (t *Traces) Draws() int { return t.draws }

// Of is the trace of one element of a quantity, by its index in row-major order: one slice for each
// chain, as SplitRHat and EffectiveSampleSize take them.
func (t *Traces) Of(name string, element int) ([][]float64, error) {
	trace, ok := t.values[name]
	if !ok || element < 0 || element >= trace.size {
		return nil, errors.Errorf("mcmc: traces: no element %d of %q; there are %q", element, name, t.names)
	}
	chains := make([][]float64, t.chains)
	for i, values := range trace.chains {
		chains[i] = make([]float64, t.draws)
		for j := range chains[i] {
			chains[i][j] = values[j*trace.size+element]
		}
	}
	return chains, nil
}
