package kernel

import (
	"math"
	"math/big"
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
