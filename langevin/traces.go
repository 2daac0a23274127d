package langevin

import (
	"context"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Traces are the values of named quantities at the draws of all chains. Collect returns the traces
// of a Plan's samples, and the samplers of package mcmc the traces of their draws.
type Traces struct {
	chains int
	names  []string
	values map[string]*trace
}

// trace holds one quantity's values: for each chain, draw after draw.
type trace struct {
	size   int
	chains [][]float64
}

// NewTraces returns traces of a number of chains, without quantities. It panics if the number is
// negative.
func NewTraces(chains int) *Traces {
	if chains < 0 {
		panic(errors.Errorf("langevin: traces: the number of chains must be at least 0, got %d", chains))
	}
	return &Traces{chains: chains, values: map[string]*trace{}}
}

// Add adds a quantity with a number of elements, without draws. It panics if the number is less
// than 1, or if there is a quantity of the name with another number.
func (t *Traces) Add(name string, elements int) {
	if elements < 1 {
		panic(errors.Errorf("langevin: traces: %q must have at least 1 element, got %d", name, elements))
	}
	if trace := t.values[name]; trace != nil {
		if trace.size != elements {
			panic(errors.Errorf("langevin: traces: %q has %d elements already, got %d", name, trace.size, elements))
		}
		return
	}
	t.names = append(t.names, name)
	t.values[name] = &trace{elements, make([][]float64, t.chains)}
}

// Extend appends a draw to a chain's values of a quantity, and returns its elements, which the
// caller sets. They are valid until the next call. Extend panics if the quantity was not added, and
// if there is no such chain.
func (t *Traces) Extend(name string, chain int) []float64 {
	trace := t.values[name]
	if trace == nil || chain < 0 || chain >= t.chains {
		panic(errors.Errorf("langevin: traces: no chain %d of %q; there are %d chains of %q", chain, name, t.chains, t.names))
	}
	n := len(trace.chains[chain])
	trace.chains[chain] = append(trace.chains[chain], make([]float64, trace.size)...)
	return trace.chains[chain][n:]
}

// Names returns the names of the quantities, in the order in which they were added.
func (t *Traces) Names() []string { return slices.Clone(t.names) }

// Draws returns the number of draws of each chain.
func (t *Traces) Draws() int {
	if len(t.names) == 0 || t.chains == 0 {
		return 0
	}
	last := t.values[t.names[len(t.names)-1]]
	return len(last.chains[t.chains-1]) / last.size
}

// Elements returns the number of elements of a quantity, 0 for an unknown one.
func (t *Traces) Elements(name string) int {
	if trace, ok := t.values[name]; ok {
		return trace.size
	}
	return 0
}

// Of returns the trace of one element of a quantity, with one slice for each chain, as the
// functions of package diagnostics take them. element is the index in row-major order. An unknown
// quantity or element is an error.
func (t *Traces) Of(name string, element int) ([][]float64, error) {
	trace, ok := t.values[name]
	if !ok {
		return nil, errors.Errorf("langevin: traces: no quantity %q; there are %q", name, t.names)
	}
	if element < 0 || element >= trace.size {
		return nil, errors.Errorf("langevin: traces: element of %q must be 0 or more and below %d, got %d", name, trace.size, element)
	}
	chains := make([][]float64, t.chains)
	for i, values := range trace.chains {
		chains[i] = make([]float64, t.Draws())
		for j := range chains[i] {
			chains[i][j] = values[j*trace.size+element]
		}
	}
	return chains, nil
}

// PositionSuffix ends the names of the states with the parameters' last draws, in programs whose
// parameters hold proposals, as in package mcmc.
const PositionSuffix = ".position"

// Collect runs the plan, see Run, and returns the values of some parameters, other inputs of chains
// and outputs at the plan's samples. Outputs have the values of the step that ended at the sample,
// computed before its update. Instead of parameters that hold proposals it reads their last draws,
// see PositionSuffix. A session that has made the plan's last sample already is an error.
func (p Plan) Collect(ctx context.Context, s *graph.Session, names []string, hooks ...Hook) (*Traces, error) {
	if s == nil {
		return nil, errors.New("langevin: collect: the session must not be nil")
	}
	if made := s.Steps(); p.Validate() == nil && made >= uint64(p.lastSample()) {
		return nil, errors.Errorf("langevin: collect: the session must have samples of the plan left, but the last one is at step %d, and %d steps are made",
			p.lastSample(), made)
	}
	if compact := slices.Compact(slices.Sorted(slices.Values(names))); len(compact) != len(names) {
		return nil, errors.Errorf("langevin: collect: names must be distinct, got %q", names)
	}
	traces, tensors := NewTraces(s.Chains()), make([]graph.Tensor, len(names))
	for i, name := range names {
		var err error
		if tensors[i], err = drawsOf(s, name); err != nil {
			return nil, err
		}
		traces.Add(name, tensors[i].Shape.Elements())
	}
	err := p.Run(ctx, s, graph.MetricRows, func(w Window) error {
		for chain := 0; w.Sample && chain < s.Chains(); chain++ {
			for i, t := range tensors {
				if err := readFloats(s, t, chain, traces.Extend(names[i], chain)); err != nil {
					return err
				}
			}
		}
		return nil
	}, hooks...)
	return traces, err
}

// drawsOf returns the tensor that has the draws of a quantity: the one of that name, or the state
// of its last draws if there is one, see PositionSuffix.
func drawsOf(s *graph.Session, name string) (graph.Tensor, error) {
	t, err := s.Program().Tensor(name)
	if err != nil {
		return t, err
	}
	if !t.DType.IsFloat() {
		return t, errors.Errorf("langevin: collect: %s must be of a float type, got %v", name, t.DType)
	}
	position, err := s.Program().Tensor(name + PositionSuffix)
	isParameter := func(p graph.Tensor) bool { return p.Name == position.Name }
	if err == nil && !slices.ContainsFunc(s.Program().Parameters(), isParameter) {
		return position, nil
	}
	return t, nil
}

// readFloats reads a chain's tensor of either float type.
func readFloats(s *graph.Session, t graph.Tensor, chain int, values []float64) error {
	if t.DType == tensor.Float64 {
		return graph.Read(s, t.Name, chain, 0, values)
	}
	narrow := make([]float32, len(values))
	err := graph.Read(s, t.Name, chain, 0, narrow)
	for i, v := range narrow {
		values[i] = float64(v)
	}
	return err
}
