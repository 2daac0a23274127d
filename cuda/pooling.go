package cuda

import "github.com/pollen-ml/pollen/tensor"

// pooling is a convolution's launch with the max-pooling behind it, which becomes part of its
// kernel's epilogue: the convolution's output is not written, though its memory may hold sums of
// slices. Windows are 2 x 2, side by side, and fill the image. The gradient needs to know which
// element of a window was the maximum, instead of the output: the epilogue notes a byte for each.
type pooling struct {
	convolution int // the launch; the pooling is the next one
	gradients   []int
	pooled      *tensor.Buffer
	which       *tensor.Buffer // nil without gradients
	epilogue    int
	height      int // of a plane of windows
	width       int
}

// findPoolings returns the geometries of a schedule's launches that poolings change. The windows'
// notes lie from base on in the scratch arena, and take that many bytes.
func findPoolings(launches []tensor.Launch, base int) (geometries map[int]geometry, bytes int) {
	geometries = map[int]geometry{}
	for i := range launches {
		p := poolingAt(launches, i)
		if p == nil {
			continue
		}
		if p.which != nil {
			p.which.Offset = base + bytes
			bytes += tensor.Align(p.which.Bytes())
		}
		p.geometries(geometries)
	}
	return geometries, bytes
}

// poolingAt is the pooling that begins with launch i, or nil: only this pooling and its gradients
// may read what is pooled.
func poolingAt(launches []tensor.Launch, i int) *pooling {
	if i+1 == len(launches) {
		return nil
	}
	product, ok := convolution(&launches[i])
	if !ok {
		return nil
	}
	conv, pool := launches[i].Arguments, launches[i+1].Arguments
	p := &pooling{convolution: i, epilogue: epiloguePool}
	switch second, _ := stemOf(launches[i+1].Kernel); second {
	case "max_pool_fwd":
	case "max_pool_relu_fwd":
		p.epilogue |= epilogueReLU
	default:
		return nil
	}
	y, x := conv[0].Buffer, conv[1].Buffer
	p.pooled, p.height, p.width = pool[0].Buffer, integer(pool[1+poolQ]), integer(pool[2+poolQ])
	pooled := [2]int{integer(pool[2+poolH]), integer(pool[3+poolH])}
	fits := pool[1].Buffer == y && y.Arena == tensor.Scratch && pooled == [2]int{product.Height, product.Width} && bySquares(pool[2:])
	if !fits || p.pooled.Overlaps(x) {
		return nil
	}
	for k := range launches {
		if k == i || k == i+1 || !uses(&launches[k], y) {
			continue
		}
		if k < i || !p.gradient(&launches[k], y) {
			return nil
		}
		p.gradients = append(p.gradients, k)
	}
	if p.gradients != nil {
		p.epilogue |= epilogueWhich
		p.which = tensor.NewBuffer("which of "+y.Name, tensor.Scratch, tensor.Uint8, p.pooled.Elements)
	}
	return p
}

// convolution is the product of a launch that is a forward convolution.
func convolution(l *tensor.Launch) (tensor.Product, bool) {
	if len(l.Calls) != 1 {
		return tensor.Product{}, false
	}
	g, ok := l.Calls[0].Grid.(tensor.Product)
	return g, ok && g.Images && g.Forward
}

// gradient reports whether a launch that reads y is a gradient of its pooling, and of the same kind
// as those before it.
func (p *pooling) gradient(l *tensor.Launch, y *tensor.Buffer) bool {
	kind := 0
	switch stem, _ := stemOf(l.Kernel); stem {
	case "max_pool_bwd":
	case "max_pool_relu_bwd":
		kind = epiloguePositive
	default:
		return false
	}
	if l.Arguments[2].Buffer != y || l.Arguments[1].Buffer == y || !bySquares(l.Arguments[3:]) {
		return false
	}
	if p.gradients != nil && p.epilogue&epiloguePositive != kind {
		return false
	}
	p.epilogue |= kind
	return true
}

// Where some of a pooling's sizes are.
const (
	poolH = 1
	poolQ = 4
)

// bySquares reports whether a pooling's sizes, planes H W P Q R S strides padding, are of 2 x 2
// windows that fill the image.
func bySquares(sizes []tensor.Argument) bool {
	var n [11]int
	for i := range n {
		n[i] = integer(sizes[i])
	}
	h, w, p, q := n[poolH], n[poolH+1], n[poolQ-1], n[poolQ]
	return h == 2*p && w == 2*q && [6]int(n[poolQ+1:]) == [6]int{2, 2, 2, 2, 0, 0}
}

// uses reports whether a launch uses a buffer.
func uses(l *tensor.Launch, b *tensor.Buffer) bool {
	for _, a := range l.Arguments {
		if a.Buffer == b {
			return true
		}
	}
	return false
}

// geometries adds the geometries of the pooling's launches.
func (p *pooling) geometries(to map[int]geometry) {
	to[p.convolution] = func(place *placement, l *tensor.Launch) []call {
		convolved, _ := convolution(l)
		g := productOf(l.Calls[0], convolved)
		g.pool, g.epilogue = p, g.epilogue|p.epilogue
		return g.calls(place)
	}
	to[p.convolution+1] = func(*placement, *tensor.Launch) []call { return nil }
	for _, i := range p.gradients {
		to[i] = func(place *placement, l *tensor.Launch) []call {
			windows := p.pooled.Elements
			s := &spread{gradient: l.Arguments[0].Buffer, windows: l.Arguments[1], which: p.which, height: p.height, width: p.width}
			s.make = call{
				symbol: "max_pool_which_bwd_" + p.pooled.DType.Suffix(), blocks: [2]int{enough(place, windows), 1}, threads: stridingThreads,
				arguments: []tensor.Argument{l.Arguments[0], l.Arguments[1], tensor.In(p.which), tensor.Int(windows), tensor.Int(p.width)},
			}
			if s.gradient.Arena != tensor.Scratch { // it is read after the step
				return []call{s.make}
			}
			place.spreads = append(place.spreads, s)
			return nil
		}
	}
}
