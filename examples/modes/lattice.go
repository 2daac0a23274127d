package main

import (
	"math"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

// The lattice's modes are the points whose coordinates are both in means. variance is the variance
// of each coordinate around a mode.
var means = [...]float64{-4, -2, 0, 2, 4}

const variance = 0.03

// lattice is minus the log density of an equal mixture of Gaussians around all modes, up to a
// constant: theta [2] -> a scalar. The mixture factorises into one mixture for each coordinate. The
// op has no GPU kernel.
type lattice struct{}

func (lattice) Name() string { return "lattice" }

func (lattice) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) != 1 || !in[0].Equal(tensor.Shape{2}) {
		return nil, errors.Errorf("the input must have the shape [2], got %v", in)
	}
	return tensor.Shape{}, nil
}

func (lattice) Lower(l *graph.Lowering) {
	l.Emit("lattice_fwd", tensor.Threads(1), tensor.Single(graph.Pick(l, latticeValue[float32], latticeValue[float64])), l.Out(), l.In(0))
}

func latticeValue[T float32 | float64](a *tensor.Args) {
	theta := tensor.Slice[T](a, 1)
	x, _ := coordinate(float64(theta[0]))
	y, _ := coordinate(float64(theta[1]))
	tensor.Slice[T](a, 0)[0] = T(x + y)
}

// coordinate returns the potential of one coordinate and its derivative. The nearest mode's
// exponential is factored out, so that the density does not underflow to 0 far from all modes.
func coordinate(x float64) (potential, slope float64) {
	nearest := math.Inf(1)
	for _, mean := range means {
		nearest = min(nearest, math.Abs(x-mean))
	}
	total := 0.0
	for _, mean := range means {
		share := math.Exp((nearest*nearest - (x-mean)*(x-mean)) / (2 * variance))
		total += share
		slope += share * (x - mean) / variance
	}
	return nearest*nearest/(2*variance) - math.Log(total), slope / total
}

// Gradients implements graph.Differentiable.
func (lattice) Gradients(b *graph.Builder, in []*graph.Node, _, dout *graph.Node) []*graph.Node {
	return []*graph.Node{b.Apply(latticeSlope{}, in[0], dout)}
}

// latticeSlope is the gradient of lattice: theta [2], dout -> [2].
type latticeSlope struct{}

func (latticeSlope) Name() string                                  { return "lattice slope" }
func (latticeSlope) Shape(in []tensor.Shape) (tensor.Shape, error) { return in[0], nil }

func (latticeSlope) Lower(l *graph.Lowering) {
	l.Emit("lattice_bwd", tensor.Threads(1), tensor.Single(graph.Pick(l, fillSlope[float32], fillSlope[float64])), l.Out(), l.In(0), l.In(1))
}

func fillSlope[T float32 | float64](a *tensor.Args) {
	out, theta, dout := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), float64(tensor.Slice[T](a, 2)[0])
	for i := range out {
		_, slope := coordinate(float64(theta[i]))
		out[i] = T(slope * dout)
	}
}

// density returns the lattice's density on a grid, divided by its maximum.
func density() report.Levels {
	levels := report.Levels{Name: "density", At: []float64{0.1, 0.5}}
	for i := range 261 {
		levels.X = append(levels.X, -5.2+0.04*float64(i))
	}
	levels.Y = levels.X
	highest := 0.0
	for _, y := range levels.Y {
		for _, x := range levels.X {
			u, _ := coordinate(x)
			v, _ := coordinate(y)
			levels.Values = append(levels.Values, math.Exp(-u-v))
			highest = max(highest, math.Exp(-u-v))
		}
	}
	for i := range levels.Values {
		levels.Values[i] /= highest
	}
	return levels
}

// modeOf returns the number of the mode nearest to (x, y), row by row from (-4, -4).
func modeOf(x, y float64) int {
	index := func(v float64) int { return int(max(0, min(4, math.Round((v+4)/2)))) }
	return 5*index(y) + index(x)
}

// census returns the number of modes that have a state, and the total variation between the
// frequencies of states in modes and 1/25.
func (s states) census() (found int, totalVariation float64) {
	var counts [25]float64
	for i := range s.x {
		counts[modeOf(s.x[i], s.y[i])]++
	}
	for _, count := range counts {
		if count > 0 {
			found++
		}
		totalVariation += math.Abs(count/float64(len(s.x))-1./25) / 2
	}
	return found, totalVariation
}

// crossed returns the fraction of chains that have states in more than one mode.
func (s states) crossed() float64 {
	crossed := 0
	for chain := range s.chains {
		for i := chain; i < len(s.x); i += s.chains {
			if modeOf(s.x[i], s.y[i]) != modeOf(s.x[chain], s.y[chain]) {
				crossed++
				break
			}
		}
	}
	return float64(crossed) / float64(s.chains)
}

// spread returns the mean squared distance of a coordinate from its mode's, exactly variance.
func (s states) spread() float64 {
	total := 0.0
	for i := range s.x {
		mode := modeOf(s.x[i], s.y[i])
		dx, dy := s.x[i]-means[mode%5], s.y[i]-means[mode/5]
		total += (dx*dx + dy*dy) / 2
	}
	return total / float64(len(s.x))
}
