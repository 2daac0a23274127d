package langevin

import (
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// hessianProbe builds the graph of Hessian-vector products of a loss, as central differences of its
// gradient along a direction z:
//
//	H z = (g(theta + distance z) - g(theta - distance z)) / (2 distance) + O(distance^2)
//
// This works for all layers without second derivatives of ops, and on every device that can compute
// the gradient. Both ends use the same minibatch and the same random numbers. A distance that is a
// power of two keeps the quotient exact. In float32 rounding adds an error of about 1e-7
// |g|/distance. Where the gradient jumps, as ReLU's does, the difference includes the jumps within
// the distance; the gradient's change along a trajectory includes them, too.
type hessianProbe struct {
	b          *graph.Builder
	loss       *graph.Node
	parameters []*graph.Node
	distance   float64
}

// defaultDistance is near the cube root of the float's precision, where the errors of rounding and
// of the difference balance for parameters of order one.
func defaultDistance(dtype tensor.DType) float64 {
	if dtype == tensor.Float64 {
		return 0x1p-17
	}
	return 0x1p-8
}

// ends returns the sum of the losses at both ends of a direction, and the parameters there. All
// ends are new nodes, even where z is 0, so that their gradients do not mix with the loss's own.
func (p hessianProbe) ends(along func(i int) direction) (loss *graph.Node, up, down []*graph.Node) {
	displace := func(distance float64) (*graph.Node, []*graph.Node) {
		var moved []*graph.Node
		places := map[*graph.Node]*graph.Node{}
		for i, w := range p.parameters {
			moved = append(moved, p.b.Apply(displaced{along(i), distance}, w, p.b.Header()))
			places[w] = moved[i]
		}
		return p.b.Substitute(p.loss, places), moved
	}
	plus, up := displace(p.distance)
	minus, down := displace(-p.distance)
	return p.b.Apply(op.Add{}, plus, minus), up, down
}

// hutchinson returns the gradients of the loss and, for each parameter, z H z elementwise with
// independent random signs z. These are unbiased estimates of the Hessian's diagonal (Hutchinson
// 1990; Bekas, Kokiopoulou and Saad 2007); their variance is the sum of the squares of the other
// elements of the row.
func (p hessianProbe) hutchinson() (gradients, diagonals []*graph.Node) {
	signs := make([]direction, len(p.parameters))
	for i := range signs {
		signs[i].Stream = p.b.Stream()
	}
	n := len(p.parameters)
	ends, up, down := p.ends(func(i int) direction { return signs[i] })
	all := p.b.Gradients(p.b.Apply(op.Add{}, p.loss, ends), slices.Concat(p.parameters, up, down)...)
	for i := range p.parameters {
		diagonals = append(diagonals, p.b.Apply(curvature{signs[i], p.distance}, all[n+i], all[2*n+i], p.b.Header()))
	}
	return all[:n], diagonals
}

// maxExact is the maximal number of elements of all parameters for exact diagonals. Each element
// takes two copies of the network's graph.
const maxExact = 64

// exact returns the gradients of the loss and, for each parameter, the Hessian's diagonal: each
// element from the difference along its own axis.
func (p hessianProbe) exact() (gradients, diagonals []*graph.Node) {
	elements := 0
	for _, w := range p.parameters {
		elements += graph.ShapeOf(w).Elements()
	}
	if elements > maxExact {
		p.b.Fail(errors.Errorf("langevin: exact curvature: the parameters must have at most %d elements, got %d; %q takes one probe for any number",
			maxExact, elements, GammaHutchinson))
		return make([]*graph.Node, len(p.parameters)), make([]*graph.Node, len(p.parameters))
	}
	whole, with := p.loss, slices.Clone(p.parameters)
	for i, w := range p.parameters {
		for element := range graph.ShapeOf(w).Elements() {
			ends, up, down := p.ends(func(j int) direction {
				if j != i {
					return direction{Element: noElement}
				}
				return direction{Element: element}
			})
			whole, with = p.b.Apply(op.Add{}, whole, ends), append(with, up[i], down[i])
		}
	}
	all := p.b.Gradients(whole, with...)
	gradients, pairs := all[:len(p.parameters)], all[len(p.parameters):]
	for _, w := range p.parameters {
		var diagonal []*graph.Node
		for element := range graph.ShapeOf(w).Elements() {
			inputs := append([]*graph.Node{pairs[0], pairs[1], p.b.Header()}, diagonal...)
			diagonal, pairs = []*graph.Node{p.b.Apply(curvature{direction{Element: element}, p.distance}, inputs...)}, pairs[2:]
		}
		diagonals = append(diagonals, diagonal...)
	}
	return gradients, diagonals
}

// direction is a vector z. With a Stream it consists of independent random signs, redrawn in each
// step; without one it is the axis of Element, or 0 for noElement.
type direction struct {
	Stream  uint16
	Element int
}

// noElement makes a direction 0.
const noElement = -1

func (d direction) arguments() []tensor.Argument {
	return []tensor.Argument{tensor.Uint(uint32(d.Stream)), tensor.Int(d.Element)}
}

// fill fills block with the elements first, first + 1, ... of z. A sign is the highest bit of its
// random word.
func (d direction) fill(block []int8, first int, header []uint64) {
	if d.Stream == 0 {
		clear(block)
		if d.Element >= first && d.Element < first+len(block) {
			block[d.Element-first] = 1
		}
		return
	}
	var words [random.BlockSize]uint32
	random.Bits(words[:len(block)], first, op.AddressOf(header, d.Stream))
	for i := range block {
		block[i] = 1 - 2*int8(words[i]>>31)
	}
}

// displaced is y = w + Distance z: w [...], header -> y [...]. It has no gradient: the loss at y is
// differentiated by y.
type displaced struct {
	Along    direction
	Distance float64
}

func (displaced) Name() string  { return "displaced parameter" }
func (displaced) StopGradient() {}

func (displaced) Shape(in []tensor.Shape) (tensor.Shape, error) { return probeShape(in, 1) }

func (d displaced) Lower(l *graph.Lowering) {
	n := l.Shape.Elements()
	host := tensor.Rows(n, 1, graph.Pick(l, displace[float32](d), displace[float64](d)))
	l.Emit("displaced_fwd", tensor.Vec4(n), host, append([]tensor.Argument{
		l.Out(), l.In(0), l.In(1), tensor.Int(n), tensor.Float(l.DType, d.Distance),
	}, d.Along.arguments()...)...)
}

// displace is the host's loop of displaced. Signs are blocks of random bits.
func displace[T float32 | float64](d displaced) func(a *tensor.Args, lo, hi int) {
	return func(a *tensor.Args, lo, hi int) {
		var z [random.BlockSize]int8
		y, w := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
		for ; lo < hi; lo += random.BlockSize {
			block := z[:min(random.BlockSize, hi-lo)]
			d.Along.fill(block, lo, tensor.Slice[uint64](a, 2))
			for i, sign := range block {
				y[lo+i] = w[lo+i] + T(T(d.Distance)*T(sign))
			}
		}
	}
}

// curvature is y = rest + z (up - down)/(2 Distance), elementwise: up and down [...], header, and
// optionally rest [...] -> y [...].
type curvature struct {
	Along    direction
	Distance float64
}

func (curvature) Name() string { return "curvature" }

func (curvature) Shape(in []tensor.Shape) (tensor.Shape, error) {
	if len(in) == 4 && !in[3].Equal(in[0]) {
		return nil, errors.Errorf("rest must have shape %v, got %v", in[0], in[3])
	}
	return probeShape(in[:min(3, len(in))], 2)
}

func (c curvature) Lower(l *graph.Lowering) {
	n, rest := l.Shape.Elements(), len(l.Shapes) == 4
	stem, arguments := "curvature_fwd", []tensor.Argument{l.Out(), l.In(0), l.In(1), l.In(2)}
	if rest {
		stem, arguments = "curvature_rest_fwd", append(arguments, l.In(3))
	}
	host := tensor.Rows(n, 1, graph.Pick(l, difference[float32](c, rest), difference[float64](c, rest)))
	arguments = append(arguments, tensor.Int(n), tensor.Float(l.DType, 0.5/c.Distance))
	l.Emit(stem, tensor.Vec4(n), host, append(arguments, c.Along.arguments()...)...)
}

// difference is the host's loop of curvature.
func difference[T float32 | float64](c curvature, rest bool) func(a *tensor.Args, lo, hi int) {
	scale := T(0.5 / c.Distance)
	return func(a *tensor.Args, lo, hi int) {
		var z [random.BlockSize]int8
		y, up, down := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1), tensor.Slice[T](a, 2)
		var others []T
		if rest {
			others = tensor.Slice[T](a, 4)
		}
		for ; lo < hi; lo += random.BlockSize {
			block := z[:min(random.BlockSize, hi-lo)]
			c.Along.fill(block, lo, tensor.Slice[uint64](a, 3))
			for i, sign := range block {
				y[lo+i] = T(T(sign) * T((up[lo+i]-down[lo+i])*scale))
				if rest {
					y[lo+i] += others[lo+i]
				}
			}
		}
	}
}

// probeShape returns the common shape of the first alike inputs, which the header must follow.
func probeShape(in []tensor.Shape, alike int) (tensor.Shape, error) {
	if len(in) != alike+1 || !in[0].Equal(in[alike-1]) || len(in[alike]) != 1 {
		return nil, errors.Errorf("must have %d inputs of one shape and the header, got shapes %v", alike, in)
	}
	return in[0], nil
}
