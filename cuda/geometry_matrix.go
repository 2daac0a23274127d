package cuda

import (
	"fmt"

	"github.com/pollen-ml/pollen/tensor"
)

// matrixGeometries are those of matrix products and convolutions, which are products too (kernels/conv2d.cu).
var matrixGeometries = map[string]geometry{
	"matmul_fwd":        func(p *placement, l *tensor.Launch) []call { return matmul(p, l, false) },
	"matmul_bias_fwd":   func(p *placement, l *tensor.Launch) []call { return matmul(p, l, true) },
	"conv2d_fwd":        func(p *placement, l *tensor.Launch) []call { return convolutionOf(l, false).calls(p) },
	"conv2d_bias_fwd":   func(p *placement, l *tensor.Launch) []call { return convolutionOf(l, true).calls(p) },
	"conv2d_bwd_input":  convolveBackwardInput,
	"conv2d_bwd_filter": convolveBackwardFilter,
}

// The kernels' epilogues.
const (
	epilogueBiasColumn = 1
	epilogueBiasRow    = 2
	epilogueReLU       = 4
	epiloguePool       = 8
	epilogueWhich      = 16
	epiloguePositive   = 32
)

// product is a launch as kernels/tile.cuh sees it.
type product struct {
	stem                 string // of the kernels, which go on with the tile's size and the type
	rows, columns, depth int
	out                  tensor.Argument
	operands             []tensor.Argument // all that is read, without the bias
	sizes                []tensor.Argument
	bias                 *tensor.Argument
	biasInner, biasCount int // element i of out is given bias[i / biasInner % biasCount]
	epilogue             int
	forward              bool // whether the kernel takes a bias and an epilogue
	images               bool // whether it is a convolution's
	pool                 *pooling
}

// integer is the value of an Int32 argument.
func integer(a tensor.Argument) int { return int(int32(uint32(a.Bits))) }

func flagged(a tensor.Argument, flag int) int {
	if integer(a) != 0 {
		return flag
	}
	return 0
}

// matmul is launch (out, a, b, [bias], M, N, K, transposeA, transposeB, relu).
func matmul(p *placement, l *tensor.Launch, bias bool) []call {
	a := l.Arguments
	scalars := a[3:]
	if bias {
		scalars = a[4:]
	}
	g := product{
		stem: "matmul", rows: integer(scalars[0]), columns: integer(scalars[1]), depth: integer(scalars[2]),
		out: a[0], operands: a[1:3], sizes: scalars[:5], epilogue: flagged(scalars[5], epilogueReLU), forward: true,
	}
	if bias {
		g.bias, g.biasInner, g.biasCount = &a[3], 1, g.columns
		g.epilogue |= epilogueBiasColumn
	}
	return g.calls(p)
}

// convolution are the sizes at the end of a convolution's arguments, in their order.
type convolution struct{ b, c, h, w, k, r, s, p, q int }

const convolutionSizes = 15

func sizesOf(a []tensor.Argument) convolution {
	return convolution{
		b: integer(a[0]), c: integer(a[1]), h: integer(a[2]), w: integer(a[3]), k: integer(a[4]),
		r: integer(a[5]), s: integer(a[6]), p: integer(a[7]), q: integer(a[8]),
	}
}

// convolutionOf is launch (y, x, w, [bias], sizes, relu).
func convolutionOf(l *tensor.Launch, bias bool) *product {
	a := l.Arguments
	sizes := a[3:]
	if bias {
		sizes = a[4:]
	}
	c := sizesOf(sizes)
	g := &product{
		stem: "conv2d_fwd", rows: c.k, columns: c.b * c.p * c.q, depth: c.c * c.r * c.s,
		out: a[0], operands: a[1:3], sizes: sizes[:convolutionSizes], epilogue: flagged(sizes[convolutionSizes], epilogueReLU),
		forward: true, images: true,
	}
	if bias {
		g.bias, g.biasInner, g.biasCount = &a[3], c.p*c.q, c.k
		g.epilogue |= epilogueBiasRow
	}
	return g
}

