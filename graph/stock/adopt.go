package stock

import (
	"slices"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Adopt translates the part of a stock graph that outputs depend on into a builder, and returns
// the builder's nodes for outputs. places maps nodes of the stock graph, inputs or others, to
// nodes of the builder that replace them and have the same shape. Every other input becomes a
// parameter with the input's name; in every chain it starts at the input's present value.
// gorgonia.Grad need not have been called. An error becomes the builder's, and the nodes are nil.
//
// Use it to move a part of a Gorgonia program, such as its loss, into one of Pollen's graphs:
//
//	x := b.Data("x", tensor.Float32, 32, 10)
//	loss := stock.Adopt(b, map[*gorgonia.Node]*graph.Node{theirs: x}, theirLoss)[0]
func Adopt(b *graph.Builder, places map[*gorgonia.Node]*graph.Node, outputs ...*gorgonia.Node) []*graph.Node {
	made := make([]*graph.Node, len(outputs))
	if b.Err() != nil || len(outputs) == 0 {
		return made
	}
	if _, has := places[nil]; has || slices.Contains(outputs, nil) {
		b.Fail(errors.New("stock: adopt: a node to be replaced or an output is nil"))
		return made
	}
	s, err := surveyOf(outputs[0].Graph())
	if err != nil {
		b.Fail(err)
		return made
	}
	t := newTranslator(s, b, s.typeOf(outputs[0]))
	for n, place := range places {
		if place == nil || !graph.ShapeOf(place).Equal(tensor.Shape(n.Shape())) {
			b.Fail(refusal(n, "the node that replaces it has shape "+graph.ShapeOf(place).String(), "give one of shape "+tensor.Shape(n.Shape()).String()))
			return made
		}
		t.nodes[n] = place
	}
	t.input = func(n *gorgonia.Node) *graph.Node {
		start, err := initialValue(n)
		if err != nil {
			b.Fail(err)
			return nil
		}
		return b.Parameter(givenName(n), start, n.Shape()...)
	}
	// For example the running statistics of a batch norm, which nothing could update later.
	t.runtimeInput = frozen(t)
	for i, n := range outputs {
		made[i] = t.visit(n)
	}
	if b.Err() != nil {
		return make([]*graph.Node, len(outputs))
	}
	return made
}

// frozen returns a runtimeInput that makes tables of values as they are now. A Machine, in
// contrast, reads them again for each run.
func frozen(t *translator) func(string, tensor.Shape, func() []float64) *graph.Node {
	return func(_ string, shape tensor.Shape, values func() []float64) *graph.Node {
		return t.literal(shape, values()...)
	}
}

// initialValue returns the initializer that copies an input's present value. All chains start from
// the same point, unlike Pollen's own layers.
func initialValue(n *gorgonia.Node) (graph.Initializer, error) {
	if givenName(n) == "" {
		return nil, refusal(n, "it is a parameter without a name, and samples are stored by name", "make it WithName")
	}
	if n.Value() == nil {
		return nil, refusal(n, "it has no value to start from", "make it WithInit or WithValue, or give a node that replaces it")
	}
	start := floatsOf(n.Value())
	if len(start) != n.Shape().TotalSize() {
		return nil, refusal(n, "its value is not a tensor of floats of its shape", "make it float32 or float64")
	}
	return func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) { copy(values, start) }, nil
}

// Network is a stock graph from its input to its output, both [B ...], as a layer that accepts
// batches of any size: layers.Sequential{network} is a network for Pollen's methods. Give it a name
// by bayes.RegisterNetwork, so that its runs can be opened again.
type Network struct {
	survey        *survey
	input, output *gorgonia.Node
	parameters    gorgonia.Nodes
	starts        []graph.Initializer // of the parameters
}

