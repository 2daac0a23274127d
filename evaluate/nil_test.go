package evaluate

import (
	"math"
	"strings"
	"testing"
)

// TestNil: nil predictions and assessments are errors that name the function.
func TestNil(t *testing.T) {
	p := predictionsOf(t, []float64{0.9, 0.1, 0.4, 0.6}, []int32{0, 1}, 2)
	assessed, err := Assess(Case{In: p})
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func() error{
		"EqualWidthBins": func() error { _, err := EqualWidthBins(nil); return err },
		"Correct":        func() error { _, err := (*Predictions)(nil).Correct(); return err },
		"NewFidelity":    func() error { _, err := NewFidelity(nil, assessed); return err },
		"AddOut":         func() error { return new(Fidelity).AddOut(p, p, nil, p) },
		"Assess":         func() error { _, err := Assess(Case{}); return err },
		"Calibrate":      func() error { _, err := Calibrate(nil); return err },
	} {
		if err := call(); err == nil || !strings.HasPrefix(err.Error(), "evaluate: "+name+": ") || !strings.Contains(err.Error(), "must not be nil") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewFidelity(&Assessment{}, assessed); err == nil {
		t.Error("NewFidelity of an empty assessment: no error")
	}
}

// TestRankingOfNoClass: predictions that do not have the class have no ranking of it.
func TestRankingOfNoClass(t *testing.T) {
	p := predictionsOf(t, []float64{0.9, 0.1, 0.4, 0.6}, []int32{0, 1}, 2)
	for _, class := range []int{-1, 2} {
		if r, ok := RankingOf(p, class); ok {
			t.Errorf("class %d of 2: %+v", class, r)
		}
	}
	if _, ok := RankingOf(nil, 0); ok {
		t.Error("nil predictions have a ranking")
	}
}

// TestPValueOfNoScore: a NaN, which no calibration can judge, has no p-value, and without scores
// nothing has.
func TestPValueOfNoScore(t *testing.T) {
	c := &Calibration{Examples: 2, Nonconformity: []float64{1, 2}}
	if p := c.PValue(math.NaN()); !math.IsNaN(p) {
		t.Errorf("the p-value of NaN is %v", p)
	}
	c.Nonconformity = nil
	if p := c.PValue(1); !math.IsNaN(p) {
		t.Errorf("without scores, the p-value is %v", p)
	}
}
