package evaluate

import (
	"math"
	"testing"
)

// certain returns n predictions of two classes with the given confidence. The first wrong of them
// have the wrong class.
func certain(t *testing.T, n, wrong int, confidence float32) *Predictions {
	t.Helper()
	average, err := NewPredictive(n, 2)
	if err != nil {
		t.Fatal(err)
	}
	var rows []float32
	for i := range n {
		if i < wrong {
			rows = append(rows, 1-confidence, confidence)
		} else {
			rows = append(rows, confidence, 1-confidence)
		}
	}
	if err := average.Add(rows, 1); err != nil {
		t.Fatal(err)
	}
	return average.Predictions("roses", make([]int32, n))
}

func TestContrastWith(t *testing.T) {
	for _, c := range []struct {
		name                     string
		n, wrong                 int
		confidence               float32
		referenceWrong           int
		referenceConfidence      float32
		accuracy, reference, nll float64
		worse                    bool
	}{
		{"the same", 100, 10, 0.75, 10, 0.75, 0.9, 0.9, 0.9*math.Log(4./3) + 0.1*math.Log(4), false},
		{"72 mistakes of 100 for none", 100, 72, 0.75, 0, 0.75, 0.28, 1, 0.28*math.Log(4./3) + 0.72*math.Log(4), true},
		{"none for 72", 100, 0, 0.75, 72, 0.75, 1, 0.28, math.Log(4. / 3), false},
		{"4 mistakes of 100 for none, which chance explains", 100, 4, 0.5625, 0, 0.5, 0.96, 1, 0.96*math.Log(16./9) + 0.04*math.Log(16./7), false},
		{"unsure for sure", 100, 0, 0.5625, 0, 0.9375, 1, 1, math.Log(16. / 9), true},
		{"a little less sure", 100, 0, 0.9375, 0, 0.96875, 1, 1, math.Log(16. / 15), false},
		{"unsure, with fewer mistakes", 100, 0, 0.5625, 1, 0.9375, 1, 0.99, math.Log(16. / 9), false},
		{"a single mistake", 1, 1, 0.75, 0, 0.75, 0, 1, math.Log(4), false},
		{"two mistakes of two", 2, 2, 0.75, 0, 0.75, 0, 1, math.Log(4), true},
		{"sure of a mistake", 100, 1, 1, 1, 1, 0.99, 0.99, 0.01 * math.Log(1e12), false},
	} {
		got, err := certain(t, c.n, c.wrong, c.confidence).ContrastWith(certain(t, c.n, c.referenceWrong, c.referenceConfidence))
		if err != nil {
			t.Fatal(err)
		}
		if got.Accuracy != c.accuracy || got.ReferenceAccuracy != c.reference || math.Abs(got.NLL-c.nll) > 1e-12 || got.Worse != c.worse {
			t.Errorf("%s: %+v, want accuracy %v and %v, NLL %v, worse %v", c.name, got, c.accuracy, c.reference, c.nll, c.worse)
		}
	}
	if _, err := certain(t, 10, 0, 1).ContrastWith(certain(t, 11, 0, 1)); err == nil {
		t.Error("other examples: no error")
	}
	relabelled := certain(t, 10, 0, 1)
	relabelled.Labels[3] = 1
	if _, err := relabelled.ContrastWith(certain(t, 10, 0, 1)); err == nil {
		t.Error("other labels: no error")
	}
	unlabelled := certain(t, 10, 0, 1)
	unlabelled.Labels = nil
	if _, err := unlabelled.ContrastWith(certain(t, 10, 0, 1)); err == nil {
		t.Error("no labels: no error")
	}
}
