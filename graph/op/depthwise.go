package op

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/kernel"
)

// depthwise is a convolution for which a GPU has special kernels (cuda/kernels/depthwise.cu): a
// filter of 3 x 3 or 5 x 5 taps for each plane, with stride 1 or 2 and without dilation, in
// float32.
type depthwise struct {
	kernel.GroupedConv2D
}

// The work of a thread and the threads of a block, as in cuda/kernels/strips.cuh and depthwise.cu.
// A thread computes depthwiseRows x depthwiseColumns outputs or, for the gradient by an image with
// stride 2, stridePairRows pairs of rows.
const (
	depthwiseRows    = 7
	depthwiseColumns = 2
	stridePairRows   = 4
	stripThreads     = 256
)

// stridePairs returns the number of pairs, in an image with pad rows or columns of padding on each
// side, that contain its n rows or columns. Windows with stride 2 begin at pairs.
func stridePairs(n, pad int) int { return (pad+n-1)/2 - pad/2 + 1 }

func depthwiseOf(k kernel.GroupedConv2D, dtype tensor.DType) (d depthwise, is bool) {
	one, size, stride := k.Groups == k.C && k.Groups == k.K, k.R == k.S && (k.R == 3 || k.R == 5), k.StrideH == k.StrideW && k.StrideH <= 2
	return depthwise{k}, one && size && stride && k.DilationH == 1 && k.DilationW == 1 && dtype == tensor.Float32
}

// stem returns a kernel's name, such as depthwise_3x3_stride1_fwd.
func (d depthwise) stem(direction string) string {
	return fmt.Sprintf("depthwise_%dx%d_stride%d_%s", d.R, d.S, d.StrideH, direction)
}

// sizes returns the integer arguments of a kernel whose threads compute rows of the height rows
// each.
func (d depthwise) sizes(height, rows int) []tensor.Argument {
	var sizes []tensor.Argument
	for _, n := range []int{d.B, d.C, d.H, d.W, d.P(), d.Q(), d.PadH, d.PadW, ceilDiv(height, rows)} {
		sizes = append(sizes, tensor.Int(n))
	}
	return sizes
}

// strips returns a grid with a thread for each strip of rows x columns elements of all planes.
func (d depthwise) strips(height, width, rows, columns int) tensor.Blocks {
	return tensor.Blocks{Count: ceilDiv(d.B*d.C*ceilDiv(height, rows)*ceilDiv(width, columns), stripThreads), Threads: stripThreads}
}

// forward returns the call with an epilogue that adds a bias, unless that is nil, and clips.
func (d depthwise) forward(l *graph.Lowering, bias *tensor.Argument, low, high float64) tensor.Call {
	arguments := []tensor.Argument{l.Out(), l.In(0), l.In(1), l.In(1)}
	if bias != nil {
		arguments[3] = *bias
	}
	arguments = append(append(arguments, d.sizes(d.P(), depthwiseRows)...), tensor.Bool(bias != nil), tensor.Float(l.DType, low), tensor.Float(l.DType, high))
	return l.Call(d.stem("fwd"), d.strips(d.P(), d.Q(), depthwiseRows, depthwiseColumns), arguments...)
}

// backwardInput returns the call of the gradient by the image. A GPU may let it do the work of the
// gradient of a ReLU or of ReLU6 that follows: argument 3 is then the image, and the last one is an
// epilogue (cuda/internal/plan/mask.go).
func (d depthwise) backwardInput(l *graph.Lowering) tensor.Call {
	height, width, rows, columns := d.H, d.W, depthwiseRows, depthwiseColumns
	if d.StrideH == 2 {
		// A thread has pairs of rows of the padded image, and a pair of columns.
		height, width, rows, columns = stridePairs(d.H, d.PadH), stridePairs(d.W, d.PadW), stridePairRows, 1
	}
	arguments := append([]tensor.Argument{l.Out(), l.In(0), l.In(1), l.In(1)}, d.sizes(height, rows)...) // no mask: any buffer
	return l.Call(d.stem("bwd_input"), d.strips(height, width, rows, columns), append(arguments, tensor.Int(0))...)
}

// The gradient by the filter is computed in parts. A thread sums up to depthwiseRounds strips, and
// fewer if there would otherwise be fewer than depthwiseBlocks blocks.
const (
	depthwiseBlocks = 1024
	depthwiseRounds = 8
)

// backwardFilter returns the calls of the gradient by the filter: the sums of parts of the images,
// and the sum of these. A GPU may let the first one also make the gradient of a bias: argument 3 is
// then a table of sums, and the last one 1 (cuda/internal/plan/depthwise.go).
func (d depthwise) backwardFilter(l *graph.Lowering) []tensor.Call {
	all := ceilDiv(d.B*ceilDiv(d.P(), depthwiseRows)*ceilDiv(d.Q(), depthwiseColumns), stripThreads)
	rounds := max(1, min(depthwiseRounds, all*d.C/depthwiseBlocks))
	parts, n := ceilDiv(all, rounds), l.Shape.Elements()
	partial := tensor.NewWorkspace(tensor.Float64, parts*n)
	arguments := append([]tensor.Argument{tensor.Out(partial), l.In(0), l.In(1), tensor.Out(partial)}, d.sizes(d.P(), depthwiseRows)...)
	return []tensor.Call{
		l.Call(d.stem("bwd_filter"), tensor.Blocks{Count: d.C, Parts: parts, Threads: stripThreads}, append(arguments, tensor.Int(rounds), tensor.Int(0))...),
		sumPartial(l, l.Out(), partial, parts, n, 1),
	}
}

// bounds returns the limits between which an epilogue clips, infinite where it does not clip.
func (e epilogue) bounds() (low, high float64) {
	low, high = math.Inf(-1), math.Inf(1)
	if e.relu {
		low = 0
	}
	if e.ceiling > 0 {
		high = float64(e.ceiling)
	}
	return low, high
}
