package cuda

import (
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// TileSizes are the sizes of the tiles that matrix products of a type have in a precision on GPUs
// of a capability.
func TileSizes(precision Precision, capability int, dtype tensor.DType) [][2]int {
	var sizes [][2]int
	tiles, _ := tilesOf(&placement{precision: precision, capability: capability}, dtype)
	for _, t := range tiles {
		sizes = append(sizes, [2]int{t.rows, t.columns})
	}
	return sizes
}

// OnlyTile removes all other tiles, until the test ends, from the tables that have one of the size.
func OnlyTile(t *testing.T, rows, columns int) {
	for _, table := range []*[]tile{&tilesFloat32, &tilesFloat64, &tilesFP32, &tilesTF32, &tilesBF16} {
		for _, one := range *table {
			if one.rows == rows && one.columns == columns {
				all := *table
				*table = []tile{one}
				t.Cleanup(func() { *table = all })
			}
		}
	}
}
