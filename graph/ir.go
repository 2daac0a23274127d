package graph

import (
	"slices"
	"sort"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"github.com/pollen-ml/pollen/tensor"
)

// module is a graph under compilation. Its values are in the order in which they will be computed;
// every pass keeps each of them after its inputs.
type module struct {
	values  []*value
	outputs []namedValue
	metrics []namedValue
	updates []*value
	header  *value
}

// namedValue is an output or a metric: a value that outlives the step.
type namedValue struct {
	name  string
	value *value
}

// kept returns the outputs and the metrics.
func (m *module) kept() []namedValue { return slices.Concat(m.outputs, m.metrics) }

// extraction is the state of extract; err is its first error.
type extraction struct {
	graph  *gorgonia.ExprGraph
	inputs map[*Node]*input
	seen   map[*Node]*value
	values []*value // in an order in which each comes after its inputs
	err    error
}

// visit returns the value of a node, after it has visited the node's inputs. Nodes that are never
// visited do not enter the module: that is how dead code is dropped.
func (x *extraction) visit(n *Node) *value {
	if v, ok := x.seen[n]; ok {
		return v
	}
	v := &value{id: n.ID(), shape: ShapeOf(n), dtype: DTypeOf(n)}
	if in, ok := x.inputs[n]; ok {
		v.source, v.label = in, in.name
	} else if n.Op() == nil {
		x.fail(errors.Errorf("graph: node %v is an input that the Builder has not made", n))
	} else if op, err := opOf(n); err != nil {
		x.fail(err)
	} else {
		v.op, v.label, v.float = op, op.Name(), v.dtype
		if a, ok := n.Op().(*application); ok {
			v.label, v.float = a.label(), a.float
		}
		for _, child := range childrenOf(x.graph, n) {
			v.inputs = append(v.inputs, x.visit(child))
		}
	}
	x.seen[n] = v
	x.values = append(x.values, v)
	return v
}

func (x *extraction) fail(err error) {
	if x.err == nil {
		x.err = err
	}
}

// keep visits outputs or metrics, the roots of the traversal.
func (x *extraction) keep(list []namedNode) (all []namedValue) {
	for _, o := range list {
		all = append(all, namedValue{o.name, x.visit(o.node)})
	}
	return all
}

// extract copies every node that an output, a metric or an update depends on into a module, in the
// order of segment and before. Everything else is dead code, such as gradients that no update uses.
func extract(b *Builder) (*module, error) {
	x := extraction{graph: b.graph, inputs: map[*Node]*input{}, seen: map[*Node]*value{}}
	for _, in := range b.inputs {
		x.inputs[in.node] = in
	}
	m := &module{outputs: x.keep(b.outputs), metrics: x.keep(b.metrics)}
	for _, n := range b.updates {
		m.updates = append(m.updates, x.visit(n))
	}
	if b.header != nil {
		m.header = x.visit(b.header)
	}
	if x.err != nil {
		return nil, x.err
	}
	m.values = x.values
	if len(m.outputs)+len(m.metrics)+len(m.updates) == 0 {
		return nil, errors.New("graph: compile: the graph must have an output, a metric or an update, got none")
	}
	sort.SliceStable(m.values, func(i, j int) bool {
		v, w := m.values[i], m.values[j]
		if part, other := v.segment(b.float), w.segment(b.float); part != other {
			return part < other
		}
		return v.before(w)
	})
	m.hoistConstants()
	return m, nil
}

// segment returns a sort key that keeps a network together if it computes in another float than its
// program (see Builder.Within): 0 for the program's inputs, 1 for their casts to the network's
// float, 2 for the network, 3 for everything else. The network's launches are then consecutive, so
// that the host can fuse them over row tiles, a few images at a time.
func (v *value) segment(float tensor.DType) int {
	converted := true
	for _, in := range v.inputs {
		converted = converted && in.source != nil && in.dtype == float
	}
	switch {
	case v.source != nil:
		return 0
	case v.float == float:
		return 3
	case converted:
		return 1
	default:
		return 2
	}
}

// before reports whether v is scheduled before w: in order of creation, except that an Early op
// comes right after the last of its inputs. Ids grow with every node, so that the order of creation
// is a topological order, and one that keeps a layer's ops together.
func (v *value) before(w *value) bool {
	place := func(v *value) (id int64) {
		if _, is := v.op.(Early); !is {
			return v.id
		}
		for _, in := range v.inputs {
			id = max(id, in.id)
		}
		return id
	}
	if at, other := place(v), place(w); at != other {
		return at < other
	}
	return v.id < w.id
}

// hoistConstants turns constants into inputs, so that no step computes them, except those that are
// outputs or metrics.
func (m *module) hoistConstants() {
	keep := map[*value]bool{}
	for _, k := range m.kept() {
		for _, v := range k.value.throughViews() {
			keep[v] = true
		}
	}
	for _, v := range m.values {
		if _, is := v.op.(one); is && !keep[v] {
			v.op, v.label = nil, "constant 1"
			v.source = &input{name: v.label, arena: tensor.Shared, dtype: v.dtype, shape: v.shape, values: []float64{1}}
		}
	}
}

