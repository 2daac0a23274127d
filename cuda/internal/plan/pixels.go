package plan

import "github.com/pollen-ml/pollen/tensor"

// tiled returns the product in the form that tiles compute. A 1 x 1 convolution with stride 1 and
// without padding becomes a product of matrices, whose pixels come in images (kernels/pixels.cuh).
// Its operands are copied four numbers at a time, like those of matrices, if an image has a
// multiple of four pixels.
func (g *product) tiled(p *planner) *product {
	if g.pixels || !g.conv || g.out.Buffer.DType != tensor.Float32 || p.Capability < SM80 || p.NoPixels || g.pooled {
		return g
	}
	s := convShapeOf(g)
	pixels := s.H * s.W
	if s.taps() != 1 || s.P*s.Q != pixels || s.strideH != 1 || s.strideW != 1 || s.padH != 0 || s.padW != 0 || pixels%4 != 0 {
		return g
	}
	one := *g
	one.pixels, one.stem = true, "conv1x1"+g.stem[len("conv2d"):]
	one.sizes = []tensor.Argument{tensor.Int(s.B), tensor.Int(s.C), tensor.Int(s.K), tensor.Int(pixels)}
	return &one
}

// looksUp reports whether the product's kernels look up the address of each number of an operand.
func (g *product) looksUp() bool { return g.conv && !g.pixels }
