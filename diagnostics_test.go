package pollen

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// states are values of a run's session, by name, after so many steps.
func states(t *testing.T, spec Spec, name string, at ...int) [][]float32 {
	t.Helper()
	data := squares(t, 100, 4, 1)
	tr, err := newTraining(spec, data, filepath.Join(t.TempDir(), "run"), environmentOf(nil))
	must(t, err)
	host := tensor.NewHost(1)
	defer host.Close()
	must(t, tr.load(host))
	defer tr.session.Close()
	var all [][]float32
	for _, steps := range at {
		must(t, tr.session.Run(steps-int(tr.session.Steps())))
		values := make([]float32, 3*side*side)
		must(t, graph.Read(tr.session, name, 0, 0, values))
		all = append(all, values)
	}
	return all
}

// pSGLD's second moment, and with it G, adapts during burn-in, and not after it where it is frozen.
func TestPreconditionerFreezes(t *testing.T) {
	spec := Spec{Network: "mlp-3", Batch: 10, Epochs: 4, BurnIn: new(2), Samples: 5}
	for gamma, frozen := range map[string]bool{"frozen": true, "none": false} {
		spec.Method = methodOf(t, "psgld:gamma="+gamma)
		s := states(t, spec, "linear1.weight.second moment", 10, 20, 21, 40)
		if equal(s[0], s[1]) {
			t.Errorf("%s: the second moment does not adapt during burn-in", gamma)
		}
		if equal(s[1], s[2]) != frozen || equal(s[1], s[3]) != frozen {
			t.Errorf("%s: the second moment after burn-in is that of its end: %v after a step, %v after 20", gamma, equal(s[1], s[2]), equal(s[1], s[3]))
		}
	}
}

func equal(a, b []float32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// Long traces are kept evenly spaced.
func TestThinned(t *testing.T) {
	trace := make([]float64, 25001)
	for i := range trace {
		trace[i] = float64(i)
	}
	short := thinned(trace, traceValues)
	if len(short) > traceValues || len(short) < traceValues/2 || short[1]-short[0] != short[2]-short[1] || len(thinned(trace[:100], 100)) != 100 {
		t.Errorf("%d values, the first %v", len(short), short[:3])
	}
}

func TestMeasuredText(t *testing.T) {
	for want, m := range map[string]Measured{
		"8 ± 2": {8.04, 1.71}, "110 ± 40": {112.3, 41}, "0.97 ± 0.05": {0.9735, 0.0514}, "1.04 ± 0.10": {1.04, 0.0996},
		"1 ± NaN": {1, Number(math.NaN())}, "1.23 ± 0": {1.2345, 0},
	} {
		if got := m.String(); got != want {
			t.Errorf("%v, want %s", got, want)
		}
	}
}