// consumers counts, for each value, the values that read it. An output or metric counts as one
// more, so a kept value is never fused away. An input that occurs twice in one op counts twice, so
// it is not fused into it.
func (m *module) consumers() map[*value]int {
	count := map[*value]int{}
	for _, v := range m.values {
		for _, in := range v.inputs {
			count[in]++
		}
	}
	for _, k := range m.kept() {
		count[k.value]++
	}
	return count
}

// skipViews makes ops skip views that lead back to the same shape, and read the value before them.
// A product of matrices, for example, can then be fused with a bias across views.
func (m *module) skipViews() {
	for _, v := range m.values {
		for i, in := range v.inputs {
			for _, below := range in.throughViews()[1:] {
				if below.shape.Equal(in.shape) {
					v.inputs[i] = below
				}
			}
		}
	}
	m.dropUnread()
}

// fuse merges producers with their only consumers, see Fuser. It goes through the values in order,
// so that fusions chain: convolution + bias, then + ReLU. For example, conv2d, bias and ReLU become
// one launch, which writes the activations once instead of three times.
func (m *module) fuse() {
	count := m.consumers()
	dead := map[*value]bool{}
	for _, v := range m.values {
		if v.op == nil || len(v.inputs) == 0 {
			continue
		}
		producer := v.inputs[0]
		// Only a producer without another consumer may disappear, and only the first input of an op
		// of the same shape can be fused.
		fuser, ok := producer.op.(Fuser)
		if !ok || count[producer] != 1 || !producer.shape.Equal(v.shape) {
			continue
		}
		fused, ok := fuser.Fuse(v.op)
		inputs := slices.Concat(producer.inputs, v.inputs[1:])
		if !ok || !fits(fused, inputs) {
			continue
		}
		// The fused op has the consumer's place in the order, where all its inputs exist.
		v.op, v.inputs = fused, inputs
		v.label = producer.label + " + " + nameAfterScope(v.label)
		dead[producer] = true
	}
	m.values = slices.DeleteFunc(m.values, func(v *value) bool { return dead[v] })
}

// fits reports whether a fused op that is Selective or a RedundantInput accepts the inputs. The
// last two inputs of a RedundantInput must be the same value, or the second to last must be
// computed from the last by an Early op.
func fits(fused Op, inputs []*value) bool {
	if s, is := fused.(Selective); is {
		var shapes []tensor.Shape
		for _, in := range inputs {
			shapes = append(shapes, in.shape)
		}
		return s.Accepts(shapes)
	}
	if _, is := fused.(RedundantInput); !is {
		return true
	}
	last, other := inputs[len(inputs)-1], inputs[len(inputs)-2]
	if _, is := other.op.(Early); is {
		other = other.inputs[0]
	}
	return other == last
}

// nameAfterScope returns "relu" for the label "layer1: relu".
func nameAfterScope(label string) string {
	for i := len(label) - 2; i > 0; i-- {
		if label[i] == ':' {
			return label[i+2:]
		}
	}
	return label
}

// findUpdates sets updatedBy of the parameters and states that updates change.
func (m *module) findUpdates() error {
	for _, update := range m.updates {
		for _, i := range update.op.(Updater).Updates() {
			target := update.inputs[i]
			if target.source == nil || target.source.arena != tensor.Chain {
				return errors.Errorf("graph: %s: an updated input must be a parameter or state, got %s", update.label, target.label)
			}
			if other := target.updatedBy; other != nil {
				return errors.Errorf("graph: %s: only one op may update %s, and %s does already", update.label, target.label, other.label)
			}
			target.updatedBy = update
		}
	}
	return nil
}

// order sorts the values topologically: each comes after its inputs, and each update after all
// other readers of the parameter or state that it changes, so that all reads of a step see the
// values it began with. Otherwise the order of the values is kept. Two updates that read what the
// other changes are a cycle, and an error.
func (m *module) order() error {
	if err := m.findUpdates(); err != nil {
		return err
	}
	before := map[*value][]*value{}
	for _, v := range m.values {
		before[v] = append(before[v], v.inputs...)
	}
	for _, reader := range m.values {
		for _, in := range reader.reads() {
			if update := in.updatedBy; update != nil && update != reader {
				before[update] = append(before[update], reader)
			}
		}
	}
	// A depth-first topological sort; meeting an open value again is a cycle.
	const open, done = 1, 2
	state := map[*value]int{}
	sorted := make([]*value, 0, len(m.values))
	var visit func(v *value) error
	visit = func(v *value) error {
		switch state[v] {
		case done:
			return nil
		case open:
			return errors.Errorf("graph: %s: the update depends on itself: two updates read what the other changes", v.label)
		}
		state[v] = open
		for _, other := range before[v] {
			if err := visit(other); err != nil {
				return err
			}
		}
		state[v] = done
		sorted = append(sorted, v)
		return nil
	}
	for _, v := range m.values {
		if err := visit(v); err != nil {
			return err
		}
	}
	m.values = sorted
	return nil
}

// reads returns the inputs whose memory v reads, seen through views: a consumer of a view of a
// parameter reads the parameter.
func (v *value) reads() (all []*value) {
	for _, in := range v.inputs {
		all = append(all, in.throughViews()...)
	}
	return all
}

// throughViews returns v and, if v is a view, its input, and so on: the values that share v's
// memory.
func (v *value) throughViews() []*value {
	all := []*value{v}
	for isView(v) {
		v = v.inputs[0]
		all = append(all, v)
	}
	return all
}
