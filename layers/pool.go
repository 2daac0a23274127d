package layers

import (
	"cmp"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// MaxPool is the maximum of each square window, see op.MaxPool2D: x [B C H W] -> y [B C P Q].
type MaxPool struct {
	Window  int
	Stride  int // 0 means Window
	Padding int // on each side; never the maximum
}

// Apply implements Layer.
func (p MaxPool) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	o := op.MaxPool2D{
		Window: op.Square(p.Window), Stride: op.Square(cmp.Or(p.Stride, p.Window)), Padding: op.Square(p.Padding),
	}
	return pool(b, "maxpool", p, window{p.Window, 1, p.Padding}, o, x)
}

func (p MaxPool) limits() []limit { return poolLimits(p.Window, p.Stride, p.Padding) }

// AveragePool is the mean of each square window, see op.AveragePool2D: x [B C H W] -> y [B C P Q].
type AveragePool struct {
	Window  int
	Stride  int // 0 means Window
	Padding int // on each side; not counted
}

// Apply implements Layer.
func (p AveragePool) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	o := op.AveragePool2D{
		Window: op.Square(p.Window), Stride: op.Square(cmp.Or(p.Stride, p.Window)), Padding: op.Square(p.Padding),
	}
	return pool(b, "averagepool", p, window{p.Window, 1, p.Padding}, o, x)
}

func (p AveragePool) limits() []limit { return poolLimits(p.Window, p.Stride, p.Padding) }

// pool applies a pooling of the given kind.
func pool(b *graph.Builder, kind string, layer limited, sliding window, o graph.Op, x *graph.Node) *graph.Node {
	name, leave := enter(b, "", kind)
	defer leave()
	if !checkAxes(b, name, x, 4, "[B C H W]") || !checkLimits(b, name, layer) || !checkFits(b, name, x, sliding) {
		return nil
	}
	return b.Apply(o, x)
}

// poolLimits returns limits that make every window contain part of the image.
func poolLimits(window, stride, padding int) []limit {
	return []limit{
		atLeast("Window", window, 1), atLeastIfSet("Stride", stride, 1),
		{attribute: "Padding", value: float64(padding), below: float64(window)},
	}
}

// GlobalAveragePool is the mean of each channel: x [B C H W] -> y [B C].
type GlobalAveragePool struct{}

// Apply implements Layer.
func (GlobalAveragePool) Apply(b *graph.Builder, x *graph.Node) *graph.Node {
	name, leave := enter(b, "", "globalaveragepool")
	defer leave()
	if !checkAxes(b, name, x, 4, "[B C H W]") {
		return nil
	}
	return b.Apply(op.Mean{Axes: op.AxesOf(2, 3)}, x)
}
