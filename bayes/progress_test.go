package bayes

import "testing"

// TestProgressString: the line has the state, the steps and samples, and what applies of the rest.
func TestProgressString(t *testing.T) {
	for want, p := range map[string]Progress{
		"running, 3 of 20 steps, 0 of 4 samples": {State: Running, Made: 3, Steps: 20, Expected: 4},
		"failed, 0 of 20 steps, 0 of 4 samples, 2 epochs of the warm start: disk full": {
			State: Failed, Steps: 20, Expected: 4, WarmStart: true, WarmEpochs: 2, Error: "disk full",
		},
	} {
		if got := p.String(); got != want {
			t.Errorf("String() = %q, want %q", got, want)
		}
	}
}
