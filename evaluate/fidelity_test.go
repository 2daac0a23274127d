package evaluate

import (
	"math"
	"testing"
)

func TestRankCorrelation(t *testing.T) {
	for _, c := range []struct {
		a, b []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{10, 100, 1000}, 1},
		{[]float64{1, 2, 3}, []float64{3, 2, 1}, -1},
		{[]float64{1, 2, 3, 4}, []float64{1, 3, 2, 4}, 0.8}, // 1 - 6 sum d^2 / (n (n^2-1))
		{[]float64{1, 1, 2}, []float64{1, 2, 3}, 1.5 / math.Sqrt(1.5*2)},
		{[]float64{1, 1, 1}, []float64{1, 2, 3}, 0},
	} {
		if got, err := rankCorrelation(c.a, c.b); err != nil || math.Abs(got-c.want) > 1e-12 {
			t.Errorf("rankCorrelation(%v, %v) = %v, %v, want %v", c.a, c.b, got, err, c.want)
		}
	}
	for _, bad := range [][2][]float64{{{1}, {1, 2}}, {{}, {}}, {{math.NaN()}, {1}}} {
		if _, err := rankCorrelation(bad[0], bad[1]); err == nil {
			t.Errorf("rankCorrelation(%v, %v) returns no error", bad[0], bad[1])
		}
	}
}

func TestFidelity(t *testing.T) {
	labels := []int32{0, 1}
	assess := func(probabilities ...float64) *Assessment {
		p, err := NewPredictions("in", probabilities, labels, 2)
		if err != nil {
			t.Fatal(err)
		}
		a, err := Assess(Case{In: p})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	teacher, student := assess(0.8, 0.2, 0.4, 0.6), assess(0.5, 0.5, 0.6, 0.4)
	f, err := NewFidelity(teacher, student)
	if err != nil {
		t.Fatal(err)
	}
	want := (0.8*math.Log(0.8/0.5) + 0.2*math.Log(0.2/0.5) + 0.4*math.Log(0.4/0.6) + 0.6*math.Log(0.6/0.4)) / 2
	if math.Abs(f.KL-want) > 1e-12 || f.Agreement != 0.5 || math.Abs(f.TotalVariation-0.25) > 1e-12 || f.Images != 2 {
		t.Errorf("fidelity %+v, want a divergence of %v, an agreement of 0.5 and a total variation of 0.25", f, want)
	}
	if f.Teacher["accuracy"] != 1 || f.Student["accuracy"] != 0.5 {
		t.Errorf("accuracies %v and %v, want 1 and 0.5", f.Teacher["accuracy"], f.Student["accuracy"])
	}
	out, err := NewPredictions("out", []float64{0.5, 0.5}, nil, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.AddOut(teacher.In, student.In, out, out); err != nil {
		t.Fatal(err)
	}
	// By entropy: both of the teacher's are below out's, and one of the student's ties.
	if o := f.Out[0]; o.Teacher["entropy"].AUROC != 1 || o.Student["entropy"].AUROC != 0.75 || o.Data != "out" || o.Images != 1 {
		t.Errorf("out of distribution %+v, want AUROC 1 and 0.75", o)
	}
	if _, has := f.Out[0].Teacher["mutualInformation"]; has {
		t.Error("single samples have mutual information")
	}
	if err := f.AddOut(teacher.In, student.In, out, student.In); err == nil {
		t.Error("AddOut takes predictions of other images")
	}
}
