package stock

import (
	"math"
	"testing"

	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"
)

// MaxBetween and MinBetween agree with Gorgonia's for infinities and NaN, too.
func TestBetweenInfinities(t *testing.T) {
	numbers := []float64{math.Inf(-1), -100, 0, 2, math.Inf(1), math.NaN()}
	var first, second []float64
	for _, a := range numbers {
		for _, b := range numbers {
			first, second = append(first, a), append(second, b)
		}
	}
	of := func(values []float64) *dense.Dense {
		return dense.New(dense.WithShape(len(values)), dense.WithBacking(append([]float64(nil), values...)))
	}
	for name, test := range map[string]struct {
		node  func(a, b *gorgonia.Node) (*gorgonia.Node, error)
		value func(a, b any, options ...dense.FuncOpt) (dense.Tensor, error)
	}{
		"MinBetween": {gorgonia.MinBetween, dense.MinBetween},
		"MaxBetween": {gorgonia.MaxBetween, dense.MaxBetween},
	} {
		value, err := test.value(of(first), of(second))
		if err != nil {
			t.Fatal(err)
		}
		b := newBench()
		got := adopted(t, must(test.node(b.holding("a", first, len(first)), gorgonia.NewConstant(of(second)))))
		for i, want := range value.Data().([]float64) {
			if got[i] != want && !(math.IsNaN(got[i]) && math.IsNaN(want)) {
				t.Errorf("%s of %v and %v is %v, want %v", name, first[i], second[i], got[i], want)
			}
		}
	}
	p := newBench().holding("p", []float64{0, 1}, 2)
	bounded := must(gorgonia.MaxBetween(must(gorgonia.Log(p)), gorgonia.NewConstant(of([]float64{-100, -100}))))
	if got := adopted(t, bounded); got[0] != -100 || got[1] != 0 {
		t.Errorf("logarithms above -100 are %v, want [-100 0]", got)
	}
}

// In a graph for one example, a bound with one row applies to every example of a larger batch.
func TestBetweenOfBatches(t *testing.T) {
	b := newBench()
	x, w := b.weights("x", 1, 4), b.weights("w", 4, 3)
	bound := gorgonia.NewConstant(dense.New(dense.WithShape(1, 3), dense.WithBacking([]float64{-1, 0, 1})))
	logits := must(gorgonia.Mul(x, w))
	for _, y := range []*gorgonia.Node{must(gorgonia.MaxBetween(logits, bound)), must(gorgonia.MinBetween(bound, logits))} {
		if _, err := NewNetwork(x, y, w); err != nil {
			t.Error(err)
		}
	}
}
