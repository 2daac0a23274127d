package evaluate

import (
	"strings"
	"testing"
)

// Ten of 200 examples are of a class that is never in its set, so that the average hides it.
func TestByClassWorkedByHand(t *testing.T) {
	predictions := func(common, rare int) *Predictions {
		average, err := NewPredictive(common+rare, 3)
		if err != nil {
			t.Fatal(err)
		}
		var rows []float32
		var labels []int32
		for i := range common + rare {
			rows = append(rows, 0.9, 0.1, 0)
			labels = append(labels, int32(max(0, i-common+1)/max(1, i-common+1)*2))
		}
		if err := average.Add(rows, 1); err != nil {
			t.Fatal(err)
		}
		return average.Predictions("roses", labels)
	}
	calibration, err := Calibrate(predictions(190, 2))
	if err != nil {
		t.Fatal(err)
	}
	c := Case{In: predictions(190, 10), Calibration: calibration}
	classes, err := ByClass(c)
	if err != nil || len(classes) != 2 {
		t.Fatalf("ByClass = %v, %v, want 2 classes", classes, err)
	}
	for i, want := range []struct {
		class, examples        int
		recall, coverage, size float64
	}{{0, 190, 1, 1, 1}, {2, 10, 0, 0, 1}} {
		s := classes[i]
		if s.Class != want.class || s.Examples != want.examples || s.Recall != want.recall || *s.Coverage != want.coverage || *s.SetSize != want.size {
			t.Errorf("class %+v with coverage %v of size %v, want %+v", s, *s.Coverage, *s.SetSize, want)
		}
	}
	worst, ok := WorstCovered(classes)
	if !ok || worst.Class != 2 || !worst.BelowChance(2, c.Calibration.Examples) {
		t.Errorf("the worst class is %+v (%v), want class 2, by more than chance", worst, ok)
	}
	a, err := Assess(c)
	if err != nil || a.Values["setCoverage"] != 0.95 || a.Values["setCoverageWorst"] != 0 {
		t.Errorf("coverage %v, lowest %v (%v), want 0.95 and 0", a.Values["setCoverage"], a.Values["setCoverageWorst"], err)
	}
	c.Calibration = nil
	if classes, err = ByClass(c); err != nil || classes[1].Coverage != nil || classes[1].Recall != 0 {
		t.Errorf("without a calibration: %+v, %v, want a recall only", classes, err)
	}
	if worst, ok := WorstCovered(classes); ok {
		t.Errorf("without a calibration: the worst class is %+v", worst)
	}
	c.In.Labels = nil
	if classes, err := ByClass(c); classes != nil || err != nil {
		t.Errorf("without labels: %v, %v, want nothing", classes, err)
	}
}

// P(X <= 17) for 20 images at 95 % is 0.0755, P(X <= 14) is 0.00033. After a calibration on 24
// examples, the coverage is Beta(24, 1), and P(X <= 26) for 32 images is
// (32 31 30 29 28 27) / (56 55 54 53 52 51) = 0.028, P(X <= 24) is 0.0074.
func TestBelowChance(t *testing.T) {
	for _, c := range []struct {
		coverage float64
		examples int
		classes  int
		heldOut  int
		want     bool
	}{
		{0.85, 20, 1, 1e6, false}, {0.7, 20, 1, 1e6, true}, {0.7, 20, 29, 1e6, true}, {0.7, 20, 31, 1e6, false}, {0, 1, 1, 1e6, false},
		{0, 2, 1, 1e6, true}, {1, 5, 1, 1e6, false}, {26. / 32, 32, 1, 1e6, true}, {26. / 32, 32, 1, 24, false}, {24. / 32, 32, 1, 24, true},
		{24. / 32, 32, 2, 24, false}, {0, 32, 1, 18, false},
	} {
		s := ClassScores{Examples: c.examples, Coverage: &c.coverage}
		if got := s.BelowChance(c.classes, c.heldOut); got != c.want {
			t.Errorf("coverage %v of %d images, the worst of %d classes, calibrated on %d: below chance %v, want %v",
				c.coverage, c.examples, c.classes, c.heldOut, got, c.want)
		}
	}
}

// P(X <= 6) for 9 images at 196/199 is 0.00026, P(X <= 8) is 0.13.
func TestWorstRecalled(t *testing.T) {
	all := ClassScores{Class: 0, Examples: 190, Recall: 1}
	for _, c := range []struct {
		other ClassScores
		want  bool
	}{{ClassScores{Class: 1, Examples: 9, Recall: 6.0 / 9}, true}, {ClassScores{Class: 1, Examples: 9, Recall: 8.0 / 9}, false}} {
		least, ok := WorstRecalled([]ClassScores{all, c.other})
		if ok != c.want || ok && least != c.other {
			t.Errorf("%+v: the worst recalled class is %+v (%v), want %v", c.other, least, ok, c.want)
		}
	}
	if least, ok := WorstRecalled([]ClassScores{all}); ok {
		t.Errorf("of one class: %+v", least)
	}
}

// At a level above the fraction of labels with a positive probability, sets have all classes.
func TestSetsOfAllClasses(t *testing.T) {
	average, err := NewPredictive(100, 3)
	if err != nil {
		t.Fatal(err)
	}
	var rows []float32
	labels := make([]int32, 100)
	for i := range labels {
		rows = append(rows, 1, 0, 0)
		if i < 10 {
			labels[i] = 2
		}
	}
	if err := average.Add(rows, 1); err != nil {
		t.Fatal(err)
	}
	c, err := Calibrate(average.Predictions("roses", labels))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []struct {
		level float64
		want  bool
	}{{0.8, false}, {0.89, false}, {0.9, true}, {0.95, true}, {0.999, false}} { // the last has no sets
		reason := c.AllClasses(l.level)
		if (reason != "") != l.want || l.want && !strings.Contains(reason, "have all 3 classes, since 10.0 % of the held-out labels have a predicted "+
			"probability of 0: use a level of at most 0.89,") {
			t.Errorf("AllClasses(%v) = %q, want a reason: %v", l.level, reason, l.want)
		}
		if sets, err := c.PredictionSets([]float64{1, 0, 0}, 3, l.level, SetRule{AllowEmpty: true}); err == nil && (len(sets[0]) == 3) != l.want {
			t.Errorf("level %v: set %v, want all classes: %v", l.level, sets[0], l.want)
		}
	}
}
