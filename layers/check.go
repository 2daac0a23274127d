package layers

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Check reports what keeps a network from mapping inputs of that shape, [C H W] for images, to a
// logit for each class: a layer that its input does not fit, named with that shape, or an output
// other than [B classes].
func Check(network Layer, input tensor.Shape, classes int) error {
	b, y, err := applied(network, input)
	if err != nil {
		return err
	}
	want := tensor.Shape{1, classes}
	if got := graph.ShapeOf(y); !got.Equal(want) {
		last := "the network has no layers"
		if all := b.Applications(); len(all) > 0 {
			last = "the last layer is " + scopeOf(all[len(all)-1])
		}
		return errors.Errorf("layers: network on inputs %v: output has shape %s, wants %s; %s", input, batchOf(got), batchOf(want), last)
	}
	return nil
}

// applied applies a network to one example.
func applied(network Layer, input tensor.Shape) (*graph.Builder, *graph.Node, error) {
	b := graph.New(tensor.Float32)
	y := network.Apply(b, b.Data("input", tensor.Float32, append([]int{1}, input...)...))
	return b, y, errors.WithMessagef(b.Err(), "layers: network on inputs %v", input)
}

// scopeOf is the name of an op's layer, or of the op itself if it belongs to no layer.
func scopeOf(a graph.Application) string {
	if a.Scope == "" {
		return a.Op.Name()
	}
	return a.Scope
}
