package runtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/optimizers"
)

// adam is the optimizer of warm starts.
func adam() optimizers.Optimizer { return optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8} }

// TestWarmStart: chains of every kind of sampler begin where the optimizer was best, with the bits
// of a run that was stopped within the warm start and resumed, and a part of a run has the chains
// of the whole.
func TestWarmStart(t *testing.T) {
	ctx, data := context.Background(), trainOn(squares(t, 60, 3, 1))
	rate := optimizers.Constant{Rate: 1e-30}
	for name, spec := range map[string]bayes.Spec{
		"minibatches": {Method: langevin.SGLD{}, Temperature: new(0.0), Schedule: rate, Epochs: 2, BurnIn: new(1)},
		"replicas":    {Method: langevin.SGLD{}, Temperatures: []float64{1, 1.5}, Schedule: rate, Epochs: 2, BurnIn: new(1)},
		"all data":    {Method: mcmc.HMC{LeapfrogSteps: 1}, Epochs: 2, BurnIn: new(1)},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			spec.Network, spec.Samples, spec.Chains, spec.Seed = "mlp-5", 1, 3, 7
			spec.WarmStart, spec.WarmEpochs, spec.WarmPatience = adam(), 30, 4
			whole, err := bayes.Fit(ctx, spec, data, filepath.Join(dir, "whole"), with(t, 2))
			must(t, err)
			d, err := whole.Diagnostics()
			must(t, err)
			w := d.WarmStart
			if w == nil || w.HeldOut != 12 || len(w.Epoch) != 3 || w.Epochs < 5 || slices.Min(w.Epoch) < 1 {
				t.Fatalf("warm start %+v, want one of 3 chains scored on 12 images", w)
			}
			for chain, losses := range w.Losses {
				last := min(w.Epochs, w.Epoch[chain]+4)
				if len(w.Losses) != 3 || len(losses) != 1+last || losses[w.Epoch[chain]] != w.Loss[chain] || slices.Min(losses) != w.Loss[chain] {
					t.Errorf("losses of chain %d are %v, want %d, the lowest %v after epoch %d", chain, losses, 1+last, w.Loss[chain], w.Epoch[chain])
				}
			}

			stopping, stop := context.WithCancel(ctx)
			epochs := 0
			_, err = bayes.Fit(stopping, spec, data, filepath.Join(dir, "stopped"), with(t, 1), bayes.WithObserver(func(e bayes.Event) {
				if e.Task == "warm start" {
					epochs++
				}
				if epochs == 3 {
					stop()
				}
			}))
			wantError(t, "a stop within the warm start", err, "warm start: stopped after")
			var unfinished *bayes.UnfinishedError
			if !errors.As(err, &unfinished) || unfinished.WarmEpochs < 2 {
				t.Errorf("%+v lacks the epochs of the warm start", unfinished)
			}
			half, err := bayes.Open(filepath.Join(dir, "stopped"))
			must(t, err)
			if p, err := half.Progress(); err != nil || p.State != bayes.Stopped || !p.WarmStart || p.WarmEpochs != unfinished.WarmEpochs {
				t.Errorf("progress %+v, %v, want %d epochs of the warm start", p, err, unfinished.WarmEpochs)
			}
			from, remarks := 0, ""
			resumed, err := bayes.Resume(ctx, filepath.Join(dir, "stopped"), data, with(t, 2), bayes.WithObserver(func(e bayes.Event) {
				remarks += e.Remark
				if e.Task == "warm start" && from == 0 {
					from = e.Done
				}
			}))
			must(t, err)
			if want := fmt.Sprintf("warm start: resumed after %d of up to ", unfinished.WarmEpochs); !strings.Contains(remarks, want) {
				t.Errorf("remarks %q, want %q", remarks, want)
			}
			if from <= 3*8 { // epochs of 48 images in minibatches of 6
				t.Errorf("the resumed warm start was first at step %d, want one after the three epochs made before", from)
			}
			if p, err := resumed.Progress(); err != nil || p.WarmStart || p.WarmEpochs != 0 {
				t.Errorf("progress of the finished run %+v, %v", p, err)
			}
			same(t, "resumed within the warm start", contents(t, whole.Dir()), contents(t, resumed.Dir()))
			if d, err := resumed.Diagnostics(); err != nil || !reflect.DeepEqual(d.WarmStart, w) {
				t.Errorf("resumed, the warm start is %+v, want %+v (%v)", d.WarmStart, w, err)
			}

			part := spec
			part.FirstChain, part.Chains = 1, 2
			of, err := bayes.Fit(ctx, part, data, filepath.Join(dir, "part"), with(t, 1))
			must(t, err)
			of1, whole1 := lastOf(t, of), lastOf(t, whole)
			for chain := 1; chain < 3; chain++ {
				if !slices.Equal(of1[chain], whole1[chain]) {
					t.Errorf("chain %d of a part differs from that of the whole", chain)
				}
			}
		})
	}
}

