package pollen

import (
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/evaluate"
)

// A calibration whose sets have all classes is remarked, at the level of answers or of scores.
func TestRemarkAllClasses(t *testing.T) {
	labels := make([]float64, 40)
	for i := range 36 {
		labels[i] = 1 - float64(i)/100
	}
	c := &evaluate.Calibration{Data: "roses", Examples: 40, Classes: 3, Samples: 1, Label: labels, Nonconformity: make([]float64, 40)}
	for _, test := range []struct {
		level float64
		want  string
	}{
		{0.5, "prediction sets at level 0.95 have all 3 classes, since 10.0 % of the held-out labels"},
		{0.96, "prediction sets at level 0.96 have all 3 classes"},
	} {
		var remarks []string
		run := newRun("", &Manifest{}, environmentOf([]Option{WithLevel(test.level), WithObserver(func(e Event) { remarks = append(remarks, e.Remark) })}))
		run.remarkAllClasses(c)
		if len(remarks) != 1 || !strings.HasPrefix(remarks[0], test.want) || !strings.Contains(remarks[0], "use a level of at most 0.87, ") {
			t.Errorf("level %v: remarks %q, want %q and the level 0.87", test.level, remarks, test.want)
		}
		labels := append([]float64(nil), c.Label...)
		for i := range labels {
			labels[i] = max(labels[i], 0.01)
		}
		other := *c
		other.Label, remarks = labels, nil
		if run.remarkAllClasses(&other); len(remarks) > 0 {
			t.Errorf("level %v, no label of probability 0: remarks %q", test.level, remarks)
		}
	}
}
