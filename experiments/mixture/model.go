package main

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
	"github.com/pollen-ml/pollen/tensor/random"
)

// The variances of the prior: theta1 ~ N(0, 10), theta2 ~ N(0, 1).
const (
	variance1 = 10
	variance2 = 1
)

// coordinates selects the parametrisation in which chains move. The plain one is theta1 and theta2,
// whose correlation is -0.98: a step size small enough across the ridge is wastefully small along
// it. The centred one is theta1 + theta2/2, in units of centreUnit, and theta2, which are nearly
// independent and have about the same curvature.
type coordinates struct{ Centred bool }

const centreUnit = 0.3

// point returns theta1 and theta2 at the coordinates w.
func point[T float32 | float64](c coordinates, w []T) (theta1, theta2 T) {
	if !c.Centred {
		return w[0], w[1]
	}
	return T(centreUnit*w[0]) - w[1]/2, w[1]
}

// place is the inverse of point.
func (c coordinates) place(theta1, theta2 float64) (first, second float64) {
	if !c.Centred {
		return theta1, theta2
	}
	return (theta1 + theta2/2) / centreUnit, theta2
}

// slopes converts derivatives by theta1 and theta2 into derivatives by w.
func slopes[T float32 | float64](c coordinates, by1, by2 T) (first, second T) {
	if !c.Centred {
		return by1, by2
	}
	return T(centreUnit * by1), by2 - by1/2
}

// start initialises chains at (1, 1), or at draws from the prior if dispersed.
func (c coordinates) start(dispersed bool) graph.Initializer {
	return func(seed uint64, chain uint32, stream uint16, _ tensor.Shape, w []float64) {
		theta := [...]float64{1, 1}
		if dispersed {
			random.Normals(theta[:], 0, random.Address{Seed: seed, Chain: chain, Stream: stream})
			theta[0] *= math.Sqrt(variance1)
			theta[1] *= math.Sqrt(variance2)
		}
		w[0], w[1] = c.place(theta[0], theta[1])
	}
}

// model adds the parameters and the potential divided by the number of points. The likelihood is
// estimated from a minibatch, unless batch is the number of points.
func model(b *graph.Builder, data []float64, batch int, c coordinates, dispersed bool) (w, loss *graph.Node) {
	w = b.Parameter("w", c.start(dispersed), 2)
	x := b.Table("data", data)
	if batch < len(data) {
		x = b.Apply(op.GatherRows{Batch: op.Batch{Size: batch, Order: op.Shuffled}}, x, b.Header())
	}
	return w, b.Apply(tiedMeans{c, len(data)}, x, w)
}

// tiedMeans is the mean negative log-likelihood of points under N(theta1, 2)/2 + N(theta1+theta2,
// 2)/2, plus the prior's potential over DataSize, up to a constant: x [B], w [2] -> a scalar.
// Package distributions has general mixtures; this op is several times as fast. It has no GPU
// kernel.
type tiedMeans struct {
	Coordinates coordinates
	DataSize    int
}

func (tiedMeans) Name() string { return "tied means" }

func (tiedMeans) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 2 || len(in[0]) != 1 || !in[1].Equal(tensor.Shape{2}) {
		return nil, errors.Errorf("the inputs must have the shapes [B] and [2], got %v", in)
	}
	return tensor.Shape{}, nil
}

func (m tiedMeans) Lower(l *graph.Lowering) {
	run := pick(l, m, meanLoss[float32], meanLoss[float64])
	l.Emit("tied_means_fwd", tensor.Threads(l.Shapes[0][0]), tensor.Single(run), l.Out(), l.In(0), l.In(1))
}

// pick chooses the function for the program's float type. The functions take m as an argument,
// since the compiler does not inline what a closure in a generic function calls.
func pick(l *graph.Lowering, m tiedMeans, f32, f64 func(m tiedMeans, a *tensor.Args)) func(a *tensor.Args) {
	return graph.Pick(l, func(a *tensor.Args) { f32(m, a) }, func(a *tensor.Args) { f64(m, a) })
}

// maxPoints is the number of points that are processed at a time.
const maxPoints = 128

// normalizer is minus the logarithm of a component's weight times its density at its mean.
var normalizer = math.Log(2) + math.Log(4*math.Pi)/2

