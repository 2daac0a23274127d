package plan

import (
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// gathered is a launch that gathers the images of a step's batch from the data set, as float32. A
// product by a rounded tile can read the data set itself, by a table of the batch's examples. If
// all calls that read the images can, only the table is made.
type gathered struct {
	result    *tensor.Buffer
	arguments []tensor.Argument // of the launch
	examples  *tensor.Buffer    // the table
}

// Indices of the arguments of a launch that gathers images.
const (
	gatherData = iota + 1
	gatherHeader
	gatherCount
	gatherSize
	gatherPixels
	gatherOrder
	gatherAffine // the first of those that make numbers of bytes
)

const (
	gatherImages   = "gather_images_f32"
	gatherExamples = "gather_examples"
)

// gatherOf returns a launch of a step that gathers images for products by rounded tiles, or nil.
func (p *planner) gatherOf(l *tensor.Launch) *gathered {
	if l.Calls[0].Kernel != gatherImages || !p.canRound() || p.Chains < minRoundedChains && !onlyRounded {
		return nil
	}
	a := l.Calls[0].Arguments
	g := &gathered{result: a[0].Buffer, arguments: a}
	const chunk, together = 16, 8 // pixels that are copied, or rounded, at once
	if g.result.Arena != tensor.Scratch || g.pixels()%chunk != 0 || intValue(a[gatherAffine])%together != 0 {
		return nil
	}
	g.examples = p.workBuffer(tensor.Int32, g.batch())
	return g
}

func (g *gathered) batch() int  { return intValue(g.arguments[gatherSize]) }
func (g *gathered) pixels() int { return intValue(g.arguments[gatherPixels]) }

// table returns the call that makes the table.
func (g *gathered) table(p *planner) Call {
	a := g.arguments
	return Call{
		Symbol: gatherExamples, Blocks: [2]int{gridSize(p, g.batch()), 1}, Threads: GridStrideThreads,
		Arguments: []tensor.Argument{tensor.Out(g.examples), a[gatherHeader], a[gatherCount], a[gatherSize], a[gatherOrder]},
	}
}

// fromDataSet returns the call of a product by a rounded tile that reads its images from the data
// set, or nil if neither operand is the step's images, in a layout that the kernel can read.
func (g *product) fromDataSet(p *planner, c split, target tensor.Argument, epilogue int) *Call {
	of := func(operand int) *gathered { return p.gathers[g.operands[operand].Buffer] }
	transposeA, transposeB := intValue(g.sizes[3]) != 0, intValue(g.sizes[4]) != 0
	images, other := of(0), g.operands[1]
	c.images = 1
	fits := images != nil && !transposeA && transposeB && g.rows == images.batch() && g.depth == images.pixels()
	if transposeA {
		images, other, c.images = of(1), g.operands[0], 2
		fits = images != nil && !transposeB && g.depth == images.batch() && g.columns == images.pixels()
	}
	if c.tile = tileOfImages; !fits || c.tile.shared > p.Shared {
		return nil
	}
	arguments := []tensor.Argument{target, other, images.arguments[gatherData], tensor.In(images.examples), g.biasOr(other)}
	arguments = append(append(arguments, g.sizes[:4]...), tensor.Int(epilogue), tensor.Int(c.slices), tensor.Int(c.sliceDepth))
	call := Call{
		Symbol: "matmul_rounded_images_128x128_bf16", Blocks: [2]int{c.tile.blocks(g), 1}, Threads: c.tile.threads, Shared: c.tile.shared,
		Arguments: append(arguments, images.arguments[gatherAffine:]...), Cycles: g.cost(p, c, p.Chains) - c.sumCost(g, p.Chains),
		sharedBytes: images.batch() * images.pixels(),
	}
	if c.parallel {
		call.Blocks[1] = c.slices
	}
	return &call
}

// dropGathers drops, from a step's calls, images that only products read which can read the data
// set themselves. Of the others it drops the table.
func dropGathers(calls []Call, gathers map[*tensor.Buffer]*gathered) []Call {
	for _, g := range gathers {
		reads := func(c Call) bool { return (&droppable{result: g.result}).isReadBy(c) }
		drop := gatherImages
		if slices.ContainsFunc(calls, func(c Call) bool { return reads(c) && c.fromDataSet == nil }) {
			drop = gatherExamples
		}
		for i, c := range calls {
			if drop == gatherImages && reads(c) {
				calls[i] = *c.fromDataSet
				calls[i].Launch = c.Launch
			}
		}
		calls = slices.DeleteFunc(calls, func(c Call) bool {
			return c.Symbol == drop && (c.writes(g.result) || c.writes(g.examples))
		})
	}
	return calls
}