// TestProgressAfterWarmStart: a run that is stopped between its warm start and its first window of
// steps is no longer in the warm start.
func TestProgressAfterWarmStart(t *testing.T) {
	data, dir := trainOn(squares(t, 60, 3, 1)), filepath.Join(t.TempDir(), "run")
	spec := bayes.Spec{Network: "mlp-5", Method: langevin.SGLD{}, Batch: 6, Epochs: 2, BurnIn: new(1), Samples: 1}
	spec.WarmStart, spec.WarmEpochs = adam(), 2
	ctx, stop := context.WithCancel(context.Background())
	_, err := bayes.Fit(ctx, spec, data, dir, with(t, 1), bayes.WithObserver(func(e bayes.Event) {
		if strings.HasPrefix(e.Remark, "warm start: ") {
			stop()
		}
	}))
	wantError(t, "a stop after the warm start", err, "stopped after 0 of 20 steps")
	run, err := bayes.Open(dir)
	must(t, err)
	if p, err := run.Progress(); err != nil || p.WarmStart || p.Made != 0 {
		t.Errorf("progress %+v, %v, want a warm start that is finished, and no steps", p, err)
	}
}

// TestWarmStartStoppedInItsFirstEpoch: a run that was stopped in the first epoch of its warm start
// has the bits of one that was not.
func TestWarmStartStoppedInItsFirstEpoch(t *testing.T) {
	data, dir := trainOn(squares(t, 200, 3, 1)), t.TempDir()
	spec := bayes.Spec{
		Network: "mlp-5", Method: langevin.SGLD{}, Batch: 1, Epochs: 1, BurnIn: new(0), Samples: 1, Chains: 2, Seed: 7,
		WarmStart: optimizers.Momentum{Decay: 0.9}, WarmSchedule: optimizers.Constant{Rate: 0.05}, WarmEpochs: 2,
	}
	whole := fit(t, spec, data, with(t, 2))
	d, err := whole.Diagnostics()
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	_, err = bayes.Fit(ctx, spec, data, filepath.Join(dir, "stopped"), with(t, 1), bayes.WithObserver(func(e bayes.Event) {
		if e.Task == "warm start" {
			stop()
		}
	}))
	wantError(t, "a stop in the first epoch", err, "warm start: stopped after 0 of up to 2 epochs")
	resumed, err := bayes.Resume(t.Context(), filepath.Join(dir, "stopped"), data, with(t, 2))
	must(t, err)
	same(t, "resumed within the first epoch", contents(t, whole.Dir()), contents(t, resumed.Dir()))
	if of, err := resumed.Diagnostics(); err != nil || !reflect.DeepEqual(of.WarmStart, d.WarmStart) {
		t.Errorf("resumed, the warm start is %+v, want %+v (%v)", of.WarmStart, d.WarmStart, err)
	}
}

// TestWarmStartKeepsTheBest: a chain begins with the best weights of all epochs, not with the
// last ones. If the optimizer only makes a chain worse, it stays at its initial values. There is
// a remark on a chain that learned nothing.
func TestWarmStartKeepsTheBest(t *testing.T) {
	data := trainOn(squares(t, 60, 3, 1))
	spoiling := bayes.Spec{
		Network: "mlp-5", Method: langevin.SGLD{}, Temperature: new(0.0), Schedule: optimizers.Constant{Rate: 1e-30}, Epochs: 1, BurnIn: new(0),
		Samples: 1, WarmStart: optimizers.Momentum{Decay: 0.9999}, WarmEpochs: 60, WarmPatience: 60,
	}
	remarks, nothing := "", "warm start: 1 of 1 chains never predicted the images held out better than the frequencies of their classes do"
	remarking := bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark + "\n" })
	run := fit(t, spoiling, data, with(t, 1), remarking)
	d, err := run.Diagnostics()
	must(t, err)
	if w := d.WarmStart; w.Epochs != 60 || w.Epoch[0] == 60 {
		t.Errorf("began after epoch %d of %d, want an earlier one than the last", w.Epoch[0], w.Epochs)
	}
	if !strings.Contains(remarks, "warm start: the chains begin where 60 epochs of the optimizer were best, after epoch") {
		t.Errorf("remarks %q, want one on the warm start", remarks)
	}
	if strings.Contains(remarks, nothing) {
		t.Errorf("remarks %q on a chain that learned", remarks)
	}

	spoiling.WarmSchedule, spoiling.WarmEpochs, spoiling.WarmPatience = optimizers.Constant{Rate: 1e-30}, 2, 2
	fit(t, spoiling, data, with(t, 1), remarking)
	if !strings.Contains(remarks, nothing) {
		t.Errorf("remarks %q, want one on a chain that learned nothing", remarks)
	}
}

