package evaluate

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestRiskCoverageWorkedByHand(t *testing.T) {
	// In order of uncertainty: right, wrong, then a tie of a right and a wrong one.
	s, err := RiskCoverage([]float64{3, 1, 3, 2}, []bool{true, true, false, false})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0, 1.0 / 2, 1.5 / 3, 2.0 / 4} {
		near(t, "risk", s.Risk[i], want, 1e-15)
		near(t, "coverage", s.Coverage[i], float64(i+1)/4, 0)
	}
	near(t, "AURC", s.AURC, 1.5/4, 1e-15)
}

// Tied examples count with the mean over their orders: the curve equals the average over many
// random orders.
func TestRiskCoverageAveragesTies(t *testing.T) {
	random := rand.New(rand.NewPCG(6, 6))
	const total, orders = 31, 4000
	uncertainty, correct := make([]float64, total), make([]bool, total)
	for i := range uncertainty {
		uncertainty[i], correct[i] = float64(random.IntN(4)), random.IntN(3) > 0
	}
	s, err := RiskCoverage(uncertainty, correct)
	if err != nil {
		t.Fatal(err)
	}
	average := make([]float64, total)
	for range orders {
		order := random.Perm(total)
		slices.SortStableFunc(order, func(a, b int) int { return int(uncertainty[a] - uncertainty[b]) })
		wrong := 0.0
		for i, example := range order {
			if !correct[example] {
				wrong++
			}
			average[i] += wrong / float64(i+1) / orders
		}
	}
	for i := range average {
		near(t, "risk", s.Risk[i], average[i], 4*0.5/math.Sqrt(orders))
	}
}

func TestRiskCoverageProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.IntRange(1, 60).Draw(t, "total")
		uncertainty := rapid.SliceOfN(rapid.Map(rapid.IntRange(0, 5), func(i int) float64 { return float64(i) }), total, total).Draw(t, "uncertainty")
		correct := rapid.SliceOfN(rapid.Bool(), total, total).Draw(t, "correct")
		s, err := RiskCoverage(uncertainty, correct)
		if err != nil {
			t.Fatal(err)
		}
		wrong := 0.0
		oracle, worst := make([]float64, total), make([]float64, total)
		for i, right := range correct {
			if !right {
				wrong++
				oracle[i] = 1
			} else {
				worst[i] = 1
			}
		}
		if math.Abs(s.Risk[total-1]-wrong/float64(total)) > 1e-12 {
			t.Fatalf("risk at full coverage %v, want the error rate %v", s.Risk[total-1], wrong/float64(total))
		}
		best, err := RiskCoverage(oracle, correct)
		if err != nil {
			t.Fatal(err)
		}
		most, err := RiskCoverage(worst, correct)
		if err != nil {
			t.Fatal(err)
		}
		if s.AURC < best.AURC-1e-12 || s.AURC > most.AURC+1e-12 {
			t.Fatalf("AURC %v outside [%v, %v], the best and the worst order", s.AURC, best.AURC, most.AURC)
		}
	})
}

func TestRiskCoverageRefuses(t *testing.T) {
	for _, c := range []struct {
		name        string
		uncertainty []float64
		correct     []bool
		message     string
	}{
		{"empty", nil, nil, "at least 1 score"},
		{"length", []float64{1, 2}, []bool{true}, "same length, got 2 and 1"},
		{"NaN", []float64{1, math.NaN()}, []bool{true, true}, "score 1 is NaN"},
	} {
		if _, err := RiskCoverage(c.uncertainty, c.correct); err == nil || !strings.Contains(err.Error(), c.message) {
			t.Errorf("%s: got error %v, want one containing %q", c.name, err, c.message)
		}
	}
}

func TestCompare(t *testing.T) {
	p := []float64{0.7, 0.2, 0.1, 0, 1, 0}
	c, err := Compare(p, p, 3)
	if err != nil || c != (Comparison{1, 0}) {
		t.Errorf("a distribution with itself: got %v, %v", c, err)
	}
	c, err = Compare(p, []float64{0.6, 0.1, 0.3, 1, 0, 0}, 3)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "agreement", c.Agreement, 0.5, 0)
	near(t, "total variation", c.TotalVariation, (0.2+1)/2, 1e-15)
	for _, bad := range []struct {
		name    string
		p, q    []float64
		classes int
		message string
	}{
		{"empty", nil, nil, 3, "at least 1 example, got 0"},
		{"length", p, p[:3], 3, "got 6 and 3"},
		{"classes", p, p, 4, "probabilities, got 6"},
		{"no classes", p, p, 0, "at least 2 classes, got 0"},
		{"NaN in p", []float64{math.NaN(), 1}, []float64{0, 1}, 2, "got NaN"},
		{"sum in q", []float64{0, 1}, []float64{0, 0.5}, 2, "got 0.5"},
	} {
		if _, err := Compare(bad.p, bad.q, bad.classes); err == nil || !strings.Contains(err.Error(), bad.message) {
			t.Errorf("%s: got error %v, want one containing %q", bad.name, err, bad.message)
		}
	}
}

func FuzzScore(f *testing.F) {
	f.Add([]byte{128, 127, 255, 0}, []byte{0, 1}, 2)
	f.Fuzz(func(t *testing.T, raw, bytes []byte, classes int) {
		if classes > 256 || classes < 0 {
			return
		}
		probabilities := make([]float64, len(raw))
		for i, b := range raw {
			probabilities[i] = float64(b) / 255
		}
		labels := make([]int32, len(bytes))
		for i, b := range bytes {
			labels[i] = int32(int8(b))
		}
		p, err := NewPredictions("raw", probabilities, labels, classes)
		if err != nil {
			return
		}
		a, err := Assess(Case{In: p})
		if err != nil {
			t.Fatal(err)
		}
		for name, top := range map[string]float64{"accuracy": 1, "ece": 1, "brier": 2, "nll": 104, "aurc": 1} {
			if v, ok := a.Values[name]; !ok || v < -rowTolerance || v > top+rowTolerance {
				t.Errorf("%s is %v (%v), want it between 0 and %v", name, v, ok, top)
			}
		}
	})
}
