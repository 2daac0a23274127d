package layers

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
)

// window is a square that slides over an image: the kernel of a convolution, or a pooling window.
type window struct{ size, dilation, padding int }

// checkFits fails the builder if the dilated window does not fit into the padded image.
func checkFits(b *graph.Builder, name string, x *graph.Node, w window) bool {
	if b.Err() != nil {
		return false
	}
	shape := graph.ShapeOf(x)
	// Divide, do not multiply: attributes may be as large as an int.
	if side := min(shape[2], shape[3]) - 1; w.size > 1 && (side+2*w.padding)/(w.size-1) < w.dilation {
		b.Fail(errors.Errorf("layers: %s: input has shape %s, too small for a window of %d x %d with dilation %d and padding %d",
			name, batchOf(shape), w.size, w.size, w.dilation, w.padding))
	}
	return b.Err() == nil
}