// TestWarmStartDiverges: a warm start whose weights become NaN or infinite fails with its own name
// and advice.
func TestWarmStartDiverges(t *testing.T) {
	spec := bayes.Spec{
		Network: "mlp-5", Method: langevin.SGLD{}, Epochs: 1, BurnIn: new(0), Samples: 1,
		WarmStart: optimizers.Momentum{Decay: 0.9}, WarmSchedule: optimizers.Constant{Rate: 1e30}, WarmEpochs: 5,
	}
	_, err := bayes.Fit(context.Background(), spec, trainOn(squares(t, 60, 3, 1)), filepath.Join(t.TempDir(), "run"), with(t, 1))
	var diverged *bayes.DivergedError
	if !errors.As(err, &diverged) || diverged.Method != "momentum" || !strings.Contains(diverged.Advice, "warm-schedule") {
		t.Errorf("error %v, want one of the warm start's optimizer", err)
	}
}

// TestWarmStartRefused are settings that do not fit.
func TestWarmStartRefused(t *testing.T) {
	adadelta := optimizers.Adadelta{Decay: 0.95, Epsilon: 1e-6}
	for want, spec := range map[string]bayes.Spec{
		"apply to a warm-start":                         {Method: langevin.SGLD{}, WarmEpochs: 3},
		"only one of them may be given":                 {Method: langevin.SGLD{}, WarmStart: adam(), Start: "run"},
		"warm-start applies to sgld":                    {Method: optimizers.SGD{}, WarmStart: adam()},
		"Beta1 must be":                                 {Method: langevin.SGLD{}, WarmStart: optimizers.Adam{Beta1: 2}},
		"apply to a warm-start, such":                   {Method: langevin.SGLD{}, WarmSchedule: optimizers.Constant{Rate: 1}},
		"warm-schedule does not apply to adadelta":      {Method: langevin.SGLD{}, WarmStart: adadelta, WarmSchedule: optimizers.Constant{Rate: 1}},
		"warm-schedule: optimizers: schedule constant":  {Method: langevin.SGLD{}, WarmStart: adam(), WarmSchedule: optimizers.Constant{Rate: -1}},
		"warm-patience must be at least 1, got -1":      {Method: langevin.SGLD{}, WarmStart: adam(), WarmPatience: -1},
		"warm-start must not be a nil *optimizers.Adam": {Method: langevin.SGLD{}, WarmStart: (*optimizers.Adam)(nil)},
	} {
		wantInvalid(t, want, spec.Validate(), want)
	}
	var spec bayes.Spec
	wantInvalid(t, "a sampler", spec.Set("warm-start", "sgld"),
		`warm-start must be an optimizer, which are sgd, momentum, nesterov, adagrad, adadelta, rmsprop, adam, adamw, got "sgld"`)
}

// The last event of an epoch has the loss after it.
func TestWarmStartEvents(t *testing.T) {
	data := trainOn(squares(t, 200, 4, 1))
	spec := bayes.Spec{
		Network: "mlp-5", Method: langevin.SGLD{}, Epochs: 1, Samples: 1, Batch: 20, WarmStart: optimizers.Momentum{Decay: 0.9}, WarmEpochs: 1,
	}
	var shown []float64
	run := fit(t, spec, data, with(t, 1), bayes.WithObserver(func(e bayes.Event) {
		if e.Task == "warm start" && e.Remark == "" && e.Done == e.Total {
			shown = append(shown, e.ValidationLoss)
		}
	}))
	d, err := run.Diagnostics()
	must(t, err)
	losses := d.WarmStart.Losses[0]
	if want := float64(losses[len(losses)-1]); len(shown) != 1 || !(math.Abs(shown[0]-want) < 1e-6) {
		t.Errorf("shown losses %v, want one, %v of %v", shown, want, losses)
	}
	if text := d.WarmStart.String(); strings.Contains(text, "1 epochs") {
		t.Errorf("%q", text)
	}
}
