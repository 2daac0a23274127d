package pollen

import (
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/langevin"
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
