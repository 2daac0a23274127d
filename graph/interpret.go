package graph

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/tensor"
)

// Interpreter runs a graph node by node, in Gorgonia's order, with separate memory for every value.
// It shares the ops' launches with a compiled program, but neither the schedule, nor fusion, nor
// the memory plan: tests compare programs with it. It is slow.
type Interpreter struct {
	builder *Builder
	inputs  map[*Node]*dense.Dense   // the current values of inputs, which updates change
	last    map[*Node]gorgonia.Value // the values of all nodes in the last step
}

// Interpret returns an interpreter for one chain of the graph, with the initial values that Load
// would give it.
func Interpret(b *Builder, o LoadOptions) (*Interpreter, error) {
	if len(b.metrics) > 0 {
		b.Header() // as Compile does
	}
	if b.err != nil {
		return nil, b.err
	}
	p := &Interpreter{builder: b, inputs: map[*Node]*dense.Dense{}}
	for _, in := range b.inputs {
		d, raw := newValue(in.dtype, in.shape)
		p.inputs[in.node] = d
		if in.node == b.header {
			copy(raw, tensor.Bytes([]uint64{HeaderSeed: o.Seed, HeaderChain: uint64(o.FirstChain), HeaderStep: 0}))
		}
		values := in.values
		// As Session.initialize: the same seed gives the same start.
		if in.initialize != nil {
			values = make([]float64, in.shape.Elements())
			in.initialize(o.Seed, uint32(o.FirstChain), in.stream, in.shape, values)
		}
		copy(raw, floatBytes(in.dtype, values))
	}
	return p, nil
}

// Input returns the memory of an input, for the caller to read and to change.
func (p *Interpreter) Input(name string) (*dense.Dense, error) {
	if in, ok := p.builder.byName[name]; ok {
		return p.inputs[in.node], nil
	}
	return nil, errors.Errorf("graph: interpreter: no input %q", name)
}

// Step computes every node of the graph once, applies the updates and increments the step counter.
func (p *Interpreter) Step() error {
	sorted, err := gorgonia.Sort(p.builder.graph)
	if err != nil {
		return errors.Wrap(err, "graph: interpreter")
	}
	p.last = map[*Node]gorgonia.Value{}
	changes := map[*dense.Dense]*dense.Dense{} // by updated input
	// Gorgonia sorts from outputs to inputs.
	for i := len(sorted) - 1; i >= 0; i-- {
		n := sorted[i]
		if in, ok := p.inputs[n]; ok {
			p.last[n] = in
			continue
		}
		var values []gorgonia.Value
		for _, child := range childrenOf(p.builder.graph, n) {
			values = append(values, p.last[child])
		}
		if n.Op() == nil {
			return errors.Errorf("graph: interpreter: %v is an input made after the interpreter", n)
		}
		if err := p.apply(n, values, changes); err != nil {
			return errors.Wrapf(err, "graph: interpreter: %v", n)
		}
	}
	for in, changed := range changes {
		if err := dense.Copy(in, changed); err != nil {
			return errors.Wrap(err, "graph: interpreter")
		}
	}
	if p.builder.header != nil {
		p.inputs[p.builder.header].Data().([]uint64)[HeaderStep]++
	}
	return nil
}

// apply computes a node. An update changes copies, which Step writes back at its end: other nodes
// read the values that the step began with.
func (p *Interpreter) apply(n *Node, values []gorgonia.Value, changes map[*dense.Dense]*dense.Dense) error {
	if a, ok := n.Op().(*application); ok {
		if u, ok := a.Op.(Updater); ok {
			for _, i := range u.Updates() {
				in, ok := values[i].(*dense.Dense)
				if !ok {
					return errors.Errorf("%s: updated input %d must be a parameter or state", a.label(), i)
				}
				changed := in.Clone().(*dense.Dense)
				values[i], changes[in] = changed, changed
			}
		}
	}
	v, err := n.Op().Do(values...)
	p.last[n] = v
	return err
}

// Value returns a copy of a node's value in the last step, as float64. Unlike in a Session, every
// node has one, not only outputs.
func (p *Interpreter) Value(n *Node) ([]float64, error) {
	v, ok := p.last[n]
	if !ok {
		return nil, errors.Errorf("graph: interpreter: %v has no value: it is not in this graph, or Step was not called", n)
	}
	switch data := v.Data().(type) {
	case float32:
		return []float64{float64(data)}, nil
	case float64:
		return []float64{data}, nil
	case []float32:
		return tensor.Convert[float64](data), nil
	case []float64:
		return append([]float64(nil), data...), nil
	default:
		return nil, errors.Errorf("graph: interpreter: %v must hold floats, got %T", n, data)
	}
}
