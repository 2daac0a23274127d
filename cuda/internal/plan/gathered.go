package plan

import (
	"slices"
	"strings"

	"github.com/pollen-ml/pollen/tensor"
)

// Indices of the arguments of a launch that gathers images.
const (
	gatherData = iota + 1
	gatherHeader
	gatherCount
	gatherSize
	gatherPixels
	gatherOrder
	gatherAffine // the first of those that convert bytes to numbers
)

const (
	gatherImages   = "gather_images_f32"
	gatherExamples = "gather_examples"
)

// gatherOf returns launch l as a gathered if it gathers images that products can read from the data
// set themselves, or nil.
func (p *planner) gatherOf(l *tensor.Launch) *gathered {
	if l.Calls[0].Kernel != gatherImages || !p.canRound() || p.Chains < minRoundedChains && !onlyRounded {
		return nil
	}
	a := l.Calls[0].Arguments
	g := &gathered{result: a[0].Buffer, arguments: a}
	const chunk, together = 16, 8 // pixels that are copied, or rounded, at once
	if g.result.Arena != tensor.Scratch || p.keptImages[g.result] || g.pixels()%chunk != 0 || intValue(a[gatherAffine])%together != 0 {
		return nil
	}
	g.examples = p.workBuffer(tensor.Int32, g.batch())
	return g
}

func (g *gathered) batch() int  { return intValue(g.arguments[gatherSize]) }
func (g *gathered) pixels() int { return intValue(g.arguments[gatherPixels]) }

// table returns the call that makes the table of the batch's examples.
func (g *gathered) table(p *planner) Call {
	a := g.arguments
	return Call{
		Symbol: gatherExamples, Blocks: [2]int{gridSize(p, g.batch()), 1}, Threads: GridStrideThreads,
		Arguments: []tensor.Argument{tensor.Out(g.examples), a[gatherHeader], a[gatherCount], a[gatherSize], a[gatherOrder]},
	}
}

// noteGathers is called with each launch's calls. In the first pass over a step it notes the
// gathered images that calls read as float32. In the second pass it leaves out the other images: it
// replaces the calls of their launch by the call that makes the table.
func (p *planner) noteGathers(l *tensor.Launch, calls []Call) []Call {
	for result := range p.gathers {
		reads := (&droppable{result: result}).isReadBy
		if slices.ContainsFunc(calls, reads) {
			delete(p.gathers, result)
			p.keptImages[result] = true
		}
	}
	if g := p.gatherOf(l); g != nil {
		p.gathers[g.result] = g
		return []Call{g.table(p)}
	}
	return calls
}

// gatheredOperand returns the operand, 1 or 2, whose images a kernel can read from the data set, in
// the operand's layout, and the launch that gathers them; or 0.
func (g *product) gatheredOperand(p *planner) (operand int, images *gathered) {
	if len(p.gathers) == 0 || tilesOfImages[0].shared > p.Shared || len(g.roundedTiles(p)) == 0 {
		return 0, nil
	}
	transposeA, transposeB := intValue(g.sizes[3]) != 0, intValue(g.sizes[4]) != 0
	if x := p.gathers[g.operands[0].Buffer]; x != nil && !transposeA && transposeB && g.rows == x.batch() && g.depth == x.pixels() {
		return 1, x
	}
	if x := p.gathers[g.operands[1].Buffer]; x != nil && transposeA && !transposeB && g.depth == x.batch() && g.columns == x.pixels() {
		return 2, x
	}
	return 0, nil
}

// fromDataSet returns the arguments of the kernel that reads the images from the data set, between
// the result and the slices.
func (g *product) fromDataSet(images *gathered, epilogue int) []tensor.Argument {
	other := g.operands[2-g.images]
	arguments := []tensor.Argument{other, images.arguments[gatherData], tensor.In(images.examples), g.biasOr(other)}
	return append(append(arguments, g.sizes[:4]...), tensor.Int(epilogue))
}

// complete turns a call of a rounded tile into a call of the kernel that reads the images from the
// data set.
func (x *gathered) complete(c *Call) {
	c.Symbol = strings.Replace(c.Symbol, "rounded", "rounded_images", 1)
	c.Arguments = append(c.Arguments, x.arguments[gatherAffine:]...)
	c.sharedBytes = x.batch() * x.pixels()
}
