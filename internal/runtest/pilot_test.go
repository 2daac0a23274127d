package runtest

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/optimizers"
)

// piloted runs Fit and returns the run, the epochs of its cycle, and the remark on a pilot.
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

// TestPilotsAreNoDifference: what a run without a method found for its data does not differ from
// the specification that it began with, and anything else does.
func TestPilotsAreNoDifference(t *testing.T) {
	for name, c := range map[string]struct {
		images int
		spec   bayes.Spec
	}{
		"few images": {60, bayes.Spec{Network: "mlp-5", Samples: 1, WarmEpochs: 5}},
		"mirroring":  {2500, bayes.Spec{Network: "mlp-5", Samples: 1, Chains: 1, WarmEpochs: 1, Epochs: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			m := fit(t, c.spec, trainOn(squares(t, c.images, 3, 1)), with(t, 2)).Manifest()
			if name, ours, theirs := m.Difference(c.spec); name != "" {
				t.Errorf("the %s is %q in the run and %q in its specification", name, ours, theirs)
			}
			spec := c.spec
			spec.Augment = &bayes.Augment{Shift: 1}
			if name, _, _ := m.Difference(spec); name != "augment" {
				t.Errorf("with another augment, the %q differs", name)
			}
			spec = c.spec
			spec.Epochs = m.Spec.Epochs + 1
			if name, _, _ := m.Difference(spec); name == "" {
				t.Error("with more epochs, nothing differs")
			}
		})
	}
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

// spots are images of noise with two faint bright spots, which are the upper or the lower corners,
// as the class is. If left is set, the class is 1 for images with another spot in the middle of the
// left edge, and 0 for those with one on the right.
func spots(t *testing.T, n int, left bool) *datasets.Dataset {
	t.Helper()
	const side, bright = 16, 10
	random := rand.New(rand.NewPCG(1, 2))
	images, labels := make([]byte, n*side*side), make([]int32, n)
	for i := range labels {
		image, lower, right := images[i*side*side:][:side*side], random.IntN(2), random.IntN(2)
		for k := range image {
			image[k] = byte(random.IntN(200))
			y, x := k/side, k%side
			if y/13 == lower && (y < 3 || y >= 13) && (x < 3 || x >= 13) || left && y/3 == 2 && (x < 3 || x >= 13) && x/13 == right {
				image[k] += bright
			}
		}
		labels[i] = int32(lower)
		if left {
			labels[i] = int32(1 - right)
		}
	}
	d, err := datasets.New("spots", images, labels, 1, side, side, nil)
	must(t, err)
	return d
}

// TestMirroringPilot: images are mirrored where that helps, in each part of a run, and not where
// the class depends on the side, or Augment is given.
func TestMirroringPilot(t *testing.T) {
	if testing.Short() {
		t.Skip("makes four runs")
	}
	spec := bayes.Spec{Network: "mlp-20", Chains: 1, Epochs: 1, Samples: 1}
	mirrored := func(data *datasets.Dataset, spec bayes.Spec) (flip bool, remark string) {
		observe := bayes.WithObserver(func(e bayes.Event) {
			if strings.HasPrefix(e.Remark, "pilot") {
				remark += e.Remark
			}
		})
		return fit(t, spec, trainOn(data), with(t, 2), observe).Manifest().Spec.Augment.Flip, remark
	}
	upper := spots(t, 2500, false)
	flip, remark := mirrored(upper, spec)
	if !flip || !strings.HasSuffix(remark, "so images are mirrored at random (--augment)") {
		t.Errorf("upper or lower half: mirrored %v, remark %q", flip, remark)
	}
	part := spec
	part.FirstChain = 3
	if flip, again := mirrored(upper, part); !flip || again != remark {
		t.Errorf("a part of the run: mirrored %v, remark %q, the first part's %q", flip, again, remark)
	}
	if flip, remark := mirrored(spots(t, 2500, true), spec); flip || !strings.HasSuffix(remark, "so images are not mirrored (--augment)") {
		t.Errorf("left or right half: mirrored %v, remark %q", flip, remark)
	}
	given := spec
	given.Augment = &bayes.Augment{Shift: 1}
	if flip, remark := mirrored(upper, given); flip || remark != "" {
		t.Errorf("with Augment: mirrored %v, remark %q", flip, remark)
	}
	few, _ := upper.Slice(0, 2499)
	if _, remark := mirrored(few, spec); remark != "" {
		t.Errorf("of 2499 images: remark %q", remark)
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
