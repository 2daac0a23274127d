package command

import (
	"testing"

	"github.com/pollen-ml/pollen/langevin/llc"
)

// TestNextEstimate checks the command that an estimate suggests, with steps left to their default
// by --steps 0, too.
func TestNextEstimate(t *testing.T) {
	e := &llc.Estimation{Steps: 2000, Rows: []llc.Row{{StepSize: 1e-4, Diverged: true}}}
	for want, options := range map[string]llc.Options{
		"llc 'a run' --gamma 100 --step-sizes 2.5e-05,1.3e-05,6.3e-06,3.1e-06,1.6e-06 --chains 8 --steps 2000 --seed 7": {
			Localization: 100, Chains: 8, Steps: 2000, Seed: 7},
		"llc 'a run' --gamma 100 --step-sizes 2.5e-05,1.3e-05,6.3e-06,3.1e-06,1.6e-06 --chains 8 --steps 2000 --burn-in-steps 500": {
			Localization: 100, Chains: 8, BurnIn: 500, Seed: 1},
	} {
		l := llcFlags{options: options, method: "sgld"}
		if got := l.next(e, "a run"); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
