package kernel

import (
	"math"
	"testing"
)

// All instruction sets give the same bits. Tiles overlap where the number of rows is not a multiple
// of a tile's.
func TestWideGram(t *testing.T) {
	var want []float64
	onEachInstructionSet(t, func(t *testing.T) {
		var got []float64
		for _, size := range [][3]int{
			{1, 1, 1}, {1, 40, 40}, {2, 8, 9}, {3, 7, 7}, {3, 24, 24}, {4, 16, 16}, {5, 9, 12}, {6, 0, 3}, {7, 519, 600}, {12, 512, 512}, {17, 1040, 1041},
		} {
			got = append(got, checkGram(t, size[0], size[1], size[2])...)
		}
		if isa == portableGo {
			want = got
		}
		for i, v := range got {
			if v != want[i] {
				t.Fatalf("product %d is %g, in portable Go %g", i, v, want[i])
			}
		}
	})
}

// checkGram compares products with sums one by one, and returns them.
func checkGram(t *testing.T, rows, columns, stride int) []float64 {
	t.Helper()
	x := normals[float32](newRandom(), rows*stride)[:(rows-1)*stride+columns]
	for i := range x { // what lies between rows must not count
		if i%stride >= columns {
			x[i] = float32(math.NaN())
		}
	}
	all, products := guarded[float64](rows * rows)
	allScratch, scratch := guarded[float64](GramScratch(rows))
	WideGram(products, x, rows, columns, stride, scratch)
	if !intact(all) || !intact(allScratch) {
		t.Errorf("%d rows of %d: written out of bounds", rows, columns)
	}
	var results []float64
	for i := range rows {
		for j := range rows {
			got := products[i*rows+j]
			if j < i {
				if got != sentinel {
					t.Fatalf("%d rows of %d: product %d, %d below the diagonal is written", rows, columns, i, j)
				}
				continue
			}
			var exact sum
			for k := range columns {
				exact.add(float64(x[i*stride+k]) * float64(x[j*stride+k]))
			}
			compare(t, []float64{got}, []sum{exact})
			results = append(results, got)
		}
	}
	return results
}

func BenchmarkWideGram(b *testing.B) {
	const rows, columns = 100, 21840
	x, products := normals[float32](newRandom(), rows*columns), make([]float64, rows*rows)
	scratch := make([]float64, GramScratch(rows))
	for b.Loop() {
		WideGram(products, x, rows, columns, columns, scratch)
	}
	b.ReportMetric(rows*(rows+1)*columns*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
}
