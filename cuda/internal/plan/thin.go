package plan

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// thinTile is an instance of the kernels of kernels/matmul_thin.cu, for products with at most
// maxThin rows, columns or depths. A classifier's last layer has such products, forward and
// backward. A tile of tile.go would spend most of its time waiting for one stage after another;
// these kernels issue all their loads at once.
type thinTile struct {
	kind  thinKind
	max   int // the most rows, columns or depths
	each  int // dots: rows that a warp computes at once; columns: columns that a thread computes
	turns int // dots: number of times that a warp computes such rows; shallow: rows of a thread
}

// thinKind is a way to compute a thin product. Each adds up its sums in another order, so their
// bits differ by rounding.
type thinKind string

const (
	// The depth is contiguous in the longer operand, and a warp's lanes share it: dot products.
	thinDots thinKind = "dots"
	// The depth runs across the rows of the longer operand, and a block's threads share it.
	thinColumns thinKind = "columns"
	// The whole depth fits into a thread's registers.
	thinShallow thinKind = "shallow"
)

const (
	maxThin        = 32
	maxDotsParts   = 8   // warps that share the depth of dots, at most
	thinDepths     = 128 // of dots, that a warp adds at once
	dotsWarps      = 4   // warps of a block of dots whose depth is not shared
	columnsThreads = 512
	columnsLanes   = 8 // threads of a block side by side
	columnsParts   = columnsThreads / columnsLanes
	shallowThreads = 128
)

// The cost of a thin product is in the same cycles as a tile's. This constant and loadLatency come
// from calls that took an H100 2 to 3 µs; the rest of a call's time is computed from its
// instructions and bytes.
var cyclesPerThinBlock = 1500.0 // for blocks to begin and to write; force.go changes it

// isThin reports whether these kernels can compute the product. They multiply in float32 in all
// precisions: a precision is a lower bound.
func (g *product) isThin() bool {
	return g.forward && !g.conv && g.out.Buffer.DType == tensor.Float32 && (g.shorter() <= maxThin || g.depth <= maxThin)
}

// shorter and longer are the smaller and the larger of the result's two sides.
func (g *product) shorter() int         { return min(g.rows, g.columns) }
func (g *product) longer() int          { return max(g.rows, g.columns) }
func (g *product) rowsAreShorter() bool { return g.rows < g.columns }

// alongDepth reports whether neighbours in depth are neighbours in memory, in the operand of the
// longer side and in the other one.
func (g *product) alongDepth() (longer, few bool) {
	a, b := intValue(g.sizes[3]) == 0, intValue(g.sizes[4]) != 0
	if g.rowsAreShorter() {
		return b, a
	}
	return a, b
}

