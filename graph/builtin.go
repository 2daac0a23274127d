package graph

import (
	"reflect"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// one is the constant 1 that differentiation starts from: d loss / d loss. It is computed only if
// it is an output; otherwise hoistConstants makes it an input.
type one struct{}

func (one) Name() string                               { return "one" }
func (one) Shape([]tensor.Shape) (tensor.Shape, error) { return tensor.Shape{}, nil }

func (one) Lower(l *Lowering) {
	fill := Pick(l, fillOne[float32], fillOne[float64])
	l.Emit("one_fwd", tensor.Threads(1), tensor.Single(fill), l.Out())
}

func fillOne[T float32 | float64](a *tensor.Args) { tensor.Slice[T](a, 0)[0] = 1 }

// oneOf returns the constant as a value for Gorgonia.
func oneOf(dtype tensor.DType) any {
	if dtype == tensor.Float64 {
		return 1.0
	}
	return float32(1)
}

// fanIn is the sum that Gorgonia's differentiation inserts where a node has several consumers: it
// adds the gradients from two of them, and a tree of fanIns the gradients from more. A SumFuser
// takes it over, which saves a pass over memory.
type fanIn struct{}

func (fanIn) Name() string                                  { return "fan in" }
func (fanIn) Shape(in []tensor.Shape) (tensor.Shape, error) { return in[0], nil }

func (fanIn) Fuse(consumer Op) (Op, bool) {
	if adder, ok := consumer.(SumFuser); ok {
		return adder.FuseSum()
	}
	return nil, false
}

func (fanIn) Lower(l *Lowering) {
	n := l.Shape.Elements()
	sum := Pick(l, addTerms[float32], addTerms[float64])
	l.Emit("fan_in_fwd", tensor.Vec4(n), tensor.RowTiles(n, 1, 1, sum), l.Out(), l.In(0), l.In(1), tensor.Int(n))
}

func addTerms[T float32 | float64](a *tensor.Args, lo, hi int) {
	sum, x, y := tensor.Slice[T](a, 0)[lo:hi], tensor.Slice[T](a, 1)[lo:hi], tensor.Slice[T](a, 2)[lo:hi]
	kernel.Add(sum, x, y)
}

// cast converts its input, of type from, to the float in which it computes. Its kernel is
// "cast_fwd", with the suffix of the output's float.
type cast struct{ from tensor.DType }

func (cast) Name() string                                  { return "cast" }
func (cast) Shape(in []tensor.Shape) (tensor.Shape, error) { return in[0], nil }
func (c cast) InputType(int) tensor.DType                  { return c.from }

func (c cast) Lower(l *Lowering) {
	n := l.Shape.Elements()
	convert := Pick(l, convertRows[float32, float64], convertRows[float64, float32])
	l.Emit("cast_fwd", tensor.Vec4(n), tensor.RowTiles(n, 1, 1, convert), l.Out(), l.In(0), tensor.Int(n))
}

func convertRows[To, From float32 | float64](a *tensor.Args, lo, hi int) {
	to := tensor.Slice[To](a, 0)[lo:hi]
	for i, v := range tensor.Slice[From](a, 1)[lo:hi] {
		to[i] = To(v)
	}
}

// Gradients casts back: the gradient of a float64 parameter is float64, even if the network
// computes in float32.
func (c cast) Gradients(b *Builder, _ []*Node, _, dout *Node) []*Node {
	defer b.Within(c.from)()
	return []*Node{b.Cast(dout)}
}

// opOf returns the Op of a node. Two of Gorgonia's own ops occur in a Builder's graph, both made by
// differentiation: the constant 1 and the sum. Any other would be lowered wrongly and is an error.
// They are recognised by their text, since Gorgonia does not export their types.
func opOf(n *Node) (Op, error) {
	switch op := n.Op().(type) {
	case *application:
		return op.Op, nil
	default:
		name, text := reflect.TypeOf(op).String(), op.String()
		switch {
		case name == "gorgonia.constantScalar" && text == "const 1":
			return one{}, nil
		case name == "gorgonia.elemBinOp" && text == "+ false":
			return fanIn{}, nil
		}
		return nil, errors.Errorf("graph: node %v: the op must be one of package graph/op, got Gorgonia's %s (%s)", n, text, name)
	}
}
