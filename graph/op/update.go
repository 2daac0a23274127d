package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// UpdateTile is how many parameters a tile of an update of n has.
func UpdateTile(n int) int {
	if n <= smallTiles*random.BlockSize {
		return random.BlockSize
	}
	return 4 * random.BlockSize
}

// smallTiles are the most tiles for which they are small, so that small parameters keep more of a
// GPU busy, as in cuda/kernels/update.cuh.
const smallTiles = 128

// UpdateTiles is how many tiles and statistics an update of n parameters has.
func UpdateTiles(n int) int { return ceilDiv(n, UpdateTile(n)) }

// TileOfUpdate is where a tile of n parameters begins and ends.
func TileOfUpdate(n, tile int) (lo, hi int) {
	each := UpdateTile(n)
	return tile * each, min(n, (tile+1)*each)
}

// UpdateShape is what updates of parameters have in common: w, dw and states of w's shape, then the
// tables and the header, each with one axis. The output is [tiles]: for each, the sum over its
// parameters of theta * g, where g is the gradient that the update followed. N times the mean of
// their total, divided by the parameters' number, is the configurational temperature.
func UpdateShape(in []tensor.Shape, states, tables int) (tensor.Shape, error) {
	if len(in) != 2+states+tables+1 {
		return nil, errors.Errorf("got %d inputs, wants w, dw, %d states, %d tables and the header", len(in), states, tables)
	}
	for i, shape := range in {
		switch {
		case i < 2+states && !shape.Equal(in[0]):
			return nil, errors.Errorf("input %d has shape %v, wants the parameter's %v", i, shape, in[0])
		case i >= 2+states && len(shape) != 1:
			return nil, errors.Errorf("input %d has shape %v, wants one axis: a table or the header", i, shape)
		}
	}
	return tensor.Shape{UpdateTiles(in[0].Elements())}, nil
}

// UpdateHost is a rule's host side, with the output first: f32 or f64, as floats are, updates
// parameters lo to hi and returns their statistic.
func UpdateHost[R any](l *graph.Lowering, n int, rule R, f32, f64 func(rule R, a *tensor.Args, lo, hi int) float64) tensor.HostKernel {
	return tensor.HostKernel{Phases: []tensor.Phase{{
		Tiles: UpdateTiles(n),
		Run:   graph.Pick(l, updateTile[float32](n, rule, f32), updateTile[float64](n, rule, f64)),
	}}}
}

// updateTile hands over the rule as an argument, since the compiler does not inline what a closure
// in a generic function calls.
func updateTile[T float32 | float64, R any](n int, rule R, run func(rule R, a *tensor.Args, lo, hi int) float64) func(a *tensor.Args, tile int) {
	return func(a *tensor.Args, tile int) {
		lo, hi := TileOfUpdate(n, tile)
		tensor.Slice[T](a, 0)[tile] = T(run(rule, a, lo, hi))
	}
}

// UpdateGrid is the grid of an update of n parameters: a block for some tiles, a thread for a four.
func UpdateGrid(n int) tensor.Grid {
	return tensor.Shares{Items: UpdateTiles(n), Most: maxTiles, Threads: min(ceilDiv(n, 4), UpdateTile(n)/4, updateThreads), Rows: true}
}

// updateThreads is the most threads of a block, as in cuda/kernels/update.cuh. What a block
// computes once costs next to nothing beside maxTiles tiles.
const (
	updateThreads = 512
	maxTiles      = 16
)

// Entry is the value of a table at the header's step, or the last one.
func Entry[T float32 | float64](table []T, header []uint64) T {
	return table[min(header[graph.HeaderStep], uint64(len(table)-1))]
}

// AddressOf is where the numbers of a stream lie in the header's step.
func AddressOf(header []uint64, stream uint16) random.Address {
	return random.Address{
		Seed: header[graph.HeaderSeed], Chain: uint32(header[graph.HeaderChain]),
		Step: header[graph.HeaderStep], Stream: stream,
	}
}

// Descend is theta - rate g, not fused: it has the same bits everywhere.
func Descend[T float32 | float64](theta, rate, g T) T { return theta - T(rate*g) }