// meanLoss computes its exponentials in float32 in either program, which is several times as fast.
// It changes a potential by some 1e-6, and no visible result.
func meanLoss[T float32 | float64](m tiedMeans, a *tensor.Args) {
	points := tensor.Slice[T](a, 1)
	theta1, theta2 := point(m.Coordinates, tensor.Slice[T](a, 2))
	mean, gap := float64(theta1), float64(theta2)
	total := 0.0
	var list [maxPoints]float32
	for rest := points; len(rest) > 0; {
		some := rest[:min(maxPoints, len(rest))]
		smaller := list[:len(some)] // the log of the smaller component over the larger one
		rest = rest[len(some):]
		for i, x := range some {
			distance := float64(x) - mean
			odds := gap * (gap - 2*distance) / 4 // log odds of the first component
			size := math.Abs(odds)
			total += distance*distance/4 + (odds-size)/2
			smaller[i] = float32(-size)
		}
		kernel.Expm1(smaller, smaller)
		product := 1.0 // the logarithm of a product costs less than a sum of logarithms
		for _, v := range smaller {
			product *= 2 + float64(v)
		}
		total -= math.Log(product)
	}
	prior := mean*mean/(2*variance1) + gap*gap/(2*variance2)
	tensor.Slice[T](a, 0)[0] = T(total/float64(len(points)) + normalizer + prior/float64(m.DataSize))
}

// Gradients implements graph.Differentiable.
func (m tiedMeans) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(tiedMeansSlopes{m, true}, in[0], in[1], dout), b.Apply(tiedMeansSlopes{m, false}, in[0], in[1], dout)}
}

// tiedMeansSlopes is the gradient of tiedMeans by w, or by the points, times dout: x [B], w [2],
// dout -> [2] or [B].
type tiedMeansSlopes struct {
	Of      tiedMeans
	ByPoint bool
}

func (tiedMeansSlopes) Name() string { return "slopes of tied means" }

func (s tiedMeansSlopes) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if s.ByPoint {
		return in[0], nil
	}
	return in[1], nil
}

func (s tiedMeansSlopes) Lower(l *graph.Lowering) {
	stem, run := "tied_means_bwd", pick(l, s.Of, fillSlopes[float32], fillSlopes[float64])
	if s.ByPoint {
		stem, run = "tied_means_bwd_points", pick(l, s.Of, fillPoints[float32], fillPoints[float64])
	}
	l.Emit(stem, tensor.Threads(l.Shapes[0][0]), tensor.Single(run), l.Out(), l.In(0), l.In(1), l.In(2))
}

// odds returns for each of at most maxPoints points the odds that it comes from the first
// component, minus 1. The result is in list.
func odds[T float32 | float64](list *[maxPoints]float32, points []T, theta1, theta2 T) []float32 {
	some := list[:len(points)]
	slope, constant := -theta2/2, theta2*(theta2+2*theta1)/4 // of the log odds, which are linear in x
	for i, x := range points {
		some[i] = float32(constant + slope*x)
	}
	kernel.Expm1(some, some)
	return some
}

func fillSlopes[T float32 | float64](m tiedMeans, a *tensor.Args) {
	points := tensor.Slice[T](a, 1)
	theta1, theta2 := point(m.Coordinates, tensor.Slice[T](a, 2))
	var list [maxPoints]float32
	var sum, shares, products T
	for rest := points; len(rest) > 0; {
		some := rest[:min(maxPoints, len(rest))]
		rest = rest[len(some):]
		for i, v := range odds(&list, some, theta1, theta2) {
			share, x := T(1/(2+v)), some[i] // share is the responsibility of the second component
			sum += x
			shares += share
			products += share * x
		}
	}
	n, size, dout := T(len(points)), T(m.DataSize), tensor.Slice[T](a, 3)[0]
	by1 := (n*theta1+theta2*shares-sum)/(2*n) + theta1/(variance1*size)
	by2 := ((theta1+theta2)*shares-products)/(2*n) + theta2/(variance2*size)
	out := tensor.Slice[T](a, 0)
	first, second := slopes(m.Coordinates, by1, by2)
	out[0], out[1] = dout*first, dout*second
}

func fillPoints[T float32 | float64](m tiedMeans, a *tensor.Args) {
	out, points := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
	theta1, theta2 := point(m.Coordinates, tensor.Slice[T](a, 2))
	scale := tensor.Slice[T](a, 3)[0] / T(2*len(points))
	var list [maxPoints]float32
	for from := 0; from < len(points); from += maxPoints {
		some := points[from:min(from+maxPoints, len(points))]
		for i, v := range odds(&list, some, theta1, theta2) {
			out[from+i] = scale * (some[i] - theta1 - theta2*T(1/(2+v)))
		}
	}
}
