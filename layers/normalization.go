package layers

import (
	"cmp"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// FilterResponseNorm divides each channel of each image by its root mean square, scales and shifts
// it, and takes the maximum with a learned threshold, see op.FilterResponseNorm and op.Threshold: x
// [B C H W], weight [C], which starts at 1, bias [C] and threshold [C], which start at 0 -> y [B C
// H W]. Unlike batch normalisation it does not depend on other images, as a likelihood of
// independent examples requires. Source: Singh and Krishnan, Filter response normalization layer
// (2020).
type FilterResponseNorm struct {
	Name        string  // by default "frn" and a number
	Epsilon     float64 // 0 means 1e-6
	NoThreshold bool
}

// Apply implements Layer.
func (f FilterResponseNorm) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	name, leave := enter(b, f.Name, "frn")
	defer leave()
	if !checkLimits(b, name, f) {
		return nil
	}
	y := normalize(b, name, op.FilterResponseNorm{Epsilon: cmp.Or(f.Epsilon, 1e-6)}, x)
	if y == nil || f.NoThreshold {
		return y
	}
	return b.Apply(op.Threshold{}, y, b.Parameter(name+".threshold", nil, graph.ShapeOf(y)[1]))
}

func (f FilterResponseNorm) limits() []limit { return []limit{atLeastIfSet("Epsilon", f.Epsilon, 0)} }

// GroupNorm standardises each group of channels of each image, then scales and shifts each channel,
// see op.GroupNorm: x [B C H W], weight [C], which starts at 1, bias [C], which starts at 0 -> y [B
// C H W]. One group is layer normalisation, C groups are instance normalisation. Source: Wu and He,
// Group normalization (2018).
type GroupNorm struct {
	Name    string  // by default "groupnorm" and a number
	Groups  int     // must divide C
	Epsilon float64 // 0 means 1e-5
}

// Apply implements Layer.
func (g GroupNorm) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	name, leave := enter(b, g.Name, "groupnorm")
	defer leave()
	if !checkLimits(b, name, g) {
		return nil
	}
	return normalize(b, name, op.GroupNorm{Groups: g.Groups, Epsilon: cmp.Or(g.Epsilon, 1e-5)}, x)
}

func (g GroupNorm) limits() []limit {
	return []limit{atLeast("Groups", g.Groups, 1), atLeastIfSet("Epsilon", g.Epsilon, 0)}
}

// normalize applies a normalisation with a scale and a shift of each channel.
func normalize(b *graph.Builder, name string, o graph.Op, x *graph.Node) *graph.Node {
	if !checkAxes(b, name, x, 4, "[B C H W]") {
		return nil
	}
	channels := graph.ShapeOf(x)[1]
	return b.Apply(o, x, b.Parameter(name+".weight", Constant{1}.Fill, channels), b.Parameter(name+".bias", nil, channels))
}