// convolveBackwardInput is launch (dx, dout, w, sizes).
func convolveBackwardInput(p *placement, l *tensor.Launch) []call {
	a := l.Arguments
	c := sizesOf(a[3:])
	g := product{
		stem: "conv2d_bwd_input", rows: c.c, columns: c.b * c.h * c.w, depth: c.k * c.r * c.s,
		out: a[0], operands: a[1:3], sizes: a[3:], images: true,
	}
	return g.calls(p)
}

// convolveBackwardFilter is launch (dw, dout, x, sizes).
func convolveBackwardFilter(p *placement, l *tensor.Launch) []call {
	a := l.Arguments
	c := sizesOf(a[3:])
	g := product{
		stem: "conv2d_bwd_filter", rows: c.k, columns: c.c * c.r * c.s, depth: c.b * c.p * c.q,
		out: a[0], operands: a[1:3], sizes: a[3:], images: true,
	}
	return g.calls(p)
}

// calls are the product's kernel, and the sum of its slices where these are apart.
func (g *product) calls(p *placement) []call {
	dtype := g.out.Buffer.DType
	tiles, ending := tilesOf(p, dtype)
	c := g.cut(p, tiles)
	target, epilogue := g.out, g.epilogue
	switch {
	case c.apart:
		target, epilogue = tensor.Out(p.work(dtype, c.slices*g.rows*g.columns)), epilogue&epiloguePool
	case g.pool != nil && c.slices == 1:
		target = g.operands[0] // stands there alone: nothing is written but the maxima
	}
	blocks := [2]int{c.tile.blocks(g), 1}
	if c.apart {
		blocks[1] = c.slices
	}
	arguments := append([]tensor.Argument{target}, g.operands...)
	if g.forward {
		arguments = append(arguments, g.biasOr(g.operands[0]))
		if g.images {
			pooled, which := g.operands[0], g.operands[0]
			if g.pool != nil && !c.apart {
				pooled, which = tensor.Out(g.pool.pooled), g.whichOr(which)
			}
			arguments = append(arguments, pooled, which)
		}
		arguments = append(append(arguments, g.sizes...), tensor.Int(epilogue))
	} else {
		arguments = append(arguments, g.sizes...)
	}
	calls := []call{{
		symbol: fmt.Sprintf("%s_%dx%d_%s", g.stem, c.tile.rows, c.tile.columns, ending),
		blocks: blocks, threads: c.tile.threads, shared: c.tile.sharedBytes(g.images),
		arguments: append(arguments, tensor.Int(c.slices), tensor.Int(c.each)),
	}}
	if c.apart {
		calls = append(calls, g.sum(p, target.Buffer, c.slices))
	}
	return calls
}

// biasOr is the bias, or what stands in its place for a kernel that will not read it.
func (g *product) biasOr(other tensor.Argument) tensor.Argument {
	if g.bias != nil {
		return *g.bias
	}
	return other
}

// whichOr is what notes the windows' maxima, or what stands in its place.
func (g *product) whichOr(other tensor.Argument) tensor.Argument {
	if g.pool != nil && g.pool.which != nil {
		return tensor.Out(g.pool.which)
	}
	return other
}

// sum adds the slices (kernels/slices.cu).
func (g *product) sum(p *placement, partial *tensor.Buffer, slices int) call {
	n := g.rows * g.columns
	out, threads := g.out, n
	if g.pool != nil {
		out, threads = tensor.Out(g.pool.pooled), n/4
	}
	return call{
		symbol: "slices_" + partial.DType.Suffix(), threads: elementwiseThreads,
		blocks: [2]int{enough(p, threads), 1},
		arguments: []tensor.Argument{
			out, tensor.In(partial), g.biasOr(tensor.In(partial)), g.whichOr(tensor.In(partial)), tensor.Int(n), tensor.Int(slices),
			tensor.Int(max(1, g.biasInner)), tensor.Int(max(1, g.biasCount)), tensor.Int(g.epilogue),
		},
	}
}
