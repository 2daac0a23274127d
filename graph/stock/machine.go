package stock

import (
	"cmp"
	"fmt"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Options are the options of a Machine that Gorgonia does not have.
type Options struct {
	// Device runs the graph; nil is the host, with all threads. The caller must close a device
	// after the machine.
	Device tensor.Device
	// Seed is the seed of dropout masks.
	Seed uint64
	// KeepAll gives all nodes a value, not only those that Machine lists: it is for debugging, as
	// less can be fused. The parts of a convolution, such as its Im2Col, and the nodes inside
	// Gorgonia's gradients still have none.
	KeepAll bool
}

// Machine runs a stock graph instead of Gorgonia's TapeMachine. RunAll computes and stores
//
//   - the loss that gorgonia.Grad was called with, if it was;
//   - its gradients by the inputs that Grad was called with, as the inputs' Grad and as the values
//     of the nodes that Grad returned;
//   - the values that Read reads;
//   - the values of all nodes that have a name (WithName) or no user, also of those that the
//     program computes from gradients, such as w - 0.1 dw.
//
// Other nodes have no value, unless Options.KeepAll is set. Where a TapeMachine computes wrong
// values a Machine does not, see docs/gorgonia.md. RunAll can be called again without Reset. A
// Machine must not be used concurrently.
//
// A program needs one change:
//
//	vm := stock.NewMachine(g, stock.Options{}) // was gorgonia.NewTapeMachine(g)
type Machine struct {
	err     error
	survey  *survey
	options machineOptions
	ownHost tensor.Device // the host, if the caller gave no device
	session *graph.Session

	feeds     []feed            // written before each run
	fetches   []fetch           // stored after it
	gradients []fetch           // the gradients by the inputs that Grad was called with
	loss      *gorgonia.Node    // nil if Grad was not called
	lossReads []*gorgonia.Value // the variables of Reads of the loss
}

var _ gorgonia.VM = (*Machine)(nil)

// feed is an input of the program that is written before each run.
type feed struct {
	name   string           // of the input; unique, as it has the node's number
	node   *gorgonia.Node   // whose value it is; nil if Gorgonia has no node for it
	values func() []float64 // the value, if node is nil, such as a running mean
}

// fetch is an output of the program that is stored in a node after each run.
type fetch struct {
	name  string            // of the output; "" for a node that is an input
	node  *gorgonia.Node    // where the value is stored
	reads []*gorgonia.Value // the program's variables to which Read copies it

	// For the gradient by node:
	deriv    *gorgonia.Node // the node that Grad returned
	gradient *graph.Node    // while the graph is translated
	adds     bool           // the gradient is added to the present one, as BindDualValues does
	raw      rawValues      // memory for the transfer, kept from run to run
	present  gorgonia.Value // the node's gradient after the last run
}

// NewMachine makes a machine for a graph. It replaces gorgonia.NewTapeMachine, takes the same
// options, and does not return an error either: Err returns it immediately, such as a Refused, and
// RunAll returns it as well. Options that log or watch are errors.
func NewMachine(g *gorgonia.ExprGraph, o Options, options ...gorgonia.VMOpt) *Machine {
	m := &Machine{}
	m.err = m.build(g, o, options)
	if m.err != nil && m.ownHost != nil {
		m.ownHost.Close()
		m.ownHost = nil
	}
	return m
}

// Err returns the error of the graph or the options, or nil.
func (m *Machine) Err() error { return m.err }

// build translates the graph, compiles it and loads it on the device, or on a host of its own.
func (m *Machine) build(g *gorgonia.ExprGraph, o Options, options []gorgonia.VMOpt) (err error) {
	if m.survey, err = surveyOf(g); err != nil {
		return err
	}
	if m.options, err = readOptions(g, options); err != nil {
		return err
	}
	b, err := m.translate(o.KeepAll)
	if err != nil {
		return err
	}
	program, err := b.Compile()
	if err != nil {
		return err
	}
	device := o.Device
	if device == nil {
		m.ownHost = tensor.NewHost(0)
		device = m.ownHost
	}
	m.session, err = program.Load(device, graph.LoadOptions{Seed: o.Seed})
	return err
}

// translate builds Pollen's graph of the values that the machine computes. Inputs of the stock
// graph become Data, which RunAll writes from the nodes' values each time, since a solver changes
// them between runs.
func (m *Machine) translate(keepAll bool) (*graph.Builder, error) {
	wanted, updates, err := m.findFetches(keepAll)
	if err != nil {
		return nil, err
	}
	dtype, err := m.dtype(wanted)
	if err != nil {
		return nil, err
	}
	b := graph.New(dtype)
	t := newTranslator(m.survey, b, gorgoniaType(dtype))
	t.evaluating = m.options.evaluating
	t.input = func(n *gorgonia.Node) *graph.Node {
		name := fmt.Sprintf("%s.%d", givenName(n), n.ID())
		m.feeds = append(m.feeds, feed{name: name, node: n})
		return b.Data(name, dtype, n.Shape()...)
	}
	t.runtimeInput = func(name string, shape tensor.Shape, values func() []float64) *graph.Node {
		m.feeds = append(m.feeds, feed{name: name, values: values})
		return b.Data(name, dtype, shape...)
	}
	outputs := outputs{b: b, names: map[*graph.Node]string{}}
	// Translate in the order of the graph; visit translates whatever a node depends on first.
	for i := range wanted {
		r := &wanted[i]
		if node := t.visit(r.node); r.node.Op() != nil {
			r.name = outputs.keep(node)
		}
	}
	m.fetches = wanted
	if m.loss != nil {
		if err := m.differentiate(t, &outputs); err != nil {
			return nil, err
		}
	}
	m.update(t, &outputs, updates)
	return b, b.Err()
}

// update translates nodes that are computed from gradients. The nodes that Grad returned for inputs
// become Pollen's gradients; others of Gorgonia's gradient nodes are refused.
func (m *Machine) update(t *translator, o *outputs, updates []fetch) {
	for _, r := range m.gradients {
		if r.deriv != nil {
			t.nodes[r.deriv] = t.view(r.gradient, tensor.Shape(r.deriv.Shape()))
		}
	}
	t.gradients = true
	for _, r := range updates {
		r.name = o.keep(t.visit(r.node))
		m.fetches = append(m.fetches, r)
	}
}

// outputs makes nodes of a builder outputs, each only once: two nodes of the stock graph may be one
// in the builder's, such as a Reshape to the same shape.
type outputs struct {
	b     *graph.Builder
	names map[*graph.Node]string
}

func (o *outputs) keep(n *graph.Node) string {
	name, ok := o.names[n]
	if !ok && n != nil {
		name = fmt.Sprintf("output.%d", len(o.names))
		o.names[n] = name
		o.b.Output(name, n)
	}
	return name
}

// lossMetric is the program's metric of the loss.
const lossMetric = "loss"

// differentiate adds the loss and its gradients by all inputs that have a derivative. Pollen's own
// differentiation computes them; Gorgonia's gradient nodes only store the values.
func (m *Machine) differentiate(t *translator, o *outputs) error {
	loss := t.view(t.visit(m.loss), nil)
	var inputs []*graph.Node
	for _, n := range m.survey.all {
		if n.Op() == nil && n.Deriv() != nil {
			inputs = append(inputs, t.visit(n))
			m.gradients = append(m.gradients, fetch{node: n, adds: m.options.accumulates(n)})
		}
	}
	gradients := t.b.Gradients(loss, inputs...)
	if err := t.b.Err(); err != nil {
		return err
	}
	// owners has the gradient whose value a node of Gorgonia's gets.
	owners := map[*gorgonia.Node]*graph.Node{}
	for i := range m.gradients {
		r := &m.gradients[i]
		r.name, r.gradient = o.keep(gradients[i]), gradients[i]
		// Gorgonia may have merged the nodes of two different gradients; such a node gets no value.
		d := r.node.Deriv()
		if owner, taken := owners[d]; (!taken || owner == gradients[i]) && !m.survey.info[d].isConstant() {
			r.deriv, owners[d] = d, gradients[i]
			continue
		}
		for j := range m.gradients[:i] {
			if m.gradients[j].deriv == d {
				m.gradients[j].deriv = nil
			}
		}
	}
	if o.names[loss] != "" { // a node is an output or a metric, not both
		loss = t.apply(op.Scale{Factor: 1}, loss)
	}
	t.b.Record(lossMetric, loss)
	return t.b.Err()
}

// RunAll implements gorgonia.VM. If the loss is not finite, the error names the first op that
// computed such a number, and gradients and values are unchanged. The order is feeds, one step of
// the session, then fetches, gradients and the loss.
func (m *Machine) RunAll() error {
	if m.err != nil {
		return m.err
	}
	if m.session == nil {
		return errors.New("stock: the machine is closed")
	}
	for _, f := range m.feeds {
		if err := m.write(f); err != nil {
			return err
		}
	}
	if err := m.session.Run(1); err != nil {
		return errors.WithMessage(m.survey.explain(err), "stock: run")
	}
	for i := range m.fetches {
		if err := m.store(&m.fetches[i]); err != nil {
			return err
		}
	}
	for i := range m.gradients {
		if err := m.storeGradient(&m.gradients[i]); err != nil {
			return err
		}
	}
	return m.storeLoss()
}

// Reset implements gorgonia.VM. It does nothing: RunAll always computes the whole graph.
func (m *Machine) Reset() {}

// Close implements gorgonia.VM: it frees the memory. It closes the host if the machine opened it,
// and not the caller's device. A second call does nothing.
func (m *Machine) Close() error {
	if m.session == nil {
		return nil
	}
	err := m.session.Close()
	m.session = nil
	if m.ownHost != nil {
		err = cmp.Or(err, m.ownHost.Close())
		m.ownHost = nil
	}
	return err
}

// Let sets the value of an input of the graph, as gorgonia.Let does.
func (m *Machine) Let(n *gorgonia.Node, be any) error {
	if err := m.has(n); err != nil {
		return err
	}
	return gorgonia.Let(n, be)
}

// Set sets the value of a to a copy of b's value after a run. Gorgonia's own Set adds an
// assignment to the graph, which takes effect at the end of a run and which a Machine refuses.
func (m *Machine) Set(a, b *gorgonia.Node) error {
	for _, n := range []*gorgonia.Node{a, b} {
		if err := m.has(n); err != nil {
			return err
		}
	}
	if b.Value() == nil {
		return refusal(b, "it has no value", "run the machine first, and give it a name so that its value is kept")
	}
	// A copy, since the next run stores a new value in b, and a may be changed by a solver.
	value, err := gorgonia.CloneValue(b.Value())
	if err != nil {
		return errors.Wrap(err, "stock: set")
	}
	return gorgonia.UnsafeLet(a, value)
}

// has returns an error for a node of another graph.
func (m *Machine) has(n *gorgonia.Node) error {
	if m.err != nil {
		return m.err
	}
	if m.survey.info[n] == nil {
		return errors.Errorf("stock: %v is not a node of the machine's graph", n)
	}
	return nil
}
