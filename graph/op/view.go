package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op/internal/strided"
	"github.com/pollen-ml/pollen/tensor"
)

// maxAxes is the maximum number of axes of a View: ops are comparable, so that the shape is an
// array.
const maxAxes = strided.MaxAxes

// View is x with another shape of equally many elements: x [...] -> y of the shape Axes, where
// unused Axes are 0. It shares the memory of x and costs nothing.
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

// Flatten returns the View of x [B ...] as [B elements].
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
func (View) View([]tensor.Shape) bool { return true }

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
		return nil, errors.Errorf("shape must have the %d elements of the input's %v and at most %d axes, got %v with %d",
			in[0].Elements(), in[0], maxAxes, shape, shape.Elements())
	}
	return v.shape(), nil
}

// Lower implements graph.Op: a view needs no launch.
func (View) Lower(*graph.Lowering) {}

// Gradients implements graph.Differentiable.
func (View) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(ViewAs(graph.ShapeOf(in[0])...), dout)}
}
