package plan

import (
	"strings"

	"github.com/pollen-ml/pollen/tensor"
)

// Indices of the arguments of the kernels for filter gradients of depthwise convolutions
// (kernels/depthwise.cu).
const (
	depthwiseSums = 3
	depthwiseB    = 4
	depthwiseC    = 5
	depthwiseH    = 6
	depthwiseW    = 7
	depthwiseP    = 8
	depthwiseQ    = 9
	depthwisePad  = 10
)

// depthwiseStem begins the names of all kernels of depthwise convolutions.
const depthwiseStem = "depthwise_"

// isDepthwiseFilter reports whether a call computes the gradient of a depthwise convolution's
// filter.
func isDepthwiseFilter(c tensor.Call) bool {
	return strings.HasPrefix(c.Kernel, depthwiseStem) && strings.HasSuffix(c.Kernel, "_bwd_filter_f32")
}

// lowerDepthwiseFilter returns the calls of such a gradient. The kernel goes through the gradient
// of the convolution's output, and may also sum it for the bias.
func (p *planner) lowerDepthwiseFilter(c tensor.Call, g tensor.Blocks) []Call {
	a := c.Arguments
	s := Call{Symbol: c.Kernel, Blocks: [2]int{g.Count, max(1, g.Parts)}, Threads: g.Threads, Arguments: a}
	t := p.fusedSum(a[1].Buffer, intValue(a[depthwiseP])*intValue(a[depthwiseQ]), intValue(a[depthwiseC]))
	if t == nil {
		return []Call{s}
	}
	sums, more := t.partialSums(p, s.Blocks[1])
	a[depthwiseSums], a[len(a)-1] = sums, tensor.Int(1)
	t.separate = t.depthwiseSeparately(c, g)
	return append([]Call{s}, more...)
}

// depthwiseSeparately returns the separate lowering of a bias gradient whose sums such a call makes
// in a step. It calls the kernel for 3 x 3 filters with the gradient as both operands, and ignores
// its result: the sums are the same for all filters and strides.
func (t *biasGradSum) depthwiseSeparately(c tensor.Call, g tensor.Blocks) lowering {
	return func(p *planner, l *tensor.Launch) []Call {
		p.biasGradSums = []*biasGradSum{t.forLaunch(l)}
		defer func() { p.biasGradSums = nil }()
		a := append([]tensor.Argument(nil), c.Arguments...)
		a[0] = tensor.Out(p.workBuffer(tensor.Float64, g.Parts*g.Count*9))
		a[1], a[2] = l.Arguments[1], l.Arguments[1]
		a[depthwiseH], a[depthwiseW] = a[depthwiseP], a[depthwiseQ]
		a[depthwisePad], a[depthwisePad+1] = tensor.Int(1), tensor.Int(1)
		return p.lowerDepthwiseFilter(tensor.Call{Kernel: depthwiseStem + "3x3_stride1_bwd_filter_f32", Grid: g, Arguments: a}, g)
	}
}
