package plan

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// thin is an instance of the kernels of kernels/matmul_thin.cu, for products of at most maxThin
// rows, columns or depths.
type thinTile struct {
	kind  thinKind
	max   int // rows, columns or depths
	each  int // of dots, a warp's rows at once; of columns, a thread's
	turns int // of dots, a warp's; of a shallow product, a thread's rows
}

// thinKind is a way to compute such a product; each has sums of another order.
type thinKind string

const (
	thinDots    thinKind = "dots"    // the longer side lies along the depth, which a warp's lanes share
	thinColumns thinKind = "columns" // the depth is the longer side's rows, which a block's threads share
	thinShallow thinKind = "shallow" // the depth is in a thread's registers
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

// The cost of a thin product is in the same cycles as a tile's. Both constants come from calls that
// an H100 took 2 to 3 µs for; what a call takes besides is counted in instructions and bytes.
var cyclesPerThinBlock = 1500.0 // for blocks to begin and to write; a test has other costs

const loadLatency = 800.0 // for loads that are issued together to come from the second-level cache

// isThin reports whether there are kernels for the product: of matrices in float32.
func (g *product) isThin() bool {
	return g.forward && !g.conv && g.out.Buffer.DType == tensor.Float32 && (g.shorter() <= maxThin || g.depth <= maxThin)
}

// few and longer are the product's rows and columns; rows are the few if they are fewer.
func (g *product) shorter() int         { return min(g.rows, g.columns) }
func (g *product) longer() int          { return max(g.rows, g.columns) }
func (g *product) rowsAreShorter() bool { return g.rows < g.columns }

// alongDepth reports whether neighbours in depth are neighbours in memory, of the longer side and
// of the other.
func (g *product) alongDepth() (longer, few bool) {
	a, b := intValue(g.sizes[3]) == 0, intValue(g.sizes[4]) != 0
	if g.rowsAreShorter() {
		return b, a
	}
	return a, b
}

// thinKinds are the ways in which the product can be computed.
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

// thinTiles are the instances that there are.
var thinTiles = []thinTile{
	{thinDots, 16, 1, 1}, {thinDots, 16, 2, 1}, {thinDots, 32, 1, 1}, {thinDots, 32, 2, 1},
	{thinColumns, 16, 1, 1}, {thinColumns, 16, 4, 1}, {thinColumns, 32, 1, 1}, {thinColumns, 32, 2, 1},
	{thinShallow, 16, 1, 1}, {thinShallow, 32, 1, 1},
}

// thinTurns are the turns that may be chosen: several save loads where there are blocks enough.
var thinTurns = []int{1, 2, 4, 8, 16}

// thinCandidates are the instances of a way that fit the product, with their turns.
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

// parts are the warps that share the depth of dots: by the shape alone, as they are part of the
// sums' order.
func (g *product) depthParts() int { return min(maxDotsParts, ceilDiv(g.depth, thinDepths)) }

// grid are a chain's blocks, and their threads.
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

// work estimates what a block does: the times that it waits for loads, the cycles in which a
// multiprocessor issues its instructions, and the bytes of operands that it reads.
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

// cheapestThin is the cheapest instance of a way, and its cycles.
func (g *product) cheapestThin(p *planner, kind thinKind, chains int) (best thinTile, least float64) {
	least = math.Inf(1)
	for _, t := range g.thinCandidates(kind) {
		if cost := t.cost(p, g, chains); cost < least {
			best, least = t, cost
		}
	}
	return best, least
}

// thinKindOf is the way to compute the product, or "" if tiles are better. It may not depend on the
// number of chains, as sums have another order: the costs for one chain and for manyChains decide
// together.
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

// lowerThin is the product by one of these kernels, or nil if tiles are better.
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
