package runtest

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
)

// rising returns a specification of a network without ReLUs that could die, and with a learning
// rate that rises until some chains diverge.
func rising(t *testing.T, method string, rate float64) bayes.Spec {
	return bayes.Spec{
		Layers: layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 16}, layers.Linear{Outputs: 16}, layers.Linear{Outputs: 3}},
		Method: methodOf(t, method), Schedule: optimizers.WarmUp{Steps: 400, Then: optimizers.Constant{Rate: rate}},
		Epochs: 450, Batch: 60, Chains: 4, Seed: 1,
	}
}

// TestChainsAreTrainedAgain: chains of methods that do not sample are trained again if they
// diverge, with a remark each time, and then equal a run's at the lower rate. A run that was
// stopped has the same bits, wherever it was stopped, and a part has the chains of the whole.
func TestChainsAreTrainedAgain(t *testing.T) {
	ctx, data, dir := context.Background(), trainOn(squares(t, 60, 3, 1)), t.TempDir()
	for method, rate := range map[string]float64{"ensemble": 4, "laplace": 8} {
		t.Run(method, func(t *testing.T) {
			spec, remarks, repeated := rising(t, method, rate), "", 0
			whole, err := bayes.Fit(ctx, spec, data, filepath.Join(dir, method), with(t, 2), bayes.WithObserver(func(e bayes.Event) {
				remarks += e.Remark + "\n"
				if e.Task == "train again" {
					repeated++
				}
			}))
			must(t, err)
			d, err := whole.Diagnostics()
			must(t, err)
			all := 0
			for _, n := range d.Halvings {
				all += n
			}
			if got := strings.Count(remarks, "is trained again from its initial values at 1/"); len(d.Halvings) != 4 || all == 0 || got != all || repeated == 0 {
				t.Errorf("%v halvings, %d remarks on them, %d windows made again: %s", d.Halvings, got, repeated, remarks)
			}
			last := lastOf(t, whole)

			for _, task := range []string{"fit", "train again"} {
				stopping, stop := context.WithCancel(ctx)
				path := filepath.Join(dir, method+" stopped in "+task)
				_, err = bayes.Fit(stopping, spec, data, path, with(t, 1), bayes.WithObserver(func(e bayes.Event) {
					if e.Task == task && e.Remark == "" {
						stop()
					}
				}))
				wantError(t, "a stop", err, "stopped after")
				resumed, err := bayes.Resume(ctx, path, data, with(t, 2))
				must(t, err)
				same(t, "resumed in "+task, contents(t, whole.Dir()), contents(t, resumed.Dir()))
				if of, err := resumed.Diagnostics(); err != nil || !reflect.DeepEqual(of.Halvings, d.Halvings) {
					t.Errorf("resumed in %s, the halvings are %+v, want %+v (%v)", task, of.Halvings, d.Halvings, err)
				}
			}

			for chain, n := range d.Halvings {
				part := spec
				part.FirstChain, part.Chains = chain, 2
				part.Schedule = optimizers.WarmUp{Steps: 400, Then: optimizers.Constant{Rate: rate / float64(int(1)<<n)}}
				slower, err := bayes.Fit(ctx, part, data, filepath.Join(t.TempDir(), "part"), with(t, 1))
				must(t, err)
				if !slices.Equal(lastOf(t, slower)[chain], last[chain]) {
					t.Errorf("chain %d of a run at 1/%d of the rate differs from that of the whole", chain, 1<<n)
				}
			}
		})
	}
}

// TestTrainedAgainFromAStart: chains that start at another run's samples are trained again from
// there, even if that run has changed or is gone when the run is resumed.
func TestTrainedAgainFromAStart(t *testing.T) {
	data, dir := trainOn(squares(t, 60, 3, 1)), t.TempDir()
	first := func(seed uint64, name string) string {
		spec := rising(t, "ensemble", 1e-3)
		spec.Epochs, spec.Schedule, spec.Seed = 2, optimizers.Constant{Rate: 1e-3}, seed
		path := filepath.Join(dir, name)
		_, err := bayes.Fit(t.Context(), spec, data, path, with(t, 2))
		must(t, err)
		return path
	}
	spec := rising(t, "ensemble", 4)
	spec.Start = first(5, "first")
	whole := fit(t, spec, data, with(t, 2))
	d, err := whole.Diagnostics()
	must(t, err)
	if len(d.Halvings) != 4 || slices.Max(d.Halvings) == 0 {
		t.Fatalf("%v halvings, want some", d.Halvings)
	}
	stopped := func(name string) string {
		ctx, observer := stopAt(100)
		path := filepath.Join(dir, name)
		_, err := bayes.Fit(ctx, spec, data, path, with(t, 2), observer)
		wantError(t, "a stop", err, "stopped after 100 of 450 steps, 0 samples kept: context canceled")
		return path
	}
	replaced, deleted, lost := stopped("replaced"), stopped("deleted"), stopped("lost")
	must(t, os.RemoveAll(spec.Start))
	_, err = bayes.Resume(t.Context(), deleted, data, with(t, 2))
	must(t, err)
	same(t, "resumed without the first run", contents(t, whole.Dir()), contents(t, deleted))
	first(6, "first")
	_, err = bayes.Resume(t.Context(), replaced, data, with(t, 2))
	must(t, err)
	same(t, "resumed with another first run", contents(t, whole.Dir()), contents(t, replaced))

	v, err := bayes.Verify(whole.Dir())
	must(t, err)
	if len(v.Damaged) > 0 {
		t.Errorf("verify: %v", v.Damaged)
	}
	must(t, os.Remove(filepath.Join(lost, rundir.FirstCheckpoint)))
	_, err = bayes.Resume(t.Context(), lost, data, with(t, 2))
	wantError(t, "without the first checkpoint", err, "graph: step ", "to train the chain again: ", rundir.FirstCheckpoint)
}

