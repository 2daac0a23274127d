package cuda

import (
	"fmt"

	"github.com/pollen-ml/pollen/tensor"
)

// The kernels' epilogues.
const (
	epilogueBiasColumn = 1
	epilogueBiasRow    = 2
	epilogueReLU       = 4
	epiloguePool       = 8
	epilogueWhich      = 16
	epiloguePositive   = 32
	epilogueMask       = 64
)

// product is a launch as kernels/tile.cuh sees it.
type product struct {
	stem                 string // of the kernels' names; the tile's size and the type follow
	rows, columns, depth int
	out                  tensor.Argument
	operands             []tensor.Argument // all that is read, without the bias
	sizes                []tensor.Argument
	bias                 *tensor.Argument // or the mask
	biasInner, biasCount int              // element i of out is given bias[i / biasInner % biasCount]
	epilogue             int
	forward              bool // whether the kernel takes a bias and an epilogue
	images, filter       bool // whether it is a convolution's, and its filter's gradient
	pool                 *pooling
}

// integer is the value of an Int32 argument.
func integer(a tensor.Argument) int { return int(int32(uint32(a.Bits))) }

// productOf is the product of a call. Its arguments are the result, both operands, the bias or the
// mask if there is one, and integers.
func productOf(c tensor.Call, of tensor.Product) *product {
	a := c.Arguments
	stem, _ := stemOf(c.Kernel)
	g := &product{
		stem: stem, rows: of.Rows, columns: of.Columns, depth: of.Depth,
		out: a[0], operands: a[1:3], sizes: a[3:], forward: of.Forward, images: of.Images, filter: of.Filter,
	}
	if of.ReLU {
		g.epilogue |= epilogueReLU
	}
	switch {
	case a[3].Buffer == nil:
		return g
	case of.Mask:
		g.epilogue |= epilogueMask
	case of.Images:
		g.biasInner, g.biasCount = of.Height*of.Width, of.Rows
		g.epilogue |= epilogueBiasRow
	default:
		g.biasInner, g.biasCount = 1, of.Columns
		g.epilogue |= epilogueBiasColumn
	}
	g.bias, g.sizes = &a[3], a[4:]
	return g
}

// calls are the product's kernel, and the sum of its slices if these are apart; or those of a
// filter's gradient of windows, of a convolution of few channels or on packed copies, or of a thin
// product of matrices, if that is better.
func (g *product) calls(p *placement) []call {
	if windows := g.windowCalls(p); windows != nil {
		return windows
	}
	if few := g.forwardCalls(p); few != nil {
		return few
	}
	if packed := g.packedCalls(p); packed != nil {
		return packed
	}
	if thin := g.thinCalls(p); thin != nil {
		return thin
	}
	dtype := g.out.Buffer.DType
	tiles, ending := g.tilesFor(p)
	c := g.cut(p, tiles)
	target, epilogue := g.out, g.epilogue
	switch {
	case c.apart:
		target, epilogue = tensor.Out(p.work(dtype, c.slices*g.rows*g.columns)), epilogue&epiloguePool
	case g.pool != nil && c.slices == 1:
		target = g.operands[0] // a placeholder: only the maxima are written
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
		symbol: fmt.Sprintf("%s_%s_%s", g.stem, c.tile.size(), ending),
		blocks: blocks, threads: c.tile.threads, shared: c.shared(g),
		arguments: append(arguments, tensor.Int(c.slices), tensor.Int(c.each)), cycles: g.cost(p, c, p.chains) - c.sumCost(g, p.chains),
	}}
	if c.apart {
		calls = append(calls, g.sum(p, target.Buffer, c.slices))
	}
	return calls
}

// biasOr is the bias, or a placeholder for a kernel that will not read it.
func (g *product) biasOr(other tensor.Argument) tensor.Argument {
	if g.bias != nil {
		return *g.bias
	}
	return other
}

// whichOr is the buffer for the places of the windows' maxima, or a placeholder.
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
		symbol: "slices_" + partial.DType.Suffix(), threads: stridingThreads,
		blocks: [2]int{enough(p, threads), 1},
		arguments: []tensor.Argument{
			out, tensor.In(partial), g.biasOr(tensor.In(partial)), g.whichOr(tensor.In(partial)), tensor.Int(n), tensor.Int(slices),
			tensor.Int(max(1, g.biasInner)), tensor.Int(max(1, g.biasCount)), tensor.Int(g.epilogue),
		},
	}
}
