package op

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// UpdateTile is how many parameters one tile of an update has. An update leaves one statistic for
// each tile.
const UpdateTile = 4 * random.BlockSize

// UpdateShape is what updates of parameters have in common: w, dw of w's shape, then states of w's
// shape, then the tables and the header, each with one axis. The output is [tiles]: for each, the
// sum over its parameters of theta * g, where g is the gradient that the update followed. N times
// the mean of their total, divided by the number of parameters, is the configurational temperature.
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
	return tensor.Shape{(in[0].Elements() + UpdateTile - 1) / UpdateTile}, nil
}

// UpdateHost is the host side of an update of n parameters: run treats parameters lo to hi and
// returns their statistic. The launch's first argument is the output.
func UpdateHost[T float32 | float64](n int, run func(a *tensor.Args, lo, hi int) float64) tensor.HostKernel {
	return tensor.HostKernel{Phases: []tensor.Phase{{
		Tiles: (n + UpdateTile - 1) / UpdateTile,
		Run: func(a *tensor.Args, tile int) {
			statistic := run(a, tile*UpdateTile, min(n, (tile+1)*UpdateTile))
			tensor.Slice[T](a, 0)[tile] = T(statistic)
		},
	}}}
}

// UpdateGrid is the grid of an update of n parameters: a block for some of the tiles, a thread for
// each four of a tile's parameters.
func UpdateGrid(n int) tensor.Grid {
	return tensor.Shares{Items: above(n, UpdateTile), Most: mostTiles, Threads: min(above(n, 4), updateThreads)}
}

// updateThreads is the most threads of a block, as in cuda/kernels/update.cuh. What a block
// computes once costs next to nothing beside mostTiles tiles.
const (
	updateThreads = 512
	mostTiles     = 16
)

// Entry is the value of a table at the header's step; after its end, the last one.
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

// Descend is theta - rate g, the move down the gradient. The product is not fused with the sum, so
// that every architecture gives the same bits; package kernel's passes round alike.
func Descend[T float32 | float64](theta, rate, g T) T { return theta - T(rate*g) }
