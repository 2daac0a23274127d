package onnx

import (
	"slices"

	"github.com/pollen-ml/pollen/graph"
)

// value is the value of a name in the model: a node of the builder, or an array that is known
// while the graph is built. A weight becomes a node when an op first needs it as one.
type value struct {
	node  *graph.Node
	array *ndarray
	// margin, if not nil, surrounds the images of node with zeros. A convolution takes it over as
	// its padding; before any other reader, padding is applied.
	margin *margin
	// conv is the convolution that made the node, into which a batch normalisation may be folded.
	// The node is nil if that is all that reads the value.
	conv *convolution
}

func (v value) shape() []int {
	if v.array != nil {
		return v.array.shape
	}
	shape := slices.Clone(graph.ShapeOf(v.node))
	if v.margin != nil {
		for i := range 2 {
			shape[2+i] += v.margin.before[i] + v.margin.after[i]
		}
	}
	return shape
}

// margin is rows and columns of zeros around images, for each axis.
type margin struct{ before, after [2]int }

// convolution describes a convolution of images with two axes.
type convolution struct {
	x            *graph.Node
	window       *window // whose padding includes a margin
	groups       int
	filter, bias string // names of values; no bias is ""
}

// window has the attributes that convolutions and pooling share, an entry per spatial axis.
type window struct {
	kernel, stride, dilation []int
	before, after            []int // padding
}

// reach returns how many elements of an axis a window spans.
func (w *window) reach(axis int) int { return (w.kernel[axis]-1)*w.dilation[axis] + 1 }

// padded reports whether there is any padding.
func (w *window) padded() bool { return slices.Max(w.before) > 0 || slices.Max(w.after) > 0 }

// flat inserts an axis of extent 1 into one-dimensional windows.
func (w *window) flat() *window {
	insert := func(v []int, first int) []int { return append([]int{first}, v...) }
	return &window{insert(w.kernel, 1), insert(w.stride, 1), insert(w.dilation, 1), insert(w.before, 0), insert(w.after, 0)}
}
