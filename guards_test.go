package pollen

import (
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
)

// A chain that left is remarked once.
func TestGuards(t *testing.T) {
	data := squares(t, 100, 4, 1)
	var remarks []string
	tr, err := newTraining(Spec{Network: "mlp-3", Batch: 10, Epochs: 6, Chains: 3}, data, "", environmentOf([]Option{
		WithObserver(func(e Event) { remarks = append(remarks, e.Remark) }),
	}))
	must(t, err)
	host := with(t, 1)
	e := environmentOf([]Option{host})
	must(t, tr.load(e.device))
	defer tr.session.Close()
	tr.observing()
	p := langevin.Window{From: tr.plan.BurnIn, To: tr.plan.BurnIn + 1}
	for range 3 * goneWindows {
		tr.watch(p, []float64{0.1, 2, 0.1})
	}
	if text := strings.Join(remarks, "; "); len(remarks) != 1 || !strings.Contains(text, "chain 1 left: its loss of 2 is worse than guessing") {
		t.Errorf("remarks %q", text)
	}
	// All chains at once, early in the run, have learnt nothing yet: another warning says so.
	tr.guard, remarks = guard{}, nil
	for range 3 * goneWindows {
		tr.watch(p, []float64{2, 2, 2})
		tr.watch(langevin.Window{From: 0, To: 1}, []float64{0.1, 2, 0.1})
	}
	if len(remarks) > 0 {
		t.Errorf("remarks %q", remarks)
	}
}

// What a short trace keeps is what was added; a long one is thinned evenly, and goes on after a
// restore.
func TestSeries(t *testing.T) {
	s := newSeries(8)
	for i := range 1000 {
		s.add(float64(i))
		if len(s.values) > 8 || len(s.values) < 4 && i >= 8 {
			t.Fatalf("%d values after %d", len(s.values), i+1)
		}
		for at, v := range s.values {
			if v != float64(at*s.every) {
				t.Fatalf("after %d: value %d is %v, one in %d", i+1, at, v, s.every)
			}
		}
		again := newSeries(8)
		if err := again.restore(s.state()); err != nil {
			t.Fatalf("after %d: %v", i+1, err)
		}
		a, b := again, s
		a.add(-1)
		b.values = append([]float64(nil), b.values...)
		b.add(-1)
		if len(a.values) != len(b.values) || a.every != b.every || a.added != b.added {
			t.Fatalf("after %d: %+v, want %+v", i+1, a, b)
		}
	}
	for _, bad := range [][]float64{nil, {1}, {0, 1, 5}, {1, 2, 5}, {1, -1}, append([]float64{1, 9}, make([]float64, 9)...)} {
		s := newSeries(8)
		if err := s.restore(bad); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
	if samples.FileName(3, 40) != "chain00003-step000000040.safetensors" {
		t.Error("the names of samples changed")
	}
}
