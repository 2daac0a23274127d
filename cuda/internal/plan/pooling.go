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
func findPoolings(launches []tensor.Launch, separate []lowering) (lowerings map[int]lowering) {
	lowerings = map[int]lowering{}
	for i := range launches {
		if o := poolingAt(launches, i); o != nil {
			o.addLowerings(lowerings, separate)
		}
	}
	return lowerings
}

// poolingAt returns the pooling whose convolution is launch i, or nil. Only the pooling and the
// launch that finds the maxima's places may read the convolution's output.
func poolingAt(launches []tensor.Launch, i int) *pooling {
	product, ok := forwardConv(&launches[i])
	if !ok {
		return nil
	}
	y, x := launches[i].Arguments[0].Buffer, launches[i].Arguments[1].Buffer
	o := &pooling{convolution: i, pooling: i + 1, epilogue: epiloguePool}
	stem := func() string { // of a pooling's launch of y
		if o.pooling == len(launches) || !uses(&launches[o.pooling], y) {
			return ""
		}
		return stemOf(launches[o.pooling].Kernel)
	}
	if stem() == "max_places_fwd" {
		o.argmax = launches[o.pooling].Arguments[0].Buffer
		o.epilogue |= epilogueArgmax
		o.pooling++
	}
	switch stem() {
	case "max_pool_fwd":
	case "max_pool_relu_fwd":
		o.epilogue |= epilogueReLU
	default:
		return nil
	}
	pool := launches[o.pooling].Arguments
	o.pooled, o.height, o.width = pool[0].Buffer, intValue(pool[1+poolQ]), intValue(pool[2+poolQ])
	pooled := [2]int{intValue(pool[2+poolH]), intValue(pool[3+poolH])}
	fits := y.Arena == tensor.Scratch && pooled == [2]int{product.Height, product.Width} && isTwoByTwo(pool[2:])
	if !fits || o.pooled.Overlaps(x) {
		return nil
	}
	for k := range launches {
		if i <= k && k <= o.pooling {
			continue
		}
		if uses(&launches[k], y) {
			return nil
		}
		if o.argmax != nil && uses(&launches[k], o.argmax) {
			if !o.addGradient(&launches[k]) {
				return nil
			}
			o.gradients = append(o.gradients, k)
		}
	}
	return o
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
func (o *pooling) addGradient(l *tensor.Launch) bool {
	kind := 0
	switch stem := stemOf(l.Kernel); stem {
	case "max_places_bwd":
	case "max_places_relu_bwd":
		kind = epiloguePositive
	default:
		return false
	}
	if o.gradients != nil && o.epilogue&epiloguePositive != kind {
		return false
	}
	o.epilogue |= kind
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
func (o *pooling) addLowerings(to map[int]lowering, separate []lowering) {
	convolution := func(pool *pooledOutput, epilogue int) lowering {
		return func(p *planner, l *tensor.Launch) []Call {
			convolved, _ := forwardConv(l)
			g := newProduct(l.Calls[0], convolved)
			g.pooled, g.pool, g.epilogue = true, pool, g.epilogue|epilogue
			return g.lower(p)
		}
	}
	to[o.convolution], separate[o.convolution] = convolution(&o.pooledOutput, o.epilogue), convolution(nil, 0)
	for i := o.convolution + 1; i <= o.pooling; i++ {
		to[i] = func(*planner, *tensor.Launch) []Call { return nil }
	}
	for _, i := range o.gradients {
		to[i] = func(p *planner, l *tensor.Launch) []Call {
			windows := o.pooled.Elements
			u := &unpoolGrad{gradient: l.Arguments[0].Buffer, windows: l.Arguments[1], argmax: o.argmax, height: o.height, width: o.width}
			u.make = Call{
				Symbol: "max_places_relu_bwd_" + o.pooled.DType.Suffix(), Blocks: [2]int{gridSize(p, windows), 1}, Threads: GridStrideThreads,
				Arguments: []tensor.Argument{l.Arguments[0], l.Arguments[1], tensor.In(o.argmax), tensor.Int(windows), tensor.Int(o.width)},
			}
			if p.NoWindows || u.gradient.Arena != tensor.Scratch { // other arenas are read after the step
				return []Call{u.make}
			}
			p.unpoolGrads = append(p.unpoolGrads, u)
			return nil
		}
	}
}
