package plan

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
	epilogueArgmax     = 16
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
	conv, filterGrad     bool // whether it is a convolution's, and its filter's gradient
	pool                 *pooling
}

// integer is the value of an Int32 argument.
func intValue(a tensor.Argument) int { return int(int32(uint32(a.Bits))) }

// newProduct is the product of a call. Its arguments are the result, both operands, the bias or the
// mask if there is one, and integers.
func newProduct(c tensor.Call, of tensor.Product) *product {
	a := c.Arguments
	stem, _ := splitSuffix(c.Kernel)
	g := &product{
		stem: stem, rows: of.Rows, columns: of.Columns, depth: of.Depth,
		out: a[0], operands: a[1:3], sizes: a[3:], forward: of.Forward, conv: of.Images, filterGrad: of.Filter,
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
func (g *product) lower(p *planner) []Call {
	if windows := g.lowerWindowFilterGrad(p); windows != nil {
		return windows
	}
	if few := g.lowerWindowForward(p); few != nil {
		return few
	}
	if packed := g.lowerPacked(p); packed != nil {
		return packed
	}
	if thin := g.lowerThin(p); thin != nil {
		return thin
	}
	dtype := g.out.Buffer.DType
	tiles, ending := g.tilesFor(p)
	c := g.split(p, tiles)
	target, epilogue := g.out, g.epilogue
	switch {
	case c.parallel:
		target, epilogue = tensor.Out(p.workBuffer(dtype, c.slices*g.rows*g.columns)), epilogue&epiloguePool
	case g.pool != nil && c.slices == 1:
		target = g.operands[0] // a placeholder: only the maxima are written
	}
	blocks := [2]int{c.tile.blocks(g), 1}
	if c.parallel {
		blocks[1] = c.slices
	}
	arguments := append([]tensor.Argument{target}, g.operands...)
	if g.forward {
		arguments = append(arguments, g.biasOr(g.operands[0]))
		if g.conv {
			pooled, which := g.operands[0], g.operands[0]
			if g.pool != nil && !c.parallel {
				pooled, which = tensor.Out(g.pool.pooled), g.argmaxOr(which)
			}
			arguments = append(arguments, pooled, which)
		}
		arguments = append(append(arguments, g.sizes...), tensor.Int(epilogue))
	} else {
		arguments = append(arguments, g.sizes...)
	}
	calls := []Call{{
		Symbol: fmt.Sprintf("%s_%s_%s", g.stem, c.tile.name(), ending),
		Blocks: blocks, Threads: c.tile.threads, Shared: c.shared(g),
		Arguments: append(arguments, tensor.Int(c.slices), tensor.Int(c.sliceDepth)), Cycles: g.cost(p, c, p.Chains) - c.sumCost(g, p.Chains),
	}}
	if c.parallel {
		calls = append(calls, g.sumSlices(p, target.Buffer, c.slices))
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

// argmaxOr is the buffer for the places of the windows' maxima, or a placeholder.
func (g *product) argmaxOr(other tensor.Argument) tensor.Argument {
	if g.pool != nil && g.pool.argmax != nil {
		return tensor.Out(g.pool.argmax)
	}
	return other
}

// sum adds the slices (kernels/slices.cu).
func (g *product) sumSlices(p *planner, partial *tensor.Buffer, slices int) Call {
	n := g.rows * g.columns
	out, threads := g.out, n
	if g.pool != nil {
		out, threads = tensor.Out(g.pool.pooled), n/4
	}
	return Call{
		Symbol: "slices_" + partial.DType.Suffix(), Threads: GridStrideThreads,
		Blocks: [2]int{gridSize(p, threads), 1},
		Arguments: []tensor.Argument{
			out, tensor.In(partial), g.biasOr(tensor.In(partial)), g.argmaxOr(tensor.In(partial)), tensor.Int(n), tensor.Int(slices),
			tensor.Int(max(1, g.biasInner)), tensor.Int(max(1, g.biasCount)), tensor.Int(g.epilogue),
		},
	}
}
