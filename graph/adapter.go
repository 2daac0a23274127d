package graph

import (
	"cmp"
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/chewxy/hm"
	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/tensor"
)

// application is an Op applied to nodes, as a gorgonia.Op: it is the only op that a Builder puts
// into Gorgonia's graph. Gorgonia merges nodes of equal hash: the serial number in the hash
// prevents it from merging two applications, such as two dropouts.
type application struct {
	Op
	builder *Builder
	serial  uint64
	scope   string // the layer it belongs to
	inputs  []tensor.Shape
	types   []tensor.DType
	float   tensor.DType // the float type in which it computes
	shape   tensor.Shape
	dtype   tensor.DType
}

var _ gorgonia.SDOp = (*application)(nil)

// checkTypes returns an error if an input has the wrong type. Inputs of a Mixed op must have its
// InputType. Inputs of other ops must have the float type in which the op computes, or be the
// uint64 header.
func (a *application) checkTypes() error {
	mixed, isMixed := a.Op.(Mixed)
	isView := isViewOf(a.Op, a.inputs)
	for i, got := range a.types {
		want := a.float
		if isMixed {
			want = cmp.Or(mixed.InputType(i), a.float)
		}
		if got != want && (isMixed || got != tensor.Uint64 && !isView) {
			return errors.Errorf("input %d must be of %v, got %v", i, want, got)
		}
	}
	return nil
}

// Arity implements gorgonia.Op.
func (a *application) Arity() int { return len(a.inputs) }

// Type implements gorgonia.Op. Gorgonia gives the returned type back to a pool, so each call makes
// a fresh one.
func (a *application) Type() hm.Type {
	types := make([]hm.Type, 0, len(a.inputs)+1)
	for i := range a.inputs {
		types = append(types, nodeType(a.types[i], a.inputs[i]))
	}
	return hm.NewFnType(append(types, nodeType(a.dtype, a.shape))...)
}

func nodeType(dtype tensor.DType, shape tensor.Shape) hm.Type {
	if len(shape) == 0 {
		return gorgoniaTypes[dtype]
	}
	return gorgonia.TensorType{Dims: len(shape), Of: gorgoniaTypes[dtype]}
}

// InferShape implements gorgonia.Op.
func (a *application) InferShape(...gorgonia.DimSizer) (dense.Shape, error) {
	return dense.Shape(a.shape), nil
}

// ReturnsPtr implements gorgonia.Op.
func (a *application) ReturnsPtr() bool { return false }

// CallsExtern implements gorgonia.Op.
func (a *application) CallsExtern() bool { return false }

// OverwritesInput implements gorgonia.Op: outputs are always fresh memory.
func (a *application) OverwritesInput() int { return -1 }

// WriteHash implements gorgonia.Op.
func (a *application) WriteHash(h hash.Hash) { fmt.Fprintf(h, "pollen %T%+v %d", a.Op, a.Op, a.serial) }

// Hashcode implements gorgonia.Op.
func (a *application) Hashcode() uint32 {
	h := fnv.New32a()
	a.WriteHash(h)
	return h.Sum32()
}

// String returns the op's name.
func (a *application) String() string { return a.Name() }

// DiffWRT implements gorgonia.SDOp. A Differentiable op can be differentiated by all its float
// inputs, other ops by none.
func (a *application) DiffWRT(int) []bool {
	wrt := make([]bool, len(a.inputs))
	if _, ok := a.Op.(Differentiable); ok {
		for i, dtype := range a.types {
			wrt[i] = dtype.IsFloat()
		}
	}
	return wrt
}

// SymDiff implements gorgonia.SDOp: Gorgonia calls it, during Gradients, with grad, the sum of the
// gradients from all consumers of output. The gradients' nodes get the scope and the float of the
// op that they belong to. SymDiff checks what Gorgonia does not: that grad is really the sum of all
// terms, and that each gradient has its input's shape. This check is the only protection against a
// wrong gradient, see terms.
func (a *application) SymDiff(inputs gorgonia.Nodes, output, grad *Node) (gorgonia.Nodes, error) {
	op, ok := a.Op.(Differentiable)
	if !ok { // its own gradient is requested; Gorgonia visits its inputs all the same
		return make(gorgonia.Nodes, len(inputs)), nil
	}
	defer a.builder.Scope(a.scope)()
	defer a.builder.Within(a.float)()
	if !a.builder.terms.sumTo(a.builder.graph, output, grad) {
		return nil, errors.Errorf("graph: %s: the gradient by its output is not the sum of its terms: Gorgonia merges a sum with another", a.label())
	}
	gradients := op.Gradients(a.builder, inputs, output, grad)
	if a.builder.err != nil {
		return nil, a.builder.err
	}
	if len(gradients) != len(inputs) {
		return nil, errors.Errorf("graph: %s: Gradients must return %d gradients, one for each input, got %d", a.label(), len(inputs), len(gradients))
	}
	for i, gradient := range gradients {
		if !a.types[i].IsFloat() {
			continue
		}
		if gradient == nil || !ShapeOf(gradient).Equal(a.inputs[i]) {
			return nil, errors.Errorf("graph: %s: gradient %d must have the input's shape %v, got %v",
				a.label(), i, a.inputs[i], ShapeOf(gradient))
		}
		a.builder.terms.add(inputs[i], gradient)
	}
	return gradients, nil
}

func (a *application) label() string {
	if a.scope == "" {
		return a.Name()
	}
	return a.scope + ": " + a.Name()
}
