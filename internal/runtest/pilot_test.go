package runtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/optimizers"
)

// piloted runs Fit and returns the epochs of the cycle, and what was remarked of a pilot.
func piloted(t *testing.T, spec bayes.Spec, options ...bayes.Option) (run *bayes.Run, epochs int, remark string) {
	t.Helper()
	spec.Network, spec.Samples = "mlp-5", 1
	observe := bayes.WithObserver(func(e bayes.Event) {
		if strings.Contains(e.Remark, "pilot") {
			remark += e.Remark
		}
	})
	run = fit(t, spec, trainOn(squares(t, 60, 3, 1)), append(options, observe)...)
	return run, run.Manifest().Spec.Epochs, remark
}

// TestPilot: without epochs, the cycle is as long as the first chain's warm start took to be best,
// in each part of a run, with the bits of a run whose epochs are given.
func TestPilot(t *testing.T) {
	spec := bayes.Spec{Chains: 3, WarmEpochs: 15, WarmPatience: 5, Seed: 4}
	whole, epochs, remark := piloted(t, spec, with(t, 2))
	d, err := whole.Diagnostics()
	must(t, err)
	best := d.WarmStart.Epoch[0] * 48 / 4 // steps: of 60 images, 12 are held out, and minibatches have 4
	if want := (best + 9) / 10; want <= 10 || want >= 25 || epochs != want {
		t.Errorf("%d epochs, want %d, and more than 10 and fewer than 25", epochs, want)
	}
	if !strings.HasPrefix(remark, "pilot: the held-out loss of one chain was lowest after ") {
		t.Errorf("remark %q", remark)
	}

	spec.Epochs = epochs
	given, _, remark := piloted(t, spec, with(t, 1))
	if remark != "" {
		t.Errorf("%q, though the epochs were given", remark)
	}
	same(t, "with epochs", contents(t, whole.Dir()), contents(t, given.Dir()))

	spec.Epochs, spec.FirstChain, spec.Chains = 0, 1, 2
	part, of, _ := piloted(t, spec, with(t, 2))
	if of != epochs {
		t.Errorf("a part has %d epochs, and the whole %d", of, epochs)
	}
	of1, whole1 := lastOf(t, part), lastOf(t, whole)
	for chain := 1; chain < 3; chain++ {
		if !slices.Equal(of1[chain], whole1[chain]) {
			t.Errorf("chain %d of a part differs from that of the whole", chain)
		}
	}
}

// TestPilotLimits: cycles have 100 to 250 steps.
func TestPilotLimits(t *testing.T) {
	for name, c := range map[string]struct {
		spec bayes.Spec
		want int // epochs of ten steps
	}{
		"a short warm start": {bayes.Spec{WarmEpochs: 2}, 10},
		// It improves until the pilot ends.
		"a slow one": {bayes.Spec{WarmEpochs: 60, WarmSchedule: optimizers.Constant{Rate: 1e-4}}, 25},
	} {
		c.spec.Chains = 1
		if _, epochs, remark := piloted(t, c.spec, with(t, 1)); epochs != c.want {
			t.Errorf("%s: %d epochs, want %d: %s", name, epochs, c.want, remark)
		}
	}
}

// TestPilotFails: a pilot that is stopped or diverges leaves no run behind.
func TestPilotFails(t *testing.T) {
	data, dir := trainOn(squares(t, 60, 3, 1)), filepath.Join(t.TempDir(), "run")
	spec := bayes.Spec{Network: "mlp-5", WarmSchedule: optimizers.Constant{Rate: 1e30}}
	_, err := bayes.Fit(context.Background(), spec, data, dir, with(t, 1))
	var diverged *bayes.DivergedError
	if !errors.As(err, &diverged) || !strings.Contains(err.Error(), "pilot: momentum diverged") {
		t.Errorf("error %v, want one of the warm start's optimizer", err)
	}

	ctx, stop := context.WithCancel(context.Background())
	stop()
	_, err = bayes.Fit(ctx, bayes.Spec{Network: "mlp-5"}, data, dir, with(t, 1))
	if wantError(t, "a stop", err, "pilot: stopped after 0 of up to"); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want one that wraps the context's", err)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s exists: %v", dir, err)
	}
}
