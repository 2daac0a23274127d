package graph

import "github.com/pollen-ml/pollen/tensor"

// value is a node of the compiler's intermediate representation, which no longer refers to
// Gorgonia's graph: passes may rewrite it. It is either an input (source) or the output of an op.
type value struct {
	id     int64 // order of creation
	label  string
	op     Op // nil for an input
	source *input
	inputs []*value
	shape  tensor.Shape
	float  tensor.DType // the float in which op computes
	dtype  tensor.DType // of the elements
	buffer *tensor.Buffer
	parts  []*value // further values that op writes, see Combination
	users  []*value // the values whose ops read this one, each once, see findUsers

	updatedBy *value // the update that changes this value, an input, in place; nil if there is none
}

// lower returns the launches of one value, in the float in which the op was applied. Its inputs and
// its output must have buffers.
func lower(v *value) *Lowering {
	l := &Lowering{DType: v.float, Shape: v.shape, label: v.label, output: v.buffer}
	for _, in := range v.inputs {
		l.Shapes = append(l.Shapes, in.shape)
		l.inputs = append(l.inputs, in.buffer)
		all := in.throughViews()
		root := all[len(all)-1]
		l.fixed = append(l.fixed, root.source != nil && root.updatedBy == nil)
	}
	for _, p := range v.parts {
		l.parts = append(l.parts, p.buffer)
	}
	v.op.Lower(l)
	return l
}

// isView reports whether v only changes the shape of its input. Views have neither launch nor
// memory.
func isView(v *value) bool {
	shapes := make([]tensor.Shape, len(v.inputs))
	for i, in := range v.inputs {
		shapes[i] = in.shape
	}
	return isViewOf(v.op, shapes)
}