// TestExplodedAtTheEnd: a chain is also trained again if its loss at the end is far above
// guessing's, or if its last update makes its predictions infinite. A run that was stopped
// meanwhile has the same bits.
func TestExplodedAtTheEnd(t *testing.T) {
	data := trainOn(squares(t, 60, 3, 1))
	for name, c := range map[string]struct {
		schedule optimizers.Schedule
		steps    int
	}{
		"loss":                  {optimizers.Constant{Rate: 0.5}, 3},
		"loss after many steps": {optimizers.WarmUp{Steps: 110, Then: optimizers.Constant{Rate: 2.2}}, 130},
		"weights":               {optimizers.WarmUp{Steps: 110, Then: optimizers.Constant{Rate: 2.2}}, 131},
	} {
		t.Run(name, func(t *testing.T) {
			spec := rising(t, "ensemble", 1)
			spec.Schedule, spec.Epochs = c.schedule, c.steps
			whole := fit(t, spec, data, with(t, 2))
			d, err := whole.Diagnostics()
			must(t, err)
			if len(d.Halvings) != 4 || slices.Max(d.Halvings) == 0 {
				t.Fatalf("%v halvings, want some", d.Halvings)
			}
			ctx, stop := context.WithCancel(t.Context())
			dir := filepath.Join(t.TempDir(), "stopped")
			_, err = bayes.Fit(ctx, spec, data, dir, with(t, 1), bayes.WithObserver(func(e bayes.Event) {
				if strings.Contains(e.Remark, "is trained again from its initial values") {
					stop()
				}
			}))
			wantError(t, "a stop", err, "stopped after")
			resumed, err := bayes.Resume(t.Context(), dir, data, with(t, 2))
			must(t, err)
			same(t, "resumed", contents(t, whole.Dir()), contents(t, resumed.Dir()))
			if of, err := resumed.Diagnostics(); err != nil || !slices.Equal(of.Halvings, d.Halvings) {
				t.Errorf("resumed, the halvings are %v, want %v (%v)", of.Halvings, d.Halvings, err)
			}
		})
	}
}

// TestDistilledAgain: a distillation that is trained again begins with the first copy of the
// images.
func TestDistilledAgain(t *testing.T) {
	data, _, spec := lesson(t)
	at := func(rate float64) *bayes.Run {
		spec.Schedule = optimizers.WarmUp{Steps: 60, Then: optimizers.Constant{Rate: rate}}
		return fit(t, spec, data, with(t, 2))
	}
	run := at(1024)
	d, err := run.Diagnostics()
	must(t, err)
	if len(d.Halvings) != 1 || d.Halvings[0] == 0 {
		t.Fatalf("%v halvings, want some", d.Halvings)
	}
	if !reflect.DeepEqual(lastOf(t, at(1024/float64(int(1)<<d.Halvings[0]))), lastOf(t, run)) {
		t.Errorf("the network differs from that of a run at 1/%d of the rate", 1<<d.Halvings[0])
	}
}

// TestMemoryOfTrainingAgain: the chains' states are not copied while chains are trained again,
// since the estimate of memory does not count such copies.
func TestMemoryOfTrainingAgain(t *testing.T) {
	spec := rising(t, "ensemble", 4)
	spec.Layers = layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 300}, layers.Linear{Outputs: 300}, layers.Linear{Outputs: 3}}
	spec.Schedule, spec.Epochs = optimizers.WarmUp{Steps: 190, Then: optimizers.Constant{Rate: 3}}, 200
	const states = 4 * 4 * (144*300 + 300*300) // at least, in bytes
	heap := map[string]int64{}
	fit(t, spec, trainOn(squares(t, 60, 3, 1)), with(t, 2), bayes.WithObserver(func(e bayes.Event) {
		if e.Remark == "" && heap[e.Task] == 0 {
			time.Sleep(200 * time.Millisecond) // until the checkpoint is written
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			heap[e.Task] = int64(m.HeapAlloc)
		}
	}))
	t.Log(heap)
	if before, again := heap["fit"], heap["train again"]; again == 0 || again > before+states/2 {
		t.Errorf("%d bytes are in use while chains are trained again, want at most half of %d more than %d", again, states, before)
	}
}

// TestOptimizersAreTrainedAgain: chains of optimizers are trained again, too.
func TestOptimizersAreTrainedAgain(t *testing.T) {
	d, err := fit(t, rising(t, "sgd", 60), trainOn(squares(t, 60, 3, 1))).Diagnostics()
	must(t, err)
	if len(d.Halvings) != 4 || slices.Max(d.Halvings) == 0 {
		t.Errorf("%v halvings, want some", d.Halvings)
	}
}

// TestTrainedAgainTooOften: a run whose chain diverges at 1/32 of the rate, too, fails, and what
// it reports is of the steps before.
func TestTrainedAgainTooOften(t *testing.T) {
	data, dir, remarks := trainOn(squares(t, 60, 3, 1)), filepath.Join(t.TempDir(), "run"), 0
	_, err := bayes.Fit(t.Context(), rising(t, "ensemble", 1e9), data, dir, bayes.WithObserver(func(e bayes.Event) {
		if strings.Contains(e.Remark, "is trained again") {
			remarks++
		}
	}))
	wantError(t, "fit", err, "ensemble diverged: at 1/32 of its learning rate, too: graph: step ", "start a new run with smaller learning rates (schedule)")
	if !errors.As(err, new(*bayes.DivergedError)) || remarks < 5 {
		t.Errorf("error %T after %d remarks, want a DivergedError after at least 5", err, remarks)
	}
}