// NewNetwork makes a network of the nodes between an input and an output, whose axis 0 is the
// batch. The parameters are sampled, in the given order and with their names; they start from their
// present values. Every input in between must be one of them. It returns an error for an op without
// a translation, and for one that makes an example's output depend on other examples of the batch.
func NewNetwork(input, output *gorgonia.Node, parameters ...*gorgonia.Node) (*Network, error) {
	if input == nil || output == nil {
		return nil, errors.New("stock: network: the input or the output is nil")
	}
	s, err := surveyOf(output.Graph())
	if err != nil {
		return nil, err
	}
	network := &Network{survey: s, input: input, output: output, parameters: parameters}
	for _, p := range parameters {
		if p == nil || p.Op() != nil || p == input {
			return nil, errors.Errorf("stock: network: parameter %v must be an input other than the network's", p)
		}
		start, err := initialValue(p)
		if err != nil {
			return nil, err
		}
		network.starts = append(network.starts, start)
	}
	// [B] without another axis has no logits, and no features.
	in, out := input.Shape(), output.Shape()
	if len(in) < 2 || len(out) < 2 || in[0] != out[0] {
		return nil, errors.Errorf("stock: network: input and output must have shapes [B ...] with the same batch, got %v and %v", in, out)
	}
	// A parameter without influence would only be sampled from its prior, most likely by mistake.
	reached := map[*gorgonia.Node]bool{}
	s.reach(reached, output)
	for _, n := range append(append(gorgonia.Nodes{}, parameters...), input) {
		if !reached[n] {
			return nil, refusal(n, "the output does not depend on it", "leave it out")
		}
	}
	// Translate it now, for three batch sizes, so that every error is reported before a run begins,
	// including single batch sizes.
	for _, batch := range []int{in[0], 1, in[0] + 1} {
		b := graph.New(tensor.Float32)
		shape := append(tensor.Shape{batch}, in[1:]...)
		network.Apply(b, b.Data("batch", tensor.Float32, shape...))
		if err := b.Err(); err != nil {
			return nil, err
		}
	}
	return network, nil
}

// Apply implements layers.Layer. An example of x [B ...] and one of the stock graph's input must
// have the same number of elements. The graph was made for a fixed B; its shapes are translated to
// x's, see translator.shape. Dropout is active in graphs for training only.
func (n *Network) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	shape, want := graph.ShapeOf(x), tensor.Shape(n.input.Shape())
	if b.Err() != nil || x == nil {
		return nil
	}
	if len(shape) < 1 || shape.Elements()/shape[0] != want.Elements()/want[0] {
		b.Fail(errors.Errorf("stock: network: examples must have the elements of shape %v, got an input of shape %v", want[1:], shape))
		return nil
	}
	t := newTranslator(n.survey, b, n.output.Dtype())
	// The translation depends on the mode and on the batch, so that each Apply makes its own.
	t.evaluating = b.Mode == graph.Prediction
	t.graphBatch, t.batch = want[0], shape[0]
	t.batched[n.input] = true
	t.nodes[n.input] = t.view(x, append(tensor.Shape{shape[0]}, want[1:]...))
	for i, p := range n.parameters {
		t.nodes[p] = b.Parameter(givenName(p), n.starts[i], p.Shape()...)
	}
	t.input = func(other *gorgonia.Node) *graph.Node {
		b.Fail(refusal(other, "it is neither the network's input nor one of its parameters", "name it as a parameter, or make it a constant"))
		return nil
	}
	t.runtimeInput = frozen(t)
	return t.visit(n.output)
}

// Let sets the value of a parameter in the stock graph to a sample's, so that existing programs for
// that graph predict with the sample. It copies values.
func (n *Network) Let(name string, values []float32) error {
	for _, p := range n.parameters {
		if givenName(p) != name {
			continue
		}
		if len(values) != p.Shape().TotalSize() {
			return errors.Errorf("stock: %s: the values must have shape %v, got %d", labelOf(p), p.Shape(), len(values))
		}
		raw := rawValues{f32: append([]float32(nil), values...)}
		if gorgoniaType(tensor.Float64) == p.Dtype() {
			raw = rawValues{f64: make([]float64, len(values))}
			for i, v := range values {
				raw.f64[i] = float64(v)
			}
		}
		return errors.Wrap(gorgonia.Let(p, valueOf(p, raw)), "stock")
	}
	return errors.Errorf("stock: the network has no parameter %q", name)
}
