package layers

import (
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Layer maps a node [B ...] to a node [B ...] and creates its parameters.
type Layer interface {
	// Apply adds the layer to a graph. An error becomes the builder's, and the result is nil.
	Apply(b *graph.Builder, x *graph.Node) *graph.Node
}

// Sequential applies layers one after the other. An empty one is the identity.
type Sequential []Layer

// Apply implements Layer.
func (s Sequential) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	for i, layer := range s {
		if layer == nil {
			b.Fail(errors.Errorf("layers: layer %d of %d is nil", i, len(s)))
			return nil
		}
		x = layer.Apply(b, x)
	}
	return x
}

// enter returns the layer's name, or its default one, and makes it the scope of new nodes until
// leave is called.
func enter(b *graph.Builder, name, kind string) (named string, leave func()) {
	if name == "" {
		name = kind + strconv.Itoa(b.Number(kind))
	}
	return name, b.Scope(name)
}

// apply adds a layer that is one op, without parameters and with a default name.
func apply(b *graph.Builder, kind string, o graph.Op, x *graph.Node) *graph.Node {
	_, leave := enter(b, "", kind)
	defer leave()
	return b.Apply(o, x)
}

// checkAxes fails the builder unless the input has the given number of axes.
func checkAxes(b *graph.Builder, name string, x *graph.Node, axes int, letters string) bool {
	if shape := graph.ShapeOf(x); b.Err() == nil && len(shape) != axes {
		b.Fail(errors.Errorf("layers: %s: input must have shape %s, got %s", name, letters, batchOf(shape)))
	}
	return b.Err() == nil
}

// batchOf returns a shape as text with B instead of the batch size: "[B 3 32 32]".
func batchOf(shape tensor.Shape) string {
	text := shape.String()
	if at := strings.IndexAny(text, " ]"); len(shape) > 0 {
		return "[B" + text[at:]
	}
	return text
}

// addWeight adds the parameter "<name>.weight".
func addWeight(b *graph.Builder, name string, weight Initializer, shape ...int) *graph.Node {
	if weight == nil {
		weight = He{}
	}
	return b.Parameter(name+".weight", weight.Fill, shape...)
}

// addBias adds the parameter "<name>.bias" over axis 1 of x.
func addBias(b *graph.Builder, name string, bias Initializer, x *graph.Node) *graph.Node {
	if x == nil {
		return nil
	}
	if bias == nil {
		bias = Constant{}
	}
	return b.Apply(op.BiasAdd{}, x, b.Parameter(name+".bias", bias.Fill, graph.ShapeOf(x)[1]))
}
