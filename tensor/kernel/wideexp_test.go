package kernel

import (
	"math"
	"math/big"
	"slices"
	"testing"
)

// All instruction sets give the same bits, within 2^-52 of the exact exponential.
func TestWideExp(t *testing.T) {
	x := []float64{
		0, math.Copysign(0, -1), 1, -1, math.Ln2, -math.Ln2 / 2, 1e-300, -1e-17, 0.25, -708, 709,
		math.Nextafter(-708, 0), math.Nextafter(-708, -800), -709, 710, 1e300, -1e300, math.Inf(1), math.Inf(-1), math.NaN(),
	}
	random := newRandom()
	for range 4000 {
		x = append(x, -30*random.Float64(), 1400*random.Float64()-700, random.NormFloat64())
	}
	onEachInstructionSet(t, func(t *testing.T) {
		all, y := guarded[float64](len(x))
		copy(y, x)
		WideExp(y)
		if !intact(all) {
			t.Error("written out of bounds")
		}
		for i, v := range x {
			if want := wideExp(v); math.Float64bits(y[i]) != math.Float64bits(want) && !(math.IsNaN(y[i]) && math.IsNaN(want)) {
				t.Errorf("WideExp(%g) = %g, in portable Go %g", v, y[i], want)
			}
		}
	})
	worst := 0.0
	for _, v := range x {
		got := wideExp(v)
		switch {
		case math.IsNaN(v):
			if !math.IsNaN(got) {
				t.Errorf("WideExp(NaN) = %g", got)
			}
		case v < -708:
			if got != 0 {
				t.Errorf("WideExp(%g) = %g, want 0", v, got)
			}
		case v > 709:
			if got != wideExp(709) {
				t.Errorf("WideExp(%g) = %g, want e^709", v, got)
			}
		default:
			worst = max(worst, math.Abs(relativeError(got, v)))
		}
	}
	if worst > 0x1p-52 {
		t.Errorf("relative error of %g, want at most 2^-52", worst)
	}
	t.Logf("largest relative error 2^%.2f", math.Log2(worst))
}

// The exponentials of eight rows, and their sums, equal WideExp's on all instruction sets.
func TestSumExp(t *testing.T) {
	random := newRandom()
	for _, width := range []int{1, 2, 3, 10, 33} {
		z := make([]float32, SumExpRows*width)
		for i := range z {
			z[i] = float32(20 * random.NormFloat64())
		}
		z[width-1] = z[0]                  // a tie
		z[width] = float32(math.Inf(-1))   // one of several, or the only one
		z[3*width-1] = float32(math.NaN()) // the last
		z[3*width] = float32(math.NaN())   // the first
		z[4*width+width/2] = 1e30          // nothing next to it counts
		z[5*width+width/2] = float32(math.Inf(1))
		onEachInstructionSet(t, func(t *testing.T) {
			all, e := guarded[float64](len(z))
			var largest, sums [SumExpRows]float64
			SumExp(z, width, e, &largest, &sums)
			if !intact(all) {
				t.Error("written out of bounds")
			}
			for i := range SumExpRows {
				row, want, sum := z[i*width:][:width], make([]float64, width), 0.0
				top := float64(slices.Max(row))
				for k, v := range row {
					want[k] = float64(v) - top
				}
				WideExp(want)
				for _, v := range want {
					sum += v
				}
				if math.IsNaN(sum) {
					if !math.IsNaN(sums[i]) {
						t.Errorf("width %d, row %v: sum %g, want NaN", width, row, sums[i])
					}
					continue
				}
				if largest[i] != top || sums[i] != sum {
					t.Errorf("width %d, row %v: largest %g, sum %g, want %g, %g", width, row, largest[i], sums[i], top, sum)
				}
				for k, v := range want {
					if got := e[SumExpRows*k+i]; got != v {
						t.Errorf("width %d, row %v: exponential %d is %g, want %g", width, row, k, got, v)
					}
				}
			}
		})
	}
}

// relativeError compares y with e^x, which is the 1024th power of the Taylor series of e^(x/1024),
// with 200 bits.
func relativeError(y, x float64) float64 {
	number := func(v float64) *big.Float { return new(big.Float).SetPrec(200).SetFloat64(v) }
	r := new(big.Float).Quo(number(x), number(1024))
	sum, term := number(1), number(1)
	for n := 1.0; n < 40; n++ {
		term.Mul(term, r).Quo(term, number(n))
		sum.Add(sum, term)
	}
	for range 10 {
		sum.Mul(sum, sum)
	}
	difference := new(big.Float).Sub(number(y), sum)
	error, _ := difference.Quo(difference, sum).Float64()
	return error
}