// thinKinds returns the ways to compute the product.
func (g *product) thinKinds() (kinds []thinKind) {
	if g.depth <= maxThin {
		kinds = append(kinds, thinShallow)
	}
	if g.shorter() <= maxThin {
		kind := thinColumns
		if along, _ := g.alongDepth(); along {
			kind = thinDots
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// thinTiles are the instances for which there are kernels.
var thinTiles = []thinTile{
	{thinDots, 16, 1, 1}, {thinDots, 16, 2, 1}, {thinDots, 32, 1, 1}, {thinDots, 32, 2, 1},
	{thinColumns, 16, 1, 1}, {thinColumns, 16, 4, 1}, {thinColumns, 32, 1, 1}, {thinColumns, 32, 2, 1},
	{thinShallow, 16, 1, 1}, {thinShallow, 32, 1, 1},
}

// thinTurns are the turns to choose from. With many turns there are fewer blocks, and each loads
// the shorter operand only once.
var thinTurns = []int{1, 2, 4, 8, 16}

// thinCandidates returns the instances of a kind that fit the product, with all their turns.
func (g *product) thinCandidates(kind thinKind) (tiles []thinTile) {
	size, turns := g.shorter(), thinTurns
	if kind == thinShallow {
		size = g.depth
	}
	if kind == thinColumns {
		turns = []int{1}
	}
	for _, t := range thinTiles {
		if t.kind != kind || size > t.max || t.max > maxThin/2 && size <= maxThin/2 {
			continue
		}
		for _, t.turns = range turns {
			tiles = append(tiles, t)
		}
	}
	return tiles
}

// depthParts is the number of warps that share the depth of dot products. It follows from the shape
// only, because it determines the order of the sums.
func (g *product) depthParts() int { return min(maxDotsParts, ceilDiv(g.depth, thinDepths)) }

// grid returns the blocks for each chain, and their threads.
func (t thinTile) grid(g *product) (blocks, threads int) {
	switch t.kind {
	case thinDots:
		if parts := g.depthParts(); parts > 1 {
			return ceilDiv(g.longer(), t.each*t.turns), parts * warp
		}
		return ceilDiv(g.longer(), t.each*t.turns*dotsWarps), dotsWarps * warp
	case thinColumns:
		return ceilDiv(g.longer(), columnsLanes*t.each), columnsThreads
	default:
		return ceilDiv(ceilDiv(g.columns, 4)*ceilDiv(g.rows, t.turns), shallowThreads), shallowThreads
	}
}

// work estimates what a block does: how many times it waits for loads, the cycles that a
// multiprocessor takes to issue its instructions, and the bytes of operands that it reads.
func (t thinTile) work(g *product) (waits int, issue, bytes float64) {
	_, threads := t.grid(g)
	warps, sums := threads/warp, t.each*t.max
	switch t.kind {
	case thinDots:
		rows := t.each * t.turns
		if g.depthParts() == 1 {
			rows *= warps
		}
		rounds := ceilDiv(ceilDiv(g.depth, thinDepths), g.depthParts())
		lines := 4 * (t.each + g.shorter()) // of 128 bytes
		if _, along := g.alongDepth(); !along {
			lines = 4 * (t.each + g.shorter()*g.shorter())
		}
		return rounds * t.turns, float64(warps * t.turns * (rounds*(lines+sums) + 2*sums)), float64(4 * g.depth * (rows + g.shorter()))
	case thinColumns:
		rounds := ceilDiv(g.depth, columnsParts)
		issue = float64(warps * (rounds*(t.each+g.shorter()+sums/4) + 3*sums/2))
		bytes = float64(4 * g.depth * (columnsLanes*t.each + g.shorter()))
		return ceilDiv(rounds*sums, 4*t.max), issue, bytes
	default:
		across := min(threads, ceilDiv(g.columns, 4))
		lines := 4 * t.max
		if intValue(g.sizes[4]) != 0 {
			lines *= 4
		}
		return t.turns, float64(warps * (lines + t.turns*(2*t.max+16))), float64(16 * across * g.depth)
	}
}

// cost estimates the cycles.
func (t thinTile) cost(p *planner, g *product, chains int) float64 {
	blocks, _ := t.grid(g)
	waits, issue, bytes := t.work(g)
	share := float64(ceilDiv(blocks*chains, max(1, p.Multiprocessors)))
	return cyclesPerThinBlock + float64(waits)*loadLatency + share*max(issue, bytes/bytesPerCycle)
}

// cheapestThin returns the cheapest instance of a kind, and its cycles.
func (g *product) cheapestThin(p *planner, kind thinKind, chains int) (thinTile, float64) {
	return cheapestOf(g.thinCandidates(kind), func(t thinTile) float64 { return t.cost(p, g, chains) })
}

// thinKindOf returns how to compute the product, or "" if tiles are better. The choice changes the
// order of sums, so it may not depend on the number of chains: the product of the costs for one
// chain and for manyChains decides.
func (g *product) thinKindOf(p *planner) (best thinKind) {
	if !g.isThin() || math.IsInf(cyclesPerThinBlock, 1) {
		return ""
	}
	tiles, _ := g.tilesFor(p)
	one := g.cheapest(p, tiles, 1, g.sliceCounts())
	many := g.cheapest(p, tiles, manyChains, []int{one.slices})
	least := max(0, math.Log(g.cost(p, one, 1))+math.Log(g.cost(p, many, manyChains)))
	for _, kind := range g.thinKinds() {
		_, one := g.cheapestThin(p, kind, 1)
		_, many := g.cheapestThin(p, kind, manyChains)
		if sum := math.Log(max(1, one)) + math.Log(max(1, many)); sum < least {
			best, least = kind, sum
		}
	}
	return best
}

func (t thinTile) symbol(stem string) string {
	return fmt.Sprintf("%s_thin_%s_%dx%d_f32", stem, t.kind, t.max, t.each)
}

// lowerThin returns the product by one of these kernels, or nil if tiles are better.
func (g *product) lowerThin(p *planner) []Call {
	kind := g.thinKindOf(p)
	if kind == "" {
		return nil
	}
	t, cycles := g.cheapestThin(p, kind, p.Chains)
	blocks, threads := t.grid(g)
	arguments := append([]tensor.Argument{g.out, g.operands[0], g.operands[1], g.biasOr(g.operands[0])}, g.sizes...)
	arguments = append(arguments, tensor.Int(g.epilogue), tensor.Bool(g.rowsAreShorter()), tensor.Int(g.depthParts()), tensor.Int(t.turns))
	return []Call{{Symbol: t.symbol(g.stem), Blocks: [2]int{blocks, 1}, Threads: threads, Arguments: arguments, Cycles: cycles}}
}
