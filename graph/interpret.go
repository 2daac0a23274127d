package graph

import (
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/tensor"
)

// runOnHost computes one application on Gorgonia's values, in separate memory and on one thread.
// Inputs that the op updates are copied back. It lowers the op as Compile does and runs the
// launches on a host device that it makes for this one op: simple and slow, which is right for the
// oracle of the tests.
func runOnHost(a *application, values []gorgonia.Value) (gorgonia.Value, error) {
	v := &value{label: a.label(), op: a.Op, shape: a.shape, float: a.float, dtype: a.dtype}
	v.buffer = tensor.NewBuffer("output", tensor.Chain, a.dtype, a.shape.Elements())
	for i, shape := range a.inputs {
		in := &value{label: "input", shape: shape, dtype: a.types[i]}
		in.buffer = tensor.NewBuffer("input", tensor.Chain, a.types[i], shape.Elements())
		v.inputs = append(v.inputs, in)
	}
	if isView(v) {
		return viewOf(a, values[0])
	}
	l := lower(v)
	plan := newPlan()
	for _, in := range v.inputs {
		plan.pin(in.buffer)
	}
	plan.pin(v.buffer)
	plan.use(0, l.launches, l.temps)
	host := tensor.NewHost(1)
	defer host.Close()
	runner, err := host.Load(tensor.Workload{Launches: l.launches, Bytes: plan.offsets(), Chains: 1})
	if err != nil {
		return nil, err
	}
	defer runner.Close()
	for i, in := range v.inputs {
		raw, err := valueBytes(values[i], a.types[i], a.inputs[i])
		if err != nil {
			return nil, errors.Wrapf(err, "graph: %s: input %d", a.label(), i)
		}
		if err := runner.Write(in.buffer, 0, 0, raw); err != nil {
			return nil, err
		}
	}
	if err := runner.Run(1); err != nil {
		return nil, err
	}
	if u, ok := a.Op.(Updater); ok {
		for _, i := range u.Updates() {
			raw, err := valueBytes(values[i], a.types[i], a.inputs[i])
			if err == nil {
				err = runner.Read(v.inputs[i].buffer, 0, 0, raw)
			}
			if err != nil {
				return nil, err
			}
		}
	}
	out, raw := newValue(a.dtype, a.shape)
	if err := runner.Read(v.buffer, 0, 0, raw); err != nil {
		return nil, err
	}
	if len(a.shape) == 0 {
		return scalarOf(out), nil
	}
	return out, nil
}

// viewOf copies, because Gorgonia's machines reuse the memory that a view would share.
func viewOf(a *application, in gorgonia.Value) (gorgonia.Value, error) {
	from, err := valueBytes(in, a.dtype, a.inputs[0])
	if err != nil {
		return nil, err
	}
	out, raw := newValue(a.dtype, a.shape)
	copy(raw, from)
	if len(a.shape) == 0 {
		return scalarOf(out), nil
	}
	return out, nil
}

// newValue returns a tensor of zeros and its memory, as bytes that a Runner can read and write.
func newValue(dtype tensor.DType, shape tensor.Shape) (*dense.Dense, []byte) {
	switch dtype {
	case tensor.Float32:
		return newDense[float32](shape)
	case tensor.Float64:
		return newDense[float64](shape)
	case tensor.Uint8:
		return newDense[uint8](shape)
	case tensor.Int32:
		return newDense[int32](shape)
	default:
		return newDense[uint64](shape)
	}
}

// newDense makes a scalar a vector of one element: Gorgonia's scalar tensors do not keep their
// value in a slice.
func newDense[T tensor.Element](shape tensor.Shape) (*dense.Dense, []byte) {
	values := make([]T, shape.Elements())
	if len(shape) == 0 {
		shape = tensor.Shape{1}
	}
	d, err := tensor.ToDense(shape, values)
	if err != nil {
		panic(err) // the length is the shape's
	}
	return d, tensor.Bytes(values)
}

// scalarOf converts a tensor of one element to the type that Gorgonia's own ops accept as a scalar.
func scalarOf(d *dense.Dense) gorgonia.Value {
	switch data := d.Data().(type) {
	case []float32:
		return gorgonia.NewF32(data[0])
	case []float64:
		return gorgonia.NewF64(data[0])
	}
	return d
}

// valueBytes returns the memory of one of Gorgonia's values, or a copy for its scalars. The number
// of bytes must be the shape's.
func valueBytes(v gorgonia.Value, dtype tensor.DType, shape tensor.Shape) ([]byte, error) {
	var raw []byte
	switch data := v.Data().(type) {
	case []float32:
		raw = tensor.Bytes(data)
	case []float64:
		raw = tensor.Bytes(data)
	case []uint8:
		raw = data
	case []int32:
		raw = tensor.Bytes(data)
	case []uint64:
		raw = tensor.Bytes(data)
	case float32:
		raw = tensor.Bytes([]float32{data})
	case float64:
		raw = tensor.Bytes([]float64{data})
	}
	if want := shape.Elements() * dtype.Size(); len(raw) != want {
		return nil, errors.Errorf("the value must be %v of %v, %d bytes, got %T of %d bytes", dtype, shape, want, v.Data(), len(raw))
	}
	return raw, nil
}

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
		wide := make([]float64, len(data))
		for i, x := range data {
			wide[i] = float64(x)
		}
		return wide, nil
	case []float64:
		return append([]float64(nil), data...), nil
	default:
		return nil, errors.Errorf("graph: interpreter: %v must hold floats, got %T", n, data)
	}
}
