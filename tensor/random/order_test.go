package random

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"
)

func TestOrderIsBijection(t *testing.T) {
	for _, size := range []uint64{1, 2, 3, 4, 5, 10, 31, 33, 64, 255, 256, 257, 1025, 60000} {
		for epoch := range uint64(3) {
			order := NewOrder(size, 9, 1, epoch)
			seen := make([]bool, size)
			for i := range size {
				x := order.At(i)
				if x >= size || seen[x] {
					t.Fatalf("size %d, epoch %d: position %d gives %d, which is outside or was given before", size, epoch, i, x)
				}
				seen[x] = true
				if y := Permute(i, size, 9, 1, epoch); y != x {
					t.Fatalf("size %d, position %d: Permute gives %d, At %d", size, i, y, x)
				}
			}
		}
	}
}

// TestOrderLargeSizes: in range and free of collisions where the halves fill their 32 bits.
func TestOrderLargeSizes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Uint64Range(1<<40, math.MaxUint64).Draw(t, "size")
		first := rapid.Uint64Range(0, size-100).Draw(t, "first")
		order := NewOrder(size, 1, 2, 3)
		seen := map[uint64]bool{}
		for i := first; i < first+100; i++ {
			x := order.At(i)
			if x >= size || seen[x] {
				t.Fatalf("size %d: position %d gives %d, which is outside or was given before", size, i, x)
			}
			seen[x] = true
		}
	})
}

// TestOrderGolden pins the order: a resumed run must find the order with which it started.
func TestOrderGolden(t *testing.T) {
	order := NewOrder(60000, 1, 2, 3)
	var got [5]uint64
	for i := range got {
		got[i] = order.At(uint64(i))
	}
	if want := [5]uint64{38604, 21648, 45674, 22998, 52714}; got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestOrderKeys(t *testing.T) {
	const size = 60000
	base := NewOrder(size, 5, 6, 7)
	for name, other := range map[string]Order{
		"seed":  NewOrder(size, 5+1<<32, 6, 7),
		"chain": NewOrder(size, 5, 7, 7),
		"epoch": NewOrder(size, 5, 6, 8),
	} {
		fixed := 0
		for i := range uint64(size) {
			if base.At(i) == other.At(i) {
				fixed++
			}
		}
		// Two random orders agree in a Poisson number of places with mean 1.
		if fixed > 8 {
			t.Errorf("orders that differ in the %s agree in %d of %d places, want about 1", name, fixed, size)
		}
	}
}

// chiSquare fails when the counts are too far from equal, or too near.
func chiSquare(t *testing.T, name string, counts []float64, freedom int) {
	t.Helper()
	var sum, statistic float64
	for _, c := range counts {
		sum += c
	}
	expected := sum / float64(len(counts))
	for _, c := range counts {
		statistic += (c - expected) * (c - expected) / expected
	}
	p := distuv.ChiSquared{K: float64(freedom)}.Survival(statistic)
	t.Logf("%s: chi-square %.1f with %d degrees of freedom, p = %.4f", name, statistic, freedom, p)
	if p < 1e-5 || p > 1-1e-5 {
		t.Errorf("%s: chi-square %.1f with %d degrees of freedom, p = %g", name, statistic, freedom, p)
	}
}

// TestOrderSmallSizes: over many epochs all orders of a small set are equally frequent.
func TestOrderSmallSizes(t *testing.T) {
	for _, c := range []struct {
		size   uint64
		orders int
	}{{2, 2}, {3, 6}, {4, 24}, {5, 120}, {6, 720}} {
		frequency := map[uint64]float64{}
		for epoch := range uint64(100 * c.orders) {
			order := NewOrder(c.size, 17, 0, epoch)
			var code uint64
			for i := range c.size {
				code = code*c.size + order.At(i)
			}
			frequency[code]++
		}
		if len(frequency) != c.orders {
			t.Errorf("size %d: %d different orders came up, want all %d", c.size, len(frequency), c.orders)
		}
		var counts []float64
		for _, n := range frequency {
			counts = append(counts, n)
		}
		chiSquare(t, "orders", counts, c.orders-1)
	}
}

// TestOrderPositions: over many epochs each element comes to each position, and each pair of
// elements to neighbouring positions, equally often.
func TestOrderPositions(t *testing.T) {
	for _, size := range []uint64{10, 16, 21} {
		n := int(size)
		positions, pairs := make([]float64, n*n), make([]float64, n*n)
		for epoch := range uint64(20000) {
			order := NewOrder(size, 18, 0, epoch)
			previous := -1
			for i := range n {
				x := int(order.At(uint64(i)))
				positions[i*n+x]++
				if previous >= 0 {
					pairs[previous*n+x]++
				}
				previous = x
			}
		}
		chiSquare(t, "positions", positions, (n-1)*(n-1))
		var different []float64
		for i, c := range pairs {
			if i/n != i%n {
				different = append(different, c)
			}
		}
		chiSquare(t, "neighbours", different, n*(n-1)-1)
	}
}

// TestOrderOfAnEpoch: within one order of 60 000, an element is correlated neither with its
// position, nor with those shortly before it, nor with the next epoch's and chain's at the same
// position; and a batch's elements spread evenly.
func TestOrderOfAnEpoch(t *testing.T) {
	const size, bins = 60000, 100
	draw := func(chain uint32, epoch uint64) []float64 {
		order := NewOrder(size, 19, chain, epoch)
		x := make([]float64, size)
		for i := range x {
			x[i] = float64(order.At(uint64(i)))
		}
		return x
	}
	x := draw(0, 0)
	check := func(name string, x, y []float64) {
		checkScore(t, name, stat.Correlation(x, y, nil)*math.Sqrt(float64(len(x))))
	}
	index := make([]float64, size)
	for i := range index {
		index[i] = float64(i)
	}
	check("position", x, index)
	check("next epoch", x, draw(0, 1))
	check("next chain", x, draw(1, 0))
	for _, lag := range []int{1, 2, 3, 4, 8, 100, 128, 256, 512} {
		check("lag", x[lag:], x[:size-lag])
	}
	counts := make([]float64, bins*bins)
	for i, value := range x {
		counts[i*bins/size*bins+int(value)*bins/size]++
	}
	chiSquare(t, "batches", counts, (bins-1)*(bins-1))
}
