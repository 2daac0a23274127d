package plan

import "github.com/pollen-ml/pollen/tensor"

// Bits of the integer by which a kernel selects its epilogue: what it does to the sums in its
// registers before it writes them. The kernels have the same numbers (kernels/product.cuh).
const (
	epilogueBiasColumn = 1   // add a bias for each column, as in a linear layer
	epilogueBiasRow    = 2   // add a bias for each row, as in a convolution, whose rows are filters
	epilogueReLU       = 4   // max(0, y)
	epiloguePool       = 8   // write the maximum of each 2 x 2 window instead of the sums
	epilogueArgmax     = 16  // also write, as a byte, which element of the window it was
	epiloguePositive   = 32  // the byte is "no maximum" where the maximum is not positive, for the gradient of a ReLU
	epilogueMask       = 64  // write 0 where the mask is not positive: the gradient of a ReLU
	epilogueAtMost6    = 128 // min(6, y), which makes ReLU6 of a ReLU
)

// product is a matrix product [rows depth] x [depth columns], or a convolution seen as one
// (implicit GEMM): forward, its rows are filters, its columns are the pixels of all images, and its
// depth is channels x taps. kernels/tile.cuh computes both.
type product struct {
	stem                 string // of the kernels' names; the tile's size and the type follow
	rows, columns, depth int
	out                  tensor.Argument
	operands             []tensor.Argument // the two factors
	sizes                []tensor.Argument // the integers that the kernel takes
	bias                 *tensor.Argument  // the bias, or the mask with epilogueMask; nil without either
	biasInner, biasCount int               // element i of out gets bias[i / biasInner % biasCount]
	epilogue             int
	forward              bool          // the kernel takes a bias and an epilogue
	conv                 bool          // it is a convolution, or a gradient of one
	filterGrad           bool          // it is the gradient of a convolution's filter
	mask                 int           // epilogue bits of an image's gradient that the image masks (mask.go); bias is then the image
	pixels               bool          // it is a 1 x 1 convolution, whose operands are matrices of images' pixels
	pooled               bool          // it is a convolution that pools in a step: only kernels that can do so have the order of its sums
	pool                 *pooledOutput // of a convolution that pools, or nil
	images               int           // the operand, 1 or 2, that is read from the data set, one byte per number; 0 for none
}

// pooledOutput is what a convolution writes instead of its sums if its epilogue pools them.
type pooledOutput struct {
	pooled *tensor.Buffer // the maxima
	argmax *tensor.Buffer // a byte for each window; nil if there are no gradients
}

// intValue returns the value of an Int32 argument.
func intValue(a tensor.Argument) int { return int(int32(uint32(a.Bits))) }

// newProduct returns the product of a call. The call's arguments are the result, both factors, the
// bias or the mask if there is one, and integers.
func newProduct(c tensor.Call, of tensor.Product) *product {
	a := c.Arguments
	stem := stemOf(c.Kernel)
	g := &product{
		stem: stem, rows: of.Rows, columns: of.Columns, depth: of.Depth,
		out: a[0], operands: a[1:3], sizes: a[3:], forward: of.Forward, conv: of.Images, filterGrad: of.Filter,
	}
	if of.ReLU {
		g.epilogue |= epilogueReLU
	}
	if of.AtMost6 {
		g.epilogue |= epilogueAtMost6
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

// biasOr returns the bias, or other for a kernel that will not read it. A kernel's parameters
// cannot be left out, so any buffer is passed for an unused one.
func (g *product) biasOr(other tensor.Argument) tensor.Argument {
	if g.bias != nil {
		return *g.bias
	}
	return other
}

// argmaxOr returns the buffer for the maxima's places, or other for a kernel that will not write
// it.
func (g *product) argmaxOr(other tensor.Argument) tensor.Argument {
	if g.pool != nil && g.pool.argmax != nil {
		return tensor.Out(g.pool.argmax)
	}
	return other
}

// sumSlices returns the call that adds the slices of a parallel split, and applies the epilogue
// (kernels/slices.cu).
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
			tensor.Int(max(1, g.biasInner)), tensor.Int(max(1, g.biasCount)), tensor.Int(g.epilogue | g.mask),
		},
	}
}
