package main

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
	"github.com/pollen-ml/pollen/tensor/random"
)

// posterior is that of n points: the prior is theta1 ~ N(0, 10), theta2 ~ N(0, 1), where the second number is the variance.
func posterior(n int) langevin.Posterior {
	return langevin.Posterior{DataSize: n, Layers: map[string]langevin.Prior{
		"theta1": langevin.Gaussian(math.Sqrt(10)), "theta2": langevin.Gaussian(1),
	}}
}

// start is how the parameters start: at (1, 1), or at draws from the prior.
func start(dispersed bool) graph.Initializer {
	return func(_ uint64, chain uint32, stream uint16, _ tensor.Shape, values []float64) {
		values[0] = 1
		if dispersed {
			random.Normals(values, 0, random.Address{Seed: 1, Chain: chain, Stream: stream})
			values[0] *= math.Sqrt(10)
		}
	}
}

// model is the mean negative log-likelihood of a step's minibatch of the points, or of all of them when it is as large.
func model(b *graph.Builder, data []float64, batch int, dispersed bool) (theta1, theta2, loss *graph.Node) {
	theta1, theta2 = b.Parameter("theta1", start(dispersed), 1), b.Parameter("theta2", start(dispersed), 1)
	x := b.Table("data", data)
	if batch < len(data) {
		x = b.Apply(op.GatherRows{Batch: op.Batch{Size: batch, Shuffled: true}}, x, b.Header())
	}
	return theta1, theta2, b.Apply(tiedMeans{}, x, theta1, theta2)
}

// tiedMeans is the mean negative log-likelihood of points under N(theta1, 2)/2 + N(theta1+theta2, 2)/2: x [B], theta1 [1], theta2 [1] -> a scalar. Package
// distributions has mixtures of anything; an op for just this one is several times as fast, and no more than what follows. It has no GPU kernel.
type tiedMeans struct{}

func (tiedMeans) Name() string { return "tied means" }

func (tiedMeans) Shape(in []tensor.Shape) (tensor.Shape, error) {
	one := tensor.Shape{1}
	if len(in) != 3 || len(in[0]) != 1 || !in[1].Equal(one) || !in[2].Equal(one) {
		return nil, errors.Errorf("got shapes %v, wants points and two numbers", in)
	}
	return tensor.Shape{}, nil
}

func (tiedMeans) Lower(l *graph.Lowering) {
	run := graph.Pick(l, meanLoss[float32], meanLoss[float64])
	l.Emit("tied_means_fwd", l.Shapes[0][0], tensor.Single(run), l.Out(), l.In(0), l.In(1), l.In(2), tensor.Int(l.Shapes[0][0]))
}

// block is a number of points at a time: their distances from theta1, and for each, the odds that it comes from the first component, or their
// logarithm.
type block[T float32 | float64] struct {
	distances, odds [128]T
	theta1, theta2  T
}

// fill takes the first of points, of which it fills in the logarithm of the odds, and returns how many it took.
func (b *block[T]) fill(points []T) int {
	n := min(len(points), len(b.odds))
	for i, x := range points[:n] {
		distance := x - b.theta1
		b.distances[i], b.odds[i] = distance, b.theta2*(b.theta2-2*distance)/4
	}
	return n
}

// exponentiate replaces x by exp(x).
func exponentiate[T float32 | float64](x []T) {
	if narrow, ok := any(x).([]float32); ok {
		kernel.Expm1(narrow, narrow)
		for i := range narrow {
			narrow[i]++
		}
		return
	}
	for i, v := range x {
		x[i] = T(math.Exp(float64(v)))
	}
}

func blockOf[T float32 | float64](a *tensor.Args, theta int) block[T] {
	return block[T]{theta1: tensor.Slice[T](a, theta)[0], theta2: tensor.Slice[T](a, theta+1)[0]}
}

func meanLoss[T float32 | float64](a *tensor.Args) {
	points, b := tensor.Slice[T](a, 1), blockOf[T](a, 2)
	total := 0.0
	for rest := points; len(rest) > 0; {
		n := b.fill(rest)
		rest = rest[n:]
		for i, distance := range b.distances[:n] {
			total += float64(distance*distance/4 + min(b.odds[i], 0))
			b.odds[i] = -max(b.odds[i], -b.odds[i])
		}
		exponentiate(b.odds[:n])
		product := 1.0 // one logarithm costs less than many
		for _, v := range b.odds[:n] {
			product *= float64(1 + v)
		}
		total -= math.Log(product)
	}
	tensor.Slice[T](a, 0)[0] = T(total/float64(len(points)) + math.Log(2) + math.Log(4*math.Pi)/2)
}

// Gradients implements graph.Differentiable. The slopes by theta1 and theta2 share their exponentials.
func (tiedMeans) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	inputs := append([]*graph.Node{dout}, in...)
	both := b.Apply(slopes{}, inputs...)
	gradients := []*graph.Node{b.Apply(slopes{ByPoint: true}, inputs...)}
	for i := range 2 {
		gradients = append(gradients, b.Apply(op.ViewAs(1), b.Apply(op.Element{Index: i}, both)))
	}
	return gradients
}

// slopes are the derivatives by theta1 and theta2, or by each point, times dout: dout, x [B], theta1, theta2 -> [2], or [B].
type slopes struct{ ByPoint bool }

func (slopes) Name() string { return "slopes of tied means" }

func (s slopes) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if s.ByPoint {
		return in[1], nil
	}
	return tensor.Shape{2}, nil
}

func (s slopes) Lower(l *graph.Lowering) {
	stem, run := "tied_means_bwd", graph.Pick(l, fillSlopes[float32], fillSlopes[float64])
	if s.ByPoint {
		stem, run = "tied_means_bwd_points", graph.Pick(l, fillPoints[float32], fillPoints[float64])
	}
	l.Emit(stem, l.Shapes[1][0], tensor.Single(run), l.Out(), l.In(0), l.In(1), l.In(2), l.In(3), tensor.Int(l.Shapes[1][0]))
}

func fillSlopes[T float32 | float64](a *tensor.Args) {
	points, b := tensor.Slice[T](a, 2), blockOf[T](a, 3)
	var first, second T
	for rest := points; len(rest) > 0; {
		n := b.fill(rest)
		rest = rest[n:]
		exponentiate(b.odds[:n])
		for i, distance := range b.distances[:n] {
			share := 1 / (1 + b.odds[i])
			first += distance - share*b.theta2
			second += share * (distance - b.theta2)
		}
	}
	out, scale := tensor.Slice[T](a, 0), -tensor.Slice[T](a, 1)[0]/2/T(len(points))
	out[0], out[1] = scale*first, scale*second
}

func fillPoints[T float32 | float64](a *tensor.Args) {
	out, points, b := tensor.Slice[T](a, 0), tensor.Slice[T](a, 2), blockOf[T](a, 3)
	scale := tensor.Slice[T](a, 1)[0] / 2 / T(len(points))
	for from := 0; from < len(points); {
		n := b.fill(points[from:])
		exponentiate(b.odds[:n])
		for i, distance := range b.distances[:n] {
			out[from+i] = scale * (distance - b.theta2/(1+b.odds[i]))
		}
		from += n
	}
}
