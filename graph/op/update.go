package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// UpdateTile returns the number of parameters in a tile of an update of n parameters. A tile is the
// unit of work of a thread, and has one statistic.
func UpdateTile(n int) int {
	if n <= smallTiles*random.BlockSize {
		return random.BlockSize
	}
	return 4 * random.BlockSize
}

// smallTiles is the maximum number of small tiles of an update; a larger parameter has larger
// tiles. Small tiles let a small parameter keep more of a GPU busy. cuda/kernels/update.cuh has
// the same number.
const smallTiles = 128

// UpdateTiles returns the number of tiles, and of statistics, of an update of n parameters.
func UpdateTiles(n int) int { return ceilDiv(n, UpdateTile(n)) }

// TileOfUpdate returns the range of parameters, lo to hi, of a tile of an update of n parameters.
func TileOfUpdate(n, tile int) (lo, hi int) {
	each := UpdateTile(n)
	return tile * each, min(n, (tile+1)*each)
}

// UpdateShape checks the inputs that all updates of parameters have: w, dw and states of the shape
// of w, then the tables and the header, each with one axis. The output is [tiles]: for each tile,
// the sum over its parameters of theta * g, where g is the gradient that the update followed. N
// times the mean over steps of their total, divided by the number of parameters, is the
// configurational temperature.
func UpdateShape(in []tensor.Shape, states, tables int) (tensor.Shape, error) {
	if len(in) != 2+states+tables+1 {
		return nil, errors.Errorf("inputs must be w, dw, %d states, %d tables and the header, got %d", states, tables, len(in))
	}
	for i, shape := range in {
		switch {
		case i < 2+states && !shape.Equal(in[0]):
			return nil, errors.Errorf("input %d must have the parameter's shape %v, got %v", i, in[0], shape)
		case i >= 2+states && len(shape) != 1:
			return nil, errors.Errorf("input %d must be a table or the header, with one axis, got shape %v", i, shape)
		}
	}
	return tensor.Shape{UpdateTiles(in[0].Elements())}, nil
}

// UpdateHost returns the host kernel of an update of n parameters, whose first argument is the
// output. f32 or f64, as the op computes, updates parameters lo to hi by the rule and returns their
// statistic.
func UpdateHost[R any](l *graph.Lowering, n int, rule R, f32, f64 func(rule R, a *tensor.Args, lo, hi int) float64) tensor.HostKernel {
	return tensor.HostKernel{Phases: []tensor.Phase{{
		Tiles: UpdateTiles(n),
		Run:   graph.Pick(l, updateTile[float32](n, rule, f32), updateTile[float64](n, rule, f64)),
	}}}
}

// updateTile passes the rule as an argument, because Go's compiler does not inline the functions
// that a closure in a generic function calls.
func updateTile[T float32 | float64, R any](n int, rule R, run func(rule R, a *tensor.Args, lo, hi int) float64) func(a *tensor.Args, tile int) {
	return func(a *tensor.Args, tile int) {
		lo, hi := TileOfUpdate(n, tile)
		tensor.Slice[T](a, 0)[tile] = T(run(rule, a, lo, hi))
	}
}

// UpdateGrid returns the grid of an update of n parameters: a block for several tiles, a thread for
// four parameters.
func UpdateGrid(n int) tensor.Grid {
	return tensor.Shares{Items: UpdateTiles(n), MaxItems: maxTiles, Threads: min(ceilDiv(n, 4), UpdateTile(n)/4, updateThreads), Rows: true}
}

// updateThreads is the maximum number of threads of a block, as in cuda/kernels/update.cuh. The
// work that a block does once is negligible compared with maxTiles tiles.
const (
	updateThreads = 512
	maxTiles      = 16
)

// Entry returns the entry of a table at the header's step, or the last entry after its end.
func Entry[T float32 | float64](table []T, header []uint64) T {
	return table[min(header[graph.HeaderStep], uint64(len(table)-1))]
}

// AddressOf returns the address of a stream's random numbers in the header's chain and step.
func AddressOf(header []uint64, stream uint16) random.Address {
	return random.Address{
		Seed: header[graph.HeaderSeed], Chain: uint32(header[graph.HeaderChain]),
		Step: header[graph.HeaderStep], Stream: stream,
	}
}

// Descend returns theta - rate g. The conversion keeps the compiler from fusing product and
// difference, so that the bits are the same on every machine.
func Descend[T float32 | float64](theta, rate, g T) T { return theta - T(rate*g) }
