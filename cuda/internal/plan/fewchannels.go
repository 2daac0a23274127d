package plan

import (
	"fmt"

	"github.com/pollen-ml/pollen/tensor"
)

// fewChannels is a 3 x 3 convolution from 16 to 16 channels or from 32 to 32, or one of its
// gradients. Its kernels (kernels/fewchannels.cuh) read and write the float32 images once, where
// packed copies would be padded to 64 channels, and kernels/im2col.cuh would look up each operand
// nine times. The choice depends on the shape only, so that it does not change a chain's bits.
type fewChannels struct {
	*product
	shape convShape
	rows  int // of a band, which a block processes at a time
}

// Sizes in the kernels, and of a band.
const (
	fewTaps          = 9
	fewForward       = 256 // threads
	fewResident      = 3   // blocks of the forward kernel in a multiprocessor
	bandPixels       = 512 // of a band, about
	maxFilterSlices  = 128 // of a filter's gradient
	fewMaxShared     = 100 << 10
	fewPixelMultiple = 16
)

// fewFilterThreads are the threads of the kernels of filters' gradients, by channels.
var fewFilterThreads = map[int]int{16: 384, 32: 192}

// useFewChannels is false in tests that force other kernels.
var useFewChannels = true

// asFewChannels returns the product by these kernels, or nil if there are none for it.
func (g *product) asFewChannels(p *planner) *fewChannels {
	if !useFewChannels || !g.canPack(p) || p.Precision != BF16 || g.pooled || g.mask != 0 || g.epilogue&^(epilogueBiasRow|epilogueReLU) != 0 {
		return nil
	}
	s := convShapeOf(g)
	same := s.strideH == 1 && s.strideW == 1 && s.dilationH == 1 && s.dilationW == 1 && s.padH == 1 && s.padW == 1 && s.R == 3 && s.S == 3
	if !same || s.C != s.K || s.C != 16 && s.C != 32 || s.W%4 != 0 {
		return nil
	}
	f := &fewChannels{g, s, min(s.H, max(1, bandPixels/s.W))}
	if f.shared() > min(p.Shared, fewMaxShared) {
		return nil
	}
	return f
}

// bands is the number of bands of all images.
func (f *fewChannels) bands() int { return f.shape.B * ceilDiv(f.shape.H, f.rows) }

// shared is a block's shared memory: the lines of a band with its border, next to the filters or
// the lines of the gradient.
func (f *fewChannels) shared() int {
	line := 2 * f.shape.C
	lines := (f.rows + 2) * (f.shape.W + 2) * line
	if f.filterGrad {
		return max(lines+ceilDiv(f.rows*f.shape.W, fewPixelMultiple)*fewPixelMultiple*line, 4*f.shape.K*f.shape.C*fewTaps)
	}
	return lines + f.shape.K*fewTaps*line
}

// lower returns the calls. The filter's gradient is summed over slices of the batch, each by a
// separate block, and then over the slices. The other products pack the filter first.
func (f *fewChannels) lower(p *planner) []Call {
	s := f.shape
	sizes := []tensor.Argument{tensor.Int(s.B), tensor.Int(s.H), tensor.Int(s.W), tensor.Int(f.rows)}
	if f.filterGrad {
		slices := min(s.B, maxFilterSlices)
		partial := p.workBuffer(tensor.Float32, slices*s.K*s.C*fewTaps)
		return []Call{{
			Symbol: fmt.Sprintf("conv2d_few_filter_%d_bf16", s.C), Blocks: [2]int{1, slices}, Threads: fewFilterThreads[s.C], Shared: f.shared(),
			Arguments: append([]tensor.Argument{tensor.Out(partial), f.operands[0], f.operands[1]}, sizes...),
		}, f.sumSlices(p, partial, slices)}
	}
	filter := s.packFilter()
	if !f.forward {
		filter = s.packFilterTransposed()
	}
	w, calls := p.pack(f.operands[1], filter)
	blocks := min(f.bands(), max(1, fewResident*p.Multiprocessors/p.Chains))
	return append(calls, Call{
		Symbol: fmt.Sprintf("conv2d_few_%d_bf16", s.C), Blocks: [2]int{blocks, 1}, Threads: fewForward, Shared: f.shared(),
		Arguments: append(append([]tensor.Argument{f.out, f.operands[0], tensor.In(w), f.biasOr(f.operands[0])}, sizes...),
			tensor.Bool(!f.forward), tensor.Int(f.epilogue)),
	})
}
