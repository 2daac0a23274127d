package graph

import (
	"reflect"
	"slices"
	"sync"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// gorgoniaLock guards the construction of graphs: Gorgonia's graphs share global state, such as its
// pools of types, even if they share no node.
var gorgoniaLock sync.Mutex

// Initializer fills a parameter's values at the start of a chain. The values must depend only on
// the arguments, so that a chain starts at the same point on every device and after a restart.
// stream differs between the parameters of a graph, so that two layers of the same shape start
// differently.
type Initializer func(seed uint64, chain uint32, stream uint16, shape tensor.Shape, values []float64)

// input is a node without an op: its purpose, and the source of its values.
type input struct {
	name       string
	node       *Node
	arena      tensor.Arena // Shared for data and tables, Chain for parameters and state
	dtype      tensor.DType
	shape      tensor.Shape
	parameter  bool        // trainable: Builder.Parameters lists it, and samples keep it
	late       bool        // made after Gradients or an update
	stream     uint16      // stream of random numbers for initialize
	initialize Initializer // nil: zeros
	values     []float64   // values of a table, otherwise nil
}

// Mode is the purpose of a graph. Some layers, such as dropout, depend on it.
type Mode uint8

// The modes.
const (
	Training Mode = iota
	Prediction
)

// Hooks replace the nodes that layers make, so that a network can be transformed without changing
// its layers: Bayes by Backprop replaces each parameter by a random weight that is drawn again at
// each step. Hooks are not called for the nodes that a hook makes, nor for gradients.
type Hooks struct {
	// Parameter replaces Builder.Parameter: it returns the node that a layer uses as the parameter.
	// If it is nil, layers get the parameter itself.
	Parameter func(name string, initialize Initializer, shape ...int) *Node
	// Apply is called by Builder.Apply, and returns the node that replaces the op's output, or nil
	// to leave it as it is. Inputs may be nil: Builder.Apply reports that error.
	Apply func(op Op, inputs []*Node) *Node
}

// Builder makes the nodes of one graph, in one goroutine; its zero value is not usable, see New. A
// training graph is built in this order, which Gradients enforces in part:
//
//	x := b.Data(...)                     // inputs
//	loss := ...                          // layers: b.Parameter and b.Apply
//	g := b.Gradients(loss, b.Parameters()...)
//	...                                  // updates: ops that are Updaters
//	b.Record("loss", loss)               // metrics and outputs
//	program, err := b.Compile()          // also returns the first error of the above
type Builder struct {
	// Mode is Training by default. Set it before the first layer is applied.
	Mode Mode
	// Hooks, while they are set, replace the nodes that layers make. There are none by default.
	Hooks Hooks

	graph                           *gorgonia.ExprGraph
	dtype                           tensor.DType // of the program
	float                           tensor.DType // of new nodes, see Within
	inputs                          []*input
	byName                          map[string]*input
	header                          *Node          // nil until Header is called
	scope                           string         // see Scope
	numbers                         map[string]int // of layers by kind, see Number
	serial                          uint64         // of the last application
	streams                         uint16         // streams of random numbers so far
	applications                    []Application
	updates                         []*Node
	outputs                         []namedNode
	metrics                         []namedNode
	differentiating, differentiated bool
	terms                           terms // while differentiating
	err                             error
}

// namedNode is a node whose value the program keeps under a name.
type namedNode struct {
	name string
	node *Node
}

// New returns a Builder with an empty graph that computes in dtype, Float32 or Float64.
func New(dtype tensor.DType) *Builder {
	b := &Builder{graph: gorgonia.NewGraph(), dtype: dtype, float: dtype, byName: map[string]*input{}, numbers: map[string]int{}}
	if !dtype.IsFloat() {
		b.Fail(errors.Errorf("graph: new: the type must be float32 or float64, got %v", dtype))
	}
	return b
}

// DType returns the float type in which new nodes compute, given to New or to the innermost
// Within.
func (b *Builder) DType() tensor.DType { return b.float }

// Err returns the first error, or nil.
func (b *Builder) Err() error { return b.err }

// Fail makes err the builder's error, unless it already has one: the first error is the cause,
// later ones its consequences. Layers and ops call it to report their own errors.
func (b *Builder) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Within makes new nodes compute in another float type until end is called. Samplers on full data
// use it: their graph is in Float64, but the network computes in Float32, and Cast converts its
// loss back. Parameters and metrics keep the graph's float type; layers get a Cast of a parameter.
// Tables and state have the float type of new nodes. Gradients compute in the float type of the
// node that they belong to.
func (b *Builder) Within(float tensor.DType) (end func()) {
	if !float.IsFloat() {
		b.Fail(errors.Errorf("graph: within: the type must be float32 or float64, got %v", float))
	}
	outer := b.float
	b.float = float
	return func() { b.float = outer }
}

// Cast converts n, of float32 or float64, to the float type of new nodes. It returns n itself if n
// already has that type.
func (b *Builder) Cast(n *Node) *Node {
	if b.err != nil || n == nil || DTypeOf(n) == b.float {
		return n
	}
	if !DTypeOf(n).IsFloat() {
		b.Fail(errors.Errorf("graph: cast: the node must be of float32 or float64, got %v", DTypeOf(n)))
		return nil
	}
	return b.Apply(cast{from: DTypeOf(n)}, n)
}

// Scope makes name the layer of new nodes until end is called. Labels and errors contain it.
// Typical use: defer b.Scope("conv1")().
func (b *Builder) Scope(name string) (end func()) {
	outer := b.scope
	b.scope = name
	return func() { b.scope = outer }
}

// Number returns 1 for the first layer of a kind, 2 for the next, and so on: the default names of
// layers are "conv1", "conv2".
func (b *Builder) Number(kind string) int {
	b.numbers[kind]++
	return b.numbers[kind]
}

// Stream returns a number that no other consumer of random numbers in this graph has. Together
// with seed, chain and step it is the counter of the generator, see package tensor/random. Streams
// are numbered in the order of calls, so that inserting a layer before others changes the random
// numbers of those.
func (b *Builder) Stream() uint16 {
	if b.streams+1 == random.OrderStream {
		b.Fail(errors.Errorf("graph: stream: there must be at most %d streams of random numbers", b.streams))
		return b.streams
	}
	b.streams++
	return b.streams
}

// Data makes an input that all chains share. The caller sets its values with Write. For example,
// all training images are one input of [N C H W] bytes, from which an op gathers a minibatch.
func (b *Builder) Data(name string, dtype tensor.DType, shape ...int) *Node {
	return b.input(&input{name: name, arena: tensor.Shared, dtype: dtype, shape: shape})
}

// Table makes an array that all chains share, with values that are known when the graph is built,
// such as a schedule of step sizes or the rows of a table. The values are in row-major order;
// without a shape the array is a vector. They are not copied, and must not be changed until the
// program has been loaded for the last time.
func (b *Builder) Table(name string, values []float64, shape ...int) *Node {
	if len(shape) == 0 {
		shape = tensor.Shape{len(values)}
	}
	in := &input{name: name, arena: tensor.Shared, dtype: b.float, shape: shape, values: values}
	if in.shape.Validate() == nil && in.shape.Elements() != len(values) {
		b.Fail(errors.Errorf("graph: table %q of shape %v must have %d values, got %d", name, shape, in.shape.Elements(), len(values)))
	}
	return b.input(in)
}

// TableValues returns the values of a table, which must not be changed, and nil for other nodes.
func (b *Builder) TableValues(n *Node) []float64 {
	for _, in := range b.inputs {
		if in.node == n && in.arena == tensor.Shared {
			return in.values
		}
	}
	return nil
}

// Parameter makes a trainable input with its own values in every chain. It starts as zeros if
// initialize is nil. Parameters must be made before Gradients and before the first update. Both
// leave later ones out, and Compile refuses a program that uses one of these.
func (b *Builder) Parameter(name string, initialize Initializer, shape ...int) *Node {
	if hook := b.Hooks.Parameter; hook != nil && b.err == nil {
		defer b.withoutHooks()()
		return hook(name, initialize, shape...)
	}
	return b.Cast(b.input(&input{
		name: name, arena: tensor.Chain, dtype: b.dtype, shape: shape,
		parameter: true, stream: b.Stream(), initialize: initialize,
	}))
}

// State makes an input that updates change from step to step, such as a momentum or stored
// predictions. Every chain has its own values; they start as zeros if initialize is nil. Unlike
// parameters, states are in checkpoints but not in samples.
func (b *Builder) State(name string, initialize Initializer, shape ...int) *Node {
	return b.input(&input{name: name, arena: tensor.Chain, dtype: b.float, shape: shape, initialize: initialize})
}

// The words of a chain's header: all that distinguishes one chain and step from another.
const (
	HeaderSeed  = iota // the run's seed
	HeaderChain        // the chain's number in the run
	HeaderStep         // the step's number, which the program itself increments
	headerWords
)

// headerName is the header's name among the inputs; no other input may have it.
const headerName = "header"

// Header returns the input [3] uint64 that identifies a chain and its step: seed, chain, step. Ops
// that draw random numbers, and updates with a schedule, take it as an input: no op has state of
// its own, so that a step can be repeated, and a run resumed, bit for bit.
func (b *Builder) Header() *Node {
	if b.header == nil && b.err == nil {
		b.header = b.input(&input{name: headerName, arena: tensor.Chain, dtype: tensor.Uint64, shape: tensor.Shape{headerWords}})
	}
	return b.header
}

// Apply makes the node that op computes from inputs. It checks shapes and types at once, so that
// the error names the layer, by Scope, and the op; it computes nothing.
func (b *Builder) Apply(op Op, inputs ...*Node) *Node {
	if op == nil {
		b.Fail(errors.New("graph: apply: the op is nil"))
		return nil
	}
	if !reflect.ValueOf(op).Comparable() {
		b.Fail(errors.Errorf("graph: %s: the op must be a comparable struct, without slices, maps and functions, got %T", op.Name(), op))
		return nil
	}
	if n := b.applyHook(op, inputs); n != nil || b.err != nil {
		return n
	}
	a := &application{Op: op, builder: b, scope: b.scope, float: b.float, dtype: b.float}
	for _, n := range inputs {
		if b.err != nil {
			return nil
		}
		if n == nil {
			b.Fail(errors.Errorf("graph: %s: input %d is nil", a.label(), len(a.inputs)))
			return nil
		}
		if b.graph.Node(n.ID()) != n {
			b.Fail(errors.Errorf("graph: %s: input %d is a node of another builder", a.label(), len(a.inputs)))
			return nil
		}
		a.inputs = append(a.inputs, ShapeOf(n))
		a.types = append(a.types, DTypeOf(n))
	}
	if b.err != nil {
		return nil
	}
	// The output has the builder's float, unless the op declares another type, or is a view.
	if typed, ok := op.(Typed); ok {
		a.dtype = typed.DType()
	} else if len(a.types) > 0 && isViewOf(op, a.inputs) {
		a.dtype = a.types[0]
	}
	shape, err := op.Shape(a.inputs)
	if err == nil {
		err = shape.Validate()
	}
	if err == nil {
		err = a.checkTypes()
	}
	if err != nil {
		b.Fail(errors.Wrapf(err, "graph: %s", a.label()))
		return nil
	}
	a.shape = shape
	n := b.add(a, inputs)
	if n != nil {
		b.applications = append(b.applications, Application{Scope: a.scope, Op: op, Inputs: slices.Clone(inputs), Output: n})
	}
	// Updates have no consumer: without this list extract would drop them as dead code.
	if _, ok := op.(Updater); ok && n != nil {
		b.updates = append(b.updates, n)
	}
	return n
}

// withoutHooks removes the hooks until end is called.
func (b *Builder) withoutHooks() (end func()) {
	hooks := b.Hooks
	b.Hooks = Hooks{}
	return func() { b.Hooks = hooks }
}

// applyHook returns the hook's replacement for an op's output, or nil if there is none.
func (b *Builder) applyHook(op Op, inputs []*Node) *Node {
	hook := b.Hooks.Apply
	if hook == nil || b.err != nil {
		return nil
	}
	defer b.withoutHooks()()
	return hook(op, inputs)
}

// Application is an op with the inputs that it was applied to.
type Application struct {
	Scope  string // the layer it belongs to
	Op     Op
	Inputs []*Node
	Output *Node
}

// Applications returns the ops applied so far, in order, gradients included.
func (b *Builder) Applications() []Application { return slices.Clip(b.applications) }

// add puts an application into Gorgonia's graph. Gorgonia distinguishes nodes by a hash of 32 bits,
// and returns an old node for a new one with the same hash. The serial number makes hashes of equal
// applications differ; add tries others until the node that comes back is really this application.
func (b *Builder) add(a *application, inputs []*Node) *Node {
	unlock := b.lock()
	defer unlock()
	for range 8 {
		b.serial++
		a.serial = b.serial
		n, err := gorgonia.ApplyOp(a, inputs...)
		if err != nil {
			b.Fail(errors.Wrapf(err, "graph: %s", a.label()))
			return nil
		}
		if n.Op() == gorgonia.Op(a) && slices.Equal(childrenOf(b.graph, n), inputs) {
			return n
		}
	}
	b.Fail(errors.Errorf("graph: %s: Gorgonia merges it with another node", a.label()))
	return nil
}

// lock takes gorgoniaLock. Gradients holds it already while it calls ops' Gradients, which apply
// ops; the lock is not reentrant.
func (b *Builder) lock() (unlock func()) {
	if b.differentiating {
		return func() {}
	}
	gorgoniaLock.Lock()
	return gorgoniaLock.Unlock
}

// input adds an input to the graph. Gorgonia distinguishes inputs by a hash, too, and merges two if
// their hashes are equal: that is an error here, rare enough that another name resolves it.
func (b *Builder) input(in *input) *Node {
	if b.err == nil {
		b.Fail(errors.Wrapf(in.shape.Validate(), "graph: input %q", in.name))
	}
	if _, ok := gorgoniaTypes[in.dtype]; !ok {
		b.Fail(errors.Errorf("graph: input %q: the type must be float32, float64, uint8, int32 or uint64, got %v", in.name, in.dtype))
	}
	isHeader := in.arena == tensor.Chain && in.dtype == tensor.Uint64
	switch {
	case in.name == "":
		b.Fail(errors.New("graph: input: the name must not be empty"))
	case b.taken(in.name) || in.name == headerName && !isHeader:
		b.Fail(errors.Errorf("graph: input %q: the name must be unique, and is taken: two layers need different names, or none", in.name))
	}
	if b.err != nil {
		return nil
	}
	in.late = b.differentiated || len(b.updates) > 0
	unlock := b.lock()
	defer unlock()
	options := []gorgonia.NodeConsOpt{gorgonia.WithName(in.name), gorgonia.WithShape(in.shape...)}
	if len(in.shape) == 0 {
		in.node = gorgonia.NewScalar(b.graph, gorgoniaTypes[in.dtype], gorgonia.WithName(in.name))
	} else {
		in.node = gorgonia.NewTensor(b.graph, gorgoniaTypes[in.dtype], len(in.shape), options...)
	}
	for _, other := range b.inputs {
		if other.node == in.node {
			b.Fail(errors.Errorf("graph: input %q: Gorgonia merges it with %q", in.name, other.name))
			return nil
		}
	}
	b.inputs = append(b.inputs, in)
	b.byName[in.name] = in
	return in.node
}

// taken reports whether an input or an output has the name.
func (b *Builder) taken(name string) bool {
	_, ok := b.byName[name]
	for _, other := range b.outputs {
		ok = ok || other.name == name
	}
	return ok
}

// Parameters returns the parameters made so far, in order of creation.
func (b *Builder) Parameters() []*Node {
	var nodes []*Node
	for _, in := range b.inputs {
		if in.parameter {
			nodes = append(nodes, in.node)
		}
	}
	return nodes
}

// Output makes the value that n had in the last step readable under name, see Read. An input, or a
// View of one, is read as the updates of that step have left it.
func (b *Builder) Output(name string, n *Node) {
	if in, ok := b.byName[name]; ok && in.node != n {
		b.Fail(errors.Errorf("graph: output %q: the name is an input's", name))
	}
	b.outputs = b.keep(b.outputs, "output", name, n)
}

// Record makes the sum of a node's elements a metric: its values of the last MetricRows steps are
// kept under a name, see Session.Metric. Session.Run returns a *NotFinite if a metric becomes NaN
// or infinite.
func (b *Builder) Record(name string, n *Node) {
	if n != nil && DTypeOf(n) != b.dtype {
		b.Fail(errors.Errorf("graph: record %q: the node must be of %v, got %v", name, b.dtype, DTypeOf(n)))
	}
	b.metrics = b.keep(b.metrics, "record", name, n)
}

// keep appends a node to list, which is outputs or metrics. It is an error to keep a node twice,
// because a node has only one buffer. Errors name the caller.
func (b *Builder) keep(list []namedNode, caller, name string, n *Node) []namedNode {
	if b.err == nil && n == nil {
		b.Fail(errors.Errorf("graph: %s %q: the node is nil", caller, name))
	}
	if b.err == nil && b.graph.Node(n.ID()) != n {
		b.Fail(errors.Errorf("graph: %s %q: the node must not be one of another builder", caller, name))
	}
	for _, other := range slices.Concat(b.outputs, b.metrics) {
		if other.name == name || other.node == n {
			b.Fail(errors.Errorf("graph: %s %q: the name or the node is an output or a metric already, %q", caller, name, other.name))
		}
	}
	return append(list, namedNode{name, n})
}

// childrenOf returns the inputs of a node in order. A node that is an input twice occurs twice.
func childrenOf(g *gorgonia.ExprGraph, n *Node) []*Node {
	var children []*Node
	for it := g.From(n.ID()); it.Next(); {
		children = append(children, it.Node().(*Node))
	}
	return children
}
