package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op/internal/strided"
	"github.com/pollen-ml/pollen/tensor"
)

// maxAxes is the most axes a View can have: attributes are comparable, so that the shape is an
// array.
const maxAxes = strided.MaxAxes

// View gives its input another shape with as many elements; it costs nothing. Axes beyond the
// shape's are 0.
type View struct {
	Axes [maxAxes]int
}

// ViewAs returns the View with the given shape.
func ViewAs(shape ...int) View {
	var v View
	copy(v.Axes[:], shape)
	if len(shape) > maxAxes {
		v.Axes[0] = -1 // refused by Shape
	}
	return v
}

// Flatten is the View of x [B ...] as [B elements].
func Flatten(x *graph.Node) View {
	shape := graph.ShapeOf(x)
	if len(shape) == 0 {
		return View{}
	}
	return ViewAs(shape[0], shape.Elements()/shape[0])
}

// Name implements graph.Op.
func (View) Name() string { return "view" }

// View implements graph.Viewer.
func (View) View() {}

func (v View) shape() tensor.Shape {
	var shape tensor.Shape
	for _, extent := range v.Axes {
		if extent != 0 {
			shape = append(shape, extent)
		}
	}
	return shape
}

// Shape implements graph.Op.
func (v View) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if err := checkRanks(in, -1); err != nil {
		return nil, err
	}
	if shape := v.shape(); shape.Elements() != in[0].Elements() {
		return nil, errors.Errorf("input has shape %v, %d elements, as %v it would have %d (at most %d axes)",
			in[0], in[0].Elements(), shape, shape.Elements(), maxAxes)
	}
	return v.shape(), nil
}

// Lower implements graph.Op: a view needs no launch.
func (View) Lower(*graph.Lowering) {}

// Gradients implements graph.Differentiable.
func (View) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(ViewAs(graph.ShapeOf(in[0])...), dout)}
}
