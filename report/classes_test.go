package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/evaluate"
)

// rareSubject has 190 images of a common class and 10 of a rare one, all classified as common; 40
// others of three classes are right.
func rareSubject(t *testing.T, name string) Subject {
	t.Helper()
	predicted := func(scale int) *evaluate.Predictions {
		average, err := evaluate.NewPredictive(240*scale, 5)
		if err != nil {
			t.Fatal(err)
		}
		var rows []float32
		var labels []int32
		for i := range 240 * scale {
			label, guess := 0, 0
			switch {
			case i >= 200*scale:
				label = 2 + i%2
				guess = label
			case i >= 190*scale:
				label = 1
			}
			row := make([]float32, 5)
			row[guess], row[(guess+1)%5] = 0.875, 0.125
			rows, labels = append(rows, row...), append(labels, int32(label))
		}
		if err := average.Add(rows, 1); err != nil {
			t.Fatal(err)
		}
		return average.Predictions("flowers", labels)
	}
	// Of the calibration, 4 % are rare, so that the threshold is 0.875.
	calibration, err := evaluate.Calibrate(predicted(1))
	if err != nil {
		t.Fatal(err)
	}
	a, err := evaluate.Assess(evaluate.Case{In: predicted(1), Calibration: calibration})
	if err != nil {
		t.Fatal(err)
	}
	return Subject{Name: name, Assessment: a, InImages: &Images{ClassNames: []string{"common", "rare", "rose", "tulip", "absent"}}}
}

// The class with the lowest coverage of sets is named, in words and at the top of the table of
// classes.
func TestClasses(t *testing.T) {
	s := rareSubject(t, "a")
	got, err := s.worstCoverage()
	want := "of 4 classes, rare has the lowest coverage of 95 % sets, 0.000: 0 of 10 images, fewer than by chance. " +
		"The sets hold on average over all images, not for each class"
	if err != nil || got != want {
		t.Errorf("worstCoverage() = %q, %v, want %q", got, err, want)
	}
	section, err := ClassSection([]Subject{s})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := section.Table.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	const table = `class   images  precision  recall     F1  one-vs-rest AUC  coverage  set size
-----------------------------------------------------------------------------
rare        10      0.000   0.000  0.000            0.587     0.000      1.00
common     190      0.950   1.000  0.974            0.900     1.000      1.00
rose        20      1.000   1.000  1.000            1.000     1.000      1.00
tulip       20      1.000   1.000  1.000            1.000     1.000      1.00
`
	if b.String() != table || len(section.Text) != 1 || section.Text[0] != "a: "+want+"." {
		t.Errorf("table\n%swant\n%stext %q", b.String(), table, section.Text)
	}
	other := rareSubject(t, "b")
	other.Calibration = nil
	if section, err = ClassSection([]Subject{s, other}); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	const header = "class   images  a, precision  a, recall  a, F1  a, one-vs-rest AUC  b, precision"
	if err := section.Table.WriteText(&b); err != nil || !strings.HasPrefix(b.String(), header) || len(section.Text) != 1 {
		t.Errorf("table of two runs, one without calibration:\n%s%q, %v", b.String(), section.Text, err)
	}
	if section, err = ClassSection([]Subject{s, rareSubject(t, "b"), rareSubject(t, "c")}); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	const narrow = "class   images  a, recall  a, coverage  b, recall  b, coverage  c, recall  c, coverage\n"
	if err := section.Table.WriteText(&b); err != nil || !strings.HasPrefix(b.String(), narrow) || len(section.Text) != 4 {
		t.Errorf("table of three runs:\n%s%q, %v", b.String(), section.Text, err)
	}
	long, longer := rareSubject(t, "experiments/runs/mountain-flowers"), rareSubject(t, "experiments/runs/meadow-flowers")
	if section, err = ClassSection([]Subject{long, longer}); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	const short = "class   images  mountain-flowers, recall  mountain-flowers, coverage  meadow-flowers, recall  meadow-flowers, coverage\n"
	if err := section.Table.WriteText(&b); err != nil || !strings.HasPrefix(b.String(), short) {
		t.Errorf("table of two runs with long names:\n%s%v", b.String(), err)
	}
	s.In.Labels = nil
	if section, err := ClassSection([]Subject{s}); section != nil || err != nil {
		t.Errorf("without labels: %v, %v, want no section", section, err)
	}
}

// Nothing is named where every class is covered as often as promised.
func TestNoWorstCoverage(t *testing.T) {
	s := rareSubject(t, "a")
	probabilities := []float32{0.875, 0.125, 0, 0, 0, 0.125, 0.875, 0, 0, 0}
	average, err := evaluate.NewPredictive(2, 5)
	if err == nil {
		err = average.Add(probabilities, 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.Assessment, err = evaluate.Assess(evaluate.Case{In: average.Predictions("flowers", []int32{0, 1}), Calibration: s.Calibration})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.worstCoverage(); err != nil || got != "" {
		t.Errorf("worstCoverage() = %q, %v, want nothing", got, err)
	}
}

// If the sets do not hold on average either, the remark is about all images.
func TestCoverageOfAllClasses(t *testing.T) {
	s := rareSubject(t, "a")
	labels := slices.Clone(s.In.Labels)
	for i := range labels { // 80 of 240 are now wrong, in all classes
		if i%3 == 0 {
			labels[i] = (labels[i] + 3) % 4
		}
	}
	in := *s.In
	in.Labels = labels
	a, err := evaluate.Assess(evaluate.Case{In: &in, Calibration: s.Calibration})
	if err != nil {
		t.Fatal(err)
	}
	s.Assessment = a
	got, err := s.worstCoverage()
	if want := "of these 240 images, because they do not resemble the calibration images"; err != nil || !strings.Contains(got, want) {
		t.Errorf("worstCoverage() = %q, %v, want one with %q", got, err, want)
	}
}
