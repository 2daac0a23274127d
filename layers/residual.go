package layers

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// Residual is y = Body(x) + Shortcut(x), which must have equal shapes. The activation that usually
// follows is a separate layer. Source: He et al., Deep residual learning for image recognition
// (2016).
type Residual struct {
	Body     Sequential
	Shortcut Sequential // empty means the identity
}

// Apply implements Layer.
func (r Residual) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	name, leave := enter(b, "", "residual")
	defer leave()
	body, shortcut := r.Body.Apply(b, x), r.Shortcut.Apply(b, x)
	if b.Err() != nil {
		return nil
	}
	if from, to := graph.ShapeOf(shortcut), graph.ShapeOf(body); !from.Equal(to) {
		b.Fail(errors.Errorf("layers: %s: shortcut must have the body's shape %s, got %s", name, batchOf(to), batchOf(from)))
		return nil
	}
	return b.Apply(op.Add{}, body, shortcut)
}
