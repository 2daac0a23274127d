package cuda

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/tensor"
)

// thin is an instance of the kernels of kernels/matmul_thin.cu, for products of at most maxThin
// rows, columns or depths.
type thin struct {
	kind  thinKind
	most  int // rows, columns or depths
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
	thinParts      = 8   // warps that share the depth of dots, at most
	thinDepths     = 128 // of dots, that a warp adds at once
	thinGroups     = 4   // warps of a block of dots whose depth is not shared
	columnsThreads = 512
	columnsLanes   = 8 // threads of a block side by side
	columnsParts   = columnsThreads / columnsLanes
	shallowThreads = 128
)

// The cost of a thin product is in the same cycles as a tile's. Both constants come from calls that
// an H100 took 2 to 3 µs for; what a call takes besides is counted in instructions and bytes.
var costOfThin = 1500.0 // for blocks to begin and to write; a test has other costs

const costOfLoads = 800.0 // for loads that are issued together to come from the second-level cache

// isThin reports whether there are kernels for the product: of matrices in float32.
func (g *product) isThin() bool {
	return g.forward && !g.images && g.out.Buffer.DType == tensor.Float32 && (g.few() <= maxThin || g.depth <= maxThin)
}

// few and longer are the product's rows and columns; rows are the few if they are fewer.
func (g *product) few() int      { return min(g.rows, g.columns) }
func (g *product) longer() int   { return max(g.rows, g.columns) }
func (g *product) fewRows() bool { return g.rows < g.columns }

// alongDepth reports whether neighbours in depth are neighbours in memory, of the longer side and
// of the other.
func (g *product) alongDepth() (longer, few bool) {
	a, b := integer(g.sizes[3]) == 0, integer(g.sizes[4]) != 0
	if g.fewRows() {
		return b, a
	}
	return a, b
}

// thinKinds are the ways in which the product can be computed.
func (g *product) thinKinds() (kinds []thinKind) {
	if g.depth <= maxThin {
		kinds = append(kinds, thinShallow)
	}
	if g.few() <= maxThin {
		kind := thinColumns
		if along, _ := g.alongDepth(); along {
			kind = thinDots
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// tilesThin are the instances that there are.
var tilesThin = []thin{
	{thinDots, 16, 1, 1}, {thinDots, 16, 2, 1}, {thinDots, 32, 1, 1}, {thinDots, 32, 2, 1},
	{thinColumns, 16, 1, 1}, {thinColumns, 16, 4, 1}, {thinColumns, 32, 1, 1}, {thinColumns, 32, 2, 1},
	{thinShallow, 16, 1, 1}, {thinShallow, 32, 1, 1},
}

// thinTurns are the turns that may be chosen: several save loads where there are blocks enough.
var thinTurns = []int{1, 2, 4, 8, 16}

// thinTiles are the instances of a way that fit the product, with their turns.
func (g *product) thinTiles(kind thinKind) (tiles []thin) {
	size, turns := g.few(), thinTurns
	if kind == thinShallow {
		size = g.depth
	}
	if kind == thinColumns {
		turns = []int{1}
	}
	for _, t := range tilesThin {
		if t.kind != kind || size > t.most || t.most > maxThin/2 && size <= maxThin/2 {
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
func (g *product) parts() int { return min(thinParts, ceil(g.depth, thinDepths)) }

// grid are a chain's blocks, and their threads.
func (t thin) grid(g *product) (blocks, threads int) {
	switch t.kind {
	case thinDots:
		if parts := g.parts(); parts > 1 {
			return ceil(g.longer(), t.each*t.turns), parts * warp
		}
		return ceil(g.longer(), t.each*t.turns*thinGroups), thinGroups * warp
	case thinColumns:
		return ceil(g.longer(), columnsLanes*t.each), columnsThreads
	default:
		return ceil(ceil(g.columns, 4)*ceil(g.rows, t.turns), shallowThreads), shallowThreads
	}
}

// work estimates what a block does: the times that it waits for loads, the cycles in which a
// multiprocessor issues its instructions, and the bytes of operands that it reads.
func (t thin) work(g *product) (waits int, issue, bytes float64) {
	_, threads := t.grid(g)
	warps, sums := threads/warp, t.each*t.most
	switch t.kind {
	case thinDots:
		rows := t.each * t.turns
		if g.parts() == 1 {
			rows *= warps
		}
		rounds := ceil(ceil(g.depth, thinDepths), g.parts())
		lines := 4 * (t.each + g.few()) // of 128 bytes
		if _, along := g.alongDepth(); !along {
			lines = 4 * (t.each + g.few()*g.few())
		}
		return rounds * t.turns, float64(warps * t.turns * (rounds*(lines+sums) + 2*sums)), float64(4 * g.depth * (rows + g.few()))
	case thinColumns:
		rounds := ceil(g.depth, columnsParts)
		return ceil(rounds*sums, 4*t.most), float64(warps * (rounds*(t.each+g.few()+sums/4) + 3*sums/2)), float64(4 * g.depth * (columnsLanes*t.each + g.few()))
	default:
		across := min(threads, ceil(g.columns, 4))
		lines := 4 * t.most
		if integer(g.sizes[4]) != 0 {
			lines *= 4
		}
		return t.turns, float64(warps * (lines + t.turns*(2*t.most+16))), float64(16 * across * g.depth)
	}
}

// cost estimates the cycles.
func (t thin) cost(p *placement, g *product, chains int) float64 {
	blocks, _ := t.grid(g)
	waits, issue, bytes := t.work(g)
	share := float64(ceil(blocks*chains, max(1, p.multiprocessors)))
	return costOfThin + float64(waits)*costOfLoads + share*max(issue, bytes/bytesPerCycle)
}

// cheapestThin is the cheapest instance of a way, and its cycles.
func (g *product) cheapestThin(p *placement, kind thinKind, chains int) (best thin, least float64) {
	least = math.Inf(1)
	for _, t := range g.thinTiles(kind) {
		if cost := t.cost(p, g, chains); cost < least {
			best, least = t, cost
		}
	}
	return best, least
}

// thinKindOf is the way to compute the product, or "" if tiles are better. It may not depend on the
// number of chains, as sums have another order: the costs for one chain and for manyChains decide
// together.
func (g *product) thinKindOf(p *placement) (best thinKind) {
	if !g.isThin() || math.IsInf(costOfThin, 1) {
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

func (t thin) symbol(stem string) string {
	return fmt.Sprintf("%s_thin_%s_%dx%d_f32", stem, t.kind, t.most, t.each)
}

// thinCalls is the product by one of these kernels, or nil if tiles are better.
func (g *product) thinCalls(p *placement) []call {
	kind := g.thinKindOf(p)
	if kind == "" {
		return nil
	}
	t, cycles := g.cheapestThin(p, kind, p.chains)
	blocks, threads := t.grid(g)
	arguments := append([]tensor.Argument{g.out, g.operands[0], g.operands[1], g.biasOr(g.operands[0])}, g.sizes...)
	arguments = append(arguments, tensor.Int(g.epilogue), tensor.Bool(g.fewRows()), tensor.Int(g.parts()), tensor.Int(t.turns))
	return []call{{symbol: t.symbol(g.stem), blocks: [2]int{blocks, 1}, threads: threads, arguments: arguments, cycles: cycles}}
}
