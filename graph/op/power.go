package op

import (
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// Power is y = a^b, elementwise with NumPy's broadcasting: a [...], b [...] -> y. It is NaN for a
// below 0 unless b is a whole number. Adopted networks use it.
type Power struct{}

// Name implements graph.Op.
func (Power) Name() string { return "power" }

// Shape implements graph.Op.
func (Power) Shape(in []tensor.Shape) (tensor.Shape, error) { return broadcast(in) }

// Lower implements graph.Op.
func (Power) Lower(l *graph.Lowering) { lowerArithmetic(l, "power", powers[float32], powers[float64]) }

func powers[T float32 | float64](y, a, b []T) {
	for i := range y {
		y[i] = T(math.Pow(float64(a[i]), float64(b[i])))
	}
}

// Gradients implements graph.Differentiable: da = dout b a^(b-1), db = dout y ln a.
func (p Power) Gradients(build *graph.Builder, in []*graph.Node, y, dout *graph.Node) []*graph.Node {
	a, b := in[0], in[1]
	lower := build.Apply(p, a, build.Apply(Scale{Factor: 1, Offset: -1}, b))
	da := build.Apply(Multiply{}, dout, build.Apply(Multiply{}, b, lower))
	db := build.Apply(Multiply{}, dout, build.Apply(Multiply{}, y, build.Apply(Log{}, a)))
	return []*graph.Node{unbroadcast(build, da, a), unbroadcast(build, db, b)}
}
