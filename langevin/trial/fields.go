package trial

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// Field is a potential over a parameter's elements.
type Field interface {
	// At returns the potential at theta, and fills slope with its gradient.
	At(theta, slope []float64) float64
	// Potential returns the same potential as a graph of a parameter of one axis, in ops that all
	// devices have.
	Potential(b *graph.Builder, w *graph.Node) *graph.Node
}

// DiagonalGaussian is the sum of k theta^2/2 over the elements. The curvatures k cycle through
// Classes values from Smallest to Largest at equal ratios.
type DiagonalGaussian struct{ Smallest, Largest float64 }

// Classes is the number of different curvatures of a DiagonalGaussian.
const Classes = 8

// Curvature returns the curvature of element i.
func (f DiagonalGaussian) Curvature(i int) float64 {
	return f.Smallest * math.Pow(f.Largest/f.Smallest, float64(i%Classes)/(Classes-1))
}

// At implements Field.
func (f DiagonalGaussian) At(theta, slope []float64) float64 {
	total := 0.0
	var curvatures [Classes]float64
	for i := range curvatures {
		curvatures[i] = f.Curvature(i)
	}
	for i, x := range theta {
		k := curvatures[i%Classes]
		slope[i] = k * x
		total += k * x * x / 2
	}
	return total
}

// Potential implements Field.
func (f DiagonalGaussian) Potential(b *graph.Builder, w *graph.Node) *graph.Node {
	squares := b.Apply(op.Squared{}, w)
	if f.Smallest == f.Largest {
		return b.Apply(op.Scale{Factor: f.Smallest / 2}, b.Apply(op.Sum{}, squares))
	}
	halves := make([]float64, graph.ShapeOf(w).Elements())
	for i := range halves {
		halves[i] = f.Curvature(i) / 2
	}
	return b.Apply(op.Sum{}, b.Apply(op.Multiply{}, squares, b.Table(w.Name()+" half curvatures", halves)))
}

// CorrelatedGaussian is the sum of (A x^2 + 2 B x y + C y^2)/2 over pairs of neighbours x, y.
type CorrelatedGaussian struct{ A, B, C float64 }

// At implements Field.
func (f CorrelatedGaussian) At(theta, slope []float64) float64 {
	total := 0.0
	for i := 0; i < len(theta); i += 2 {
		x, y := theta[i], theta[i+1]
		slope[i], slope[i+1] = f.A*x+f.B*y, f.B*x+f.C*y
		total += (x*slope[i] + y*slope[i+1]) / 2
	}
	return total
}

// Potential implements Field.
func (f CorrelatedGaussian) Potential(b *graph.Builder, w *graph.Node) *graph.Node {
	return Pairs(b, w, f.A/2, f.B/2, f.B/2, f.C/2)
}

// Pairs is the sum of v.M v over the pairs v of neighbours; matrix is M, row by row.
func Pairs(b *graph.Builder, w *graph.Node, matrix ...float64) *graph.Node {
	v := b.Apply(op.ViewAs(graph.ShapeOf(w).Elements()/2, 2), w)
	m := b.Table(w.Name()+" matrix of pairs", matrix, 2, 2)
	return b.Apply(op.Sum{}, b.Apply(op.Multiply{}, v, b.Apply(op.MatMul{}, v, m)))
}

// LogGamma is the sum of exp(theta) - Shape theta: exp(-U/T) is the density of log(T X), where X
// has the gamma distribution of shape Shape/T. It is skewed to the left.
type LogGamma struct{ Shape float64 }

// At implements Field.
func (f LogGamma) At(theta, slope []float64) float64 {
	total := 0.0
	for i, x := range theta {
		slope[i] = math.Exp(x) - f.Shape
		total += math.Exp(x) - f.Shape*x
	}
	return total
}

// Potential implements Field.
func (f LogGamma) Potential(b *graph.Builder, w *graph.Node) *graph.Node {
	return b.Apply(op.Sum{}, b.Apply(op.Subtract{}, b.Apply(op.Exp{}, w), b.Apply(op.Scale{Factor: f.Shape}, w)))
}

// Target is the loss Field/N. Like a minibatch's, its gradient is noisy: the gradient of U has
// noise of standard deviation Noise.
type Target struct {
	Field    Field
	Noise    float64
	Uneven   bool // elements 0, 2, 4 ... have no noise
	DataSize int
	Stream   uint16
}

// Loss returns (U + Noise z.w)/N, where z are normals of the stream, redrawn in each step.
func (f Target) Loss(b *graph.Builder, w *graph.Node) *graph.Node {
	u := f.Field.Potential(b, w)
	if f.Noise > 0 {
		z := b.Apply(op.Noise{Stream: f.Stream, As: op.ViewAs(graph.ShapeOf(w)...)}, b.Header())
		if f.Uneven {
			noisy := make([]float64, graph.ShapeOf(w).Elements())
			for i := range noisy {
				noisy[i] = float64(i % 2)
			}
			z = b.Apply(op.Multiply{}, z, b.Table(w.Name()+" noisy elements", noisy))
		}
		slope := b.Apply(op.Sum{}, b.Apply(op.Multiply{}, w, z))
		u = b.Apply(op.Add{}, u, b.Apply(op.Scale{Factor: f.Noise}, slope))
	}
	if f.DataSize == 1 {
		return u
	}
	return b.Apply(op.Scale{Factor: 1 / float64(f.DataSize)}, u)
}

// CheckFields compares the gradients of fields with finite differences, and both with the fields'
// graphs.
func CheckFields(t *testing.T, fields ...Field) {
	t.Helper()
	const d, n = 1e-5, 8
	for _, f := range fields {
		theta := NormalDraws(n, 1)
		slope, ignored := make([]float64, n), make([]float64, n)
		u := f.At(theta, slope)
		for i := range theta {
			up, down := append([]float64{}, theta...), append([]float64{}, theta...)
			up[i] += d
			down[i] -= d
			if want := (f.At(up, ignored) - f.At(down, ignored)) / (2 * d); math.Abs(slope[i]-want) > 1e-5*(1+math.Abs(want)) {
				t.Errorf("%v: slope %d is %v, finite difference %v", f, i, slope[i], want)
			}
		}
		b := graph.New(tensor.Float64)
		w := b.Parameter(ParameterName, func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) { copy(values, theta) }, n)
		potential := Target{Field: f, DataSize: 4}.Loss(b, w)
		b.Output("gradient", b.Gradients(potential, w)[0])
		b.Output("potential", potential)
		session := Load(t, b, graph.LoadOptions{}, 1)
		Advance(t, session, 1)
		for i, got := range append(Values(t, session, "gradient", 0, n), Values(t, session, "potential", 0, 1)...) {
			if want := append(slope, u)[i] / 4; math.Abs(got-want) > 1e-14*(1+math.Abs(want)) {
				t.Errorf("%v: value %d of the graph is %v, want %v", f, i, got, want)
			}
		}
	}
}

// SumOfSquares is the sum over i of w_i^2.
func SumOfSquares(b *graph.Builder, w *graph.Node) *graph.Node {
	return b.Apply(op.Sum{}, b.Apply(op.Squared{}, w))
}
