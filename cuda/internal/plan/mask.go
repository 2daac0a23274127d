package plan

import (
	"math"
	"strings"

	"github.com/pollen-ml/pollen/tensor"
)

// gradMask is the gradient of a convolution's image, followed by the gradient of the ReLU or ReLU6
// that made the image. The kernel of the first does the work of both: it sets numbers to 0 where
// the image is not positive or, for ReLU6, not below 6. Kernels of depthwise and 1 x 1 convolutions
// can do that.
type gradMask struct {
	convolution, activation int             // indices of the launches
	out, image              tensor.Argument // of the activation's gradient
	epilogue                int
	done                    bool // the convolution's call does the work of the activation's launch
}

// addGradMasks adds the lowerings of the launches that such masks change.
func addGradMasks(launches []tensor.Launch, to map[int]lowering) {
	for i := range launches {
		m := gradMaskAt(launches, i)
		if m == nil || to[m.convolution] != nil || to[m.activation] != nil {
			continue
		}
		to[m.convolution] = m.lower
		to[m.activation] = func(p *planner, l *tensor.Launch) []Call {
			if m.done {
				return nil
			}
			return lower(p, l)
		}
	}
}

// gradMaskAt returns the mask whose convolution is launch i, or nil. Only the activation's gradient
// may read the result of launch i. No launch before the activation's may change the image or use
// the masked gradient.
func gradMaskAt(launches []tensor.Launch, i int) *gradMask {
	if stem := stemOf(launches[i].Kernel); stem != "conv2d_bwd_input" && stem != "grouped_conv2d_bwd_input" {
		return nil
	}
	gradient := launches[i].Arguments[0].Buffer
	if gradient.Arena != tensor.Scratch || gradient.DType != tensor.Float32 {
		return nil
	}
	var m *gradMask
	for k := range launches {
		if k == i || !uses(&launches[k], gradient) {
			continue
		}
		if m != nil || k < i {
			return nil
		}
		a := launches[k].Arguments
		switch stem := stemOf(launches[k].Kernel); {
		case stem == "relu_bwd":
			m = &gradMask{epilogue: epilogueMask}
		case stem == "clip_bwd" && floatValue(a[4]) == 0 && floatValue(a[5]) == 6:
			m = &gradMask{epilogue: epilogueMask | epilogueAtMost6}
		default:
			return nil
		}
		if a[1].Buffer != gradient {
			return nil
		}
		m.convolution, m.activation, m.out, m.image = i, k, a[0], a[2]
	}
	if m == nil {
		return nil
	}
	for _, l := range launches[i:m.activation] {
		for _, a := range l.Arguments {
			if b := a.Buffer; b != nil && (b.Overlaps(m.out.Buffer) || a.Access&tensor.Write != 0 && b.Overlaps(m.image.Buffer)) {
				return nil
			}
		}
	}
	return m
}

// floatValue returns the value of a Float32 argument.
func floatValue(a tensor.Argument) float32 { return math.Float32frombits(uint32(a.Bits)) }

// lower returns the calls of the convolution, and notes whether they apply the mask.
func (m *gradMask) lower(p *planner, l *tensor.Launch) []Call {
	m.done = false
	if len(l.Calls) != 1 {
		return lower(p, l)
	}
	c := l.Calls[0]
	if strings.HasPrefix(c.Kernel, depthwiseStem) {
		m.done = true
		calls := lower(p, l)
		a := calls[0].Arguments
		a[0], a[3], a[len(a)-1] = m.out, m.image, tensor.Int(m.epilogue)
		return calls
	}
	of, is := c.Grid.(tensor.Product)
	if !is {
		return lower(p, l)
	}
	g := newProduct(c, of)
	if few := g.asFewChannels(p); few != nil {
		return few.lower(p)
	}
	if packed := g.lowerPacked(p); packed != nil {
		return packed
	}
	if t := g.tiled(p); t.pixels {
		m.done = true
		t.out, t.bias, t.mask = m.out, &m.image, m.epilogue
		return t.lowerTiles(p)
	}
	return g.lowerTiles(p)
}
