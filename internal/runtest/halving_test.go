package runtest

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// diverging are specifications with chains that diverge: in the warm start, whose rates rise and
// which has no ReLU that would die of it, and in a cycle at a rate far too high. The chains of the
// third still guess when their patience ends, since their rate is far too low.
func diverging() map[string]bayes.Spec {
	spec := bayes.Spec{
		Layers: layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 16}, layers.Linear{Outputs: 16}, layers.Linear{Outputs: 3}},
		Method: langevin.SGHMC{Friction: 0.1}, Epochs: 6, Cycles: 1, BurnIn: new(5), Samples: 1, Chains: 5, Seed: 1, Weights: bayes.StepSize,
		WarmStart: optimizers.Momentum{Decay: 0.9}, WarmEpochs: 8, WarmPatience: 4,
	}
	warm, cycle := spec, spec
	warm.WarmSchedule, warm.Schedule = optimizers.Step{Initial: 0.05, Factor: 20, Every: 36}, optimizers.Cyclical{Initial: 0.05, Cycles: 1}
	cycle.Network, cycle.Layers = "mlp-16-16", nil
	cycle.WarmSchedule, cycle.Schedule = optimizers.Constant{Rate: 0.03}, optimizers.Cyclical{Initial: 10, Cycles: 1}
	plateau := cycle
	plateau.WarmSchedule, plateau.Schedule = optimizers.Constant{Rate: 1e-30}, optimizers.Cyclical{Initial: 0.05, Cycles: 1}
	return map[string]bayes.Spec{"warm start": warm, "cycle": cycle, "plateau": plateau}
}

// TestChainsThatDiverge continue at half their rates, with a remark each time, and without a trace
// in other chains: a run that was stopped afterwards and resumed has the same bits, and a part has
// the chains of the whole. Their samples have the weights of their step sizes.
func TestChainsThatDiverge(t *testing.T) {
	ctx, data := context.Background(), trainOn(squares(t, 60, 3, 1))
	for name, spec := range diverging() {
		t.Run(name, func(t *testing.T) {
			dir, remarks := t.TempDir(), ""
			whole, err := bayes.Fit(ctx, spec, data, filepath.Join(dir, "whole"), with(t, 2), bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark + "\n" }))
			must(t, err)
			d, err := whole.Diagnostics()
			must(t, err)
			all := 0
			for _, n := range d.WarmStart.Halvings {
				all += n
			}
			if got := strings.Count(remarks, "of the learning rate"); len(d.WarmStart.Halvings) != 5 || all == 0 || got != all {
				t.Errorf("%v halvings, and %d remarks on them: %s", d.WarmStart.Halvings, got, remarks)
			}
			if name == "warm start" && slices.Min(d.WarmStart.Halvings) > 0 {
				t.Errorf("%v halvings, want some chains that did not diverge", d.WarmStart.Halvings)
			}
			if name == "plateau" && (slices.Max(d.WarmStart.Halvings) != 2 ||
				!strings.Contains(remarks, "predicts no better than guessing after epoch 4, and continues from its weights after epoch 0 at 1/2 of")) {
				t.Errorf("%v halvings, want two of chains whose patience began again: %s", d.WarmStart.Halvings, remarks)
			}
			last := lastOf(t, whole)
			files, err := whole.Samples()
			must(t, err)
			for _, file := range files { // the last step of each chain is one
				s, err := samples.ReadSample(file)
				must(t, err)
				rate := 0.5 * (1 - math.Cos(math.Pi/60)) * spec.Schedule.(optimizers.Cyclical).Initial // cos(59 pi/60), after 60 steps
				want := math.Ldexp(rate/60, -d.WarmStart.Halvings[s.Chain])
				if math.Abs(s.Weight-want) > 1e-6*want {
					t.Errorf("the sample of chain %d has the weight %v, want %v after %v halvings", s.Chain, s.Weight, want, d.WarmStart.Halvings)
				}
			}

			for _, task := range []string{"warm start", "fit"} {
				stopping, stop := context.WithCancel(ctx)
				path := filepath.Join(dir, "stopped in "+task)
				epochs := 0
				_, err = bayes.Fit(stopping, spec, data, path, with(t, 1), bayes.WithObserver(func(e bayes.Event) {
					if e.Task == task {
						epochs++
					}
					if epochs == 7 || task == "fit" && epochs == 1 {
						stop()
					}
				}))
				wantError(t, "a stop", err, "stopped after")
				resumed, err := bayes.Resume(ctx, path, data, with(t, 2))
				must(t, err)
				same(t, "resumed in "+task, contents(t, whole.Dir()), contents(t, resumed.Dir()))
				if of, err := resumed.Diagnostics(); err != nil || !reflect.DeepEqual(of.WarmStart, d.WarmStart) {
					t.Errorf("resumed in %s, the warm start is %+v, want %+v (%v)", task, of.WarmStart, d.WarmStart, err)
				}
			}

			spec.FirstChain, spec.Chains = 2, 3
			part, err := bayes.Fit(ctx, spec, data, filepath.Join(dir, "part"), with(t, 1))
			must(t, err)
			of := lastOf(t, part)
			for chain := 2; chain < 5; chain++ {
				if !slices.Equal(of[chain], last[chain]) {
					t.Errorf("chain %d of a part differs from that of the whole", chain)
				}
			}
		})
	}
}

// Chains that learn little continue as they are: some memorize labels that are mostly noise, so
// that their loss on the images held out is above the loss of guessing, and some learn slowly.
func TestLittleLearnedIsNoPlateau(t *testing.T) {
	for _, c := range []struct {
		noise, rate float64
		patience    int
	}{{0.8, 0.003, 4}, {0.7, 0.02, 4}, {1, 0.02, 12}} {
		spec, data, r := diverging()["cycle"], squares(t, 120, 3, 1), rand.New(rand.NewPCG(1, 2))
		spec.Network, spec.WarmEpochs, spec.WarmPatience = "mlp-64-64", 30, c.patience
		spec.WarmSchedule, spec.Schedule = optimizers.Constant{Rate: c.rate}, optimizers.Cyclical{Initial: 0.01, Cycles: 1}
		for i := range data.Labels {
			if r.Float64() < c.noise {
				data.Labels[i] = r.Int32N(3)
			}
		}
		run, err := bayes.Fit(context.Background(), spec, trainOn(data), filepath.Join(t.TempDir(), "run"), with(t, 2))
		must(t, err)
		d, err := run.Diagnostics()
		must(t, err)
		if slices.Max(d.WarmStart.Halvings) > 0 {
			t.Errorf("%+v: %v halvings, want none", c, d.WarmStart.Halvings)
		}
	}
}
