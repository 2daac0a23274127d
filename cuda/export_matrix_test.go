package cuda

import "testing"

// TileSizes are the sizes of the tiles that matrix products of float32 have in a precision.
func TileSizes(precision Precision) [][2]int {
	var sizes [][2]int
	for _, t := range map[Precision][]tile{FP32: tilesFloat32, TF32: tilesTF32, BF16: tilesBF16}[precision] {
		sizes = append(sizes, [2]int{t.rows, t.columns})
	}
	return sizes
}

// OnlyTile takes all other tiles away until the test ends, from the tables that have one of the size.
func OnlyTile(t *testing.T, rows, columns int) {
	for _, table := range []*[]tile{&tilesFloat32, &tilesFloat64, &tilesTF32, &tilesBF16} {
		for _, one := range *table {
			if one.rows == rows && one.columns == columns {
				all := *table
				*table = []tile{one}
				t.Cleanup(func() { *table = all })
			}
		}
	}
}
