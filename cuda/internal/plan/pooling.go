package plan

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// pooling is a forward convolution and the max-pooling behind it, which becomes part of the
// convolution's epilogue. The windows must be 2 x 2, with stride 2, and fill the image. The kernel
// does not write the convolution's output, which is four times as large as the maxima, though that
// memory may hold the sums of slices. The gradient needs to know where each window's maximum was;
// the epilogue writes that as a byte.
type pooling struct {
	convolution int // index of the convolution's launch
	pooling     int // index of the pooling's launch; a launch that finds the maxima's places may come between both
	gradients   []int
	pooledOutput
	epilogue int
	height   int // of a plane of windows
	width    int
}

// findPoolings returns the lowerings of the launches that such poolings change. It also replaces
// the convolutions' lowerings in separate.
func findPoolings(launches []tensor.Launch, separate []lowering) (geometries map[int]lowering) {
	geometries = map[int]lowering{}
	for i := range launches {
		if p := poolingAt(launches, i); p != nil {
			p.addLowerings(geometries, separate)
		}
	}
	return geometries
}

// poolingAt returns the pooling whose convolution is launch i, or nil. Only the pooling and the
// launch that finds the maxima's places may read the convolution's output.
func poolingAt(launches []tensor.Launch, i int) *pooling {
	product, ok := forwardConv(&launches[i])
	if !ok {
		return nil
	}
	y, x := launches[i].Arguments[0].Buffer, launches[i].Arguments[1].Buffer
	p := &pooling{convolution: i, pooling: i + 1, epilogue: epiloguePool}
	stem := func() string { // of a pooling's launch of y
		if p.pooling == len(launches) || !uses(&launches[p.pooling], y) {
			return ""
		}
		name := stemOf(launches[p.pooling].Kernel)
		return name
	}
	if stem() == "max_places_fwd" {
		p.argmax = launches[p.pooling].Arguments[0].Buffer
		p.epilogue |= epilogueArgmax
		p.pooling++
	}
	switch stem() {
	case "max_pool_fwd":
	case "max_pool_relu_fwd":
		p.epilogue |= epilogueReLU
	default:
		return nil
	}
	pool := launches[p.pooling].Arguments
	p.pooled, p.height, p.width = pool[0].Buffer, intValue(pool[1+poolQ]), intValue(pool[2+poolQ])
	pooled := [2]int{intValue(pool[2+poolH]), intValue(pool[3+poolH])}
	fits := y.Arena == tensor.Scratch && pooled == [2]int{product.Height, product.Width} && isTwoByTwo(pool[2:])
	if !fits || p.pooled.Overlaps(x) {
		return nil
	}
	for k := range launches {
		if i <= k && k <= p.pooling {
			continue
		}
		if uses(&launches[k], y) {
			return nil
		}
		if p.argmax != nil && uses(&launches[k], p.argmax) {
			if !p.addGradient(&launches[k]) {
				return nil
			}
			p.gradients = append(p.gradients, k)
		}
	}
	return p
}

// forwardConv returns the product of a launch that is a forward convolution.
func forwardConv(l *tensor.Launch) (tensor.Product, bool) {
	if len(l.Calls) != 1 {
		return tensor.Product{}, false
	}
	g, ok := l.Calls[0].Grid.(tensor.Product)
	return g, ok && g.Images && g.Forward
}

// addGradient adds a launch that reads the maxima's places, if it is a gradient of the pooling of
// the same kind as those before it: with a ReLU or without.
func (p *pooling) addGradient(l *tensor.Launch) bool {
	kind := 0
	switch stem := stemOf(l.Kernel); stem {
	case "max_places_bwd":
	case "max_places_relu_bwd":
		kind = epiloguePositive
	default:
		return false
	}
	if p.gradients != nil && p.epilogue&epiloguePositive != kind {
		return false
	}
	p.epilogue |= kind
	return true
}

// Indices of some of a pooling's integers.
const (
	poolH = 1
	poolQ = 4
)

// isTwoByTwo reports whether a pooling, given by its integers (planes H W P Q R S strides padding),
// has 2 x 2 windows that fill the image.
func isTwoByTwo(sizes []tensor.Argument) bool {
	var n [11]int
	for i := range n {
		n[i] = intValue(sizes[i])
	}
	h, w, p, q := n[poolH], n[poolH+1], n[poolQ-1], n[poolQ]
	return h == 2*p && w == 2*q && [6]int(n[poolQ+1:]) == [6]int{2, 2, 2, 2, 0, 0}
}

// uses reports whether a launch uses a buffer.
func uses(l *tensor.Launch, b *tensor.Buffer) bool {
	return slices.ContainsFunc(l.Arguments, func(a tensor.Argument) bool { return a.Buffer == b })
}

// addLowerings adds the lowerings of the launches that the pooling changes: the convolution's,
// which pools; the pooling's, which have no calls; and the gradients', which become unpoolGrads.
// On its own the convolution does not pool, but its sums have the same order as in the step.
func (p *pooling) addLowerings(to map[int]lowering, separate []lowering) {
	convolution := func(pool *pooledOutput, epilogue int) lowering {
		return func(place *planner, l *tensor.Launch) []Call {
			convolved, _ := forwardConv(l)
			g := newProduct(l.Calls[0], convolved)
			g.pooled, g.pool, g.epilogue = true, pool, g.epilogue|epilogue
			return g.lower(place)
		}
	}
	to[p.convolution], separate[p.convolution] = convolution(&p.pooledOutput, p.epilogue), convolution(nil, 0)
	for i := p.convolution + 1; i <= p.pooling; i++ {
		to[i] = func(*planner, *tensor.Launch) []Call { return nil }
	}
	for _, i := range p.gradients {
		to[i] = func(place *planner, l *tensor.Launch) []Call {
			windows := p.pooled.Elements
			s := &unpoolGrad{gradient: l.Arguments[0].Buffer, windows: l.Arguments[1], argmax: p.argmax, height: p.height, width: p.width}
			s.make = Call{
				Symbol: "max_places_relu_bwd_" + p.pooled.DType.Suffix(), Blocks: [2]int{gridSize(place, windows), 1}, Threads: GridStrideThreads,
				Arguments: []tensor.Argument{l.Arguments[0], l.Arguments[1], tensor.In(p.argmax), tensor.Int(windows), tensor.Int(p.width)},
			}
			if place.NoWindows || s.gradient.Arena != tensor.Scratch { // other arenas are read after the step
				return []Call{s.make}
			}
			place.unpoolGrads = append(place.unpoolGrads, s)
			return nil
		}
	}
}
