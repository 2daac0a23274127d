package layers

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Check returns an error unless the network maps inputs of the given shape, [C H W] for images, to
// logits [B classes]. The error names the layer whose input does not fit, or the last layer.
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
		if len(got) == 2 {
			last += "; in a file, its outputs can be the word classes"
		}
		return errors.Errorf("layers: network on inputs %v: output must have shape %s, got %s; %s", input, batchOf(want), batchOf(got), last)
	}
	return nil
}

// applied applies a network to a batch of one example.
func applied(network Layer, input tensor.Shape) (*graph.Builder, *graph.Node, error) {
	b := graph.New(tensor.Float32)
	if network == nil {
		return b, nil, errors.New("layers: the network must not be nil")
	}
	y := network.Apply(b, b.Data("input", tensor.Float32, append([]int{1}, input...)...))
	return b, y, errors.WithMessagef(b.Err(), "layers: network on inputs %v", input)
}

// scopeOf returns the name of an op's layer, or of the op if it belongs to no layer.
func scopeOf(a graph.Application) string {
	if a.Scope == "" {
		return a.Op.Name()
	}
	return a.Scope
}
