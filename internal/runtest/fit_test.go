package runtest

import (
	"context"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// kind is a small run by one way to train. All are long enough to be stopped twice.
type kind struct {
	name    string
	spec    bayes.Spec
	samples int // of all chains
	states  int // kept next to the samples
}

func kinds(t testing.TB) []kind {
	of := func(method string, change bayes.Spec) bayes.Spec {
		change.Network, change.Seed = "mlp-3", 7
		change.Method = methodOf(t, method)
		if change.Batch == 0 {
			change.Batch = 10
		}
		return change
	}
	return []kind{
		{"optimizer", of("adam", bayes.Spec{Epochs: 30, Chains: 2}), 2, 0},
		{"sampler", of("sghmc", bayes.Spec{Epochs: 6, Chains: 2, Samples: 6}), 12, 0},
		{"augmented", of("sghmc", bayes.Spec{Epochs: 6, Chains: 2, Samples: 6, Augment: &bayes.Augment{Flip: true, Shift: 1, Rotation: 10, Erase: 0.3}}), 12, 0},
		{"preconditioned", of("psgld", bayes.Spec{Epochs: 6, Samples: 5, Schedule: optimizers.Cosine{First: 0.002, Last: 0.001}}), 5, 0},
		{"by layers", of("ksgld", bayes.Spec{Epochs: 4, Samples: 5}), 5, 0},
		{"thermostat", of("sgnht", bayes.Spec{Epochs: 6, Samples: 5}), 5, 0},
		{"matched friction", of("matched-friction", bayes.Spec{Epochs: 6, Samples: 5}), 5, 0},
		{"cyclical", of("baoab", bayes.Spec{Epochs: 6, Cycles: 2, BurnIn: new(1), Samples: 6}), 6, 0},
		{"anchor", of("sgld", bayes.Spec{Epochs: 6, Anchor: 2, Samples: 5}), 5, 0},
		{"symmetric", of("ubu", bayes.Spec{Epochs: 6, Samples: 5, Symmetric: true}), 5, 0},
		{"replicas", of("sgld", bayes.Spec{Epochs: 15, Chains: 2, Samples: 5, Temperatures: []float64{1, 1.01, 1.02}}), 10, 0},
		{"exact", of("hmc:leapfrog-steps=5", bayes.Spec{Subset: 40, Batch: 40, Epochs: 200, Chains: 2, Samples: 4}), 8, 0},
		{"microcanonical", of("mclmc", bayes.Spec{Subset: 40, Batch: 40, Epochs: 200, Chains: 2, Samples: 4}), 8, 0},
		{"no u-turn", of("nuts:max-depth=4", bayes.Spec{Subset: 40, Batch: 40, Epochs: 60, BurnIn: new(44), Chains: 2, Samples: 4}), 8, 0},
		{"ensemble", of("ensemble", bayes.Spec{Epochs: 30, Chains: 3}), 3, 0},
		{"dropout", of("mc-dropout:rate=0.2", bayes.Spec{Epochs: 30, Chains: 2, Samples: 3}), 2, 0},
		{"swag", of("swag:rank=3", bayes.Spec{Epochs: 6, Chains: 2, Samples: 4}), 8, 12},
		{"laplace", of("laplace", bayes.Spec{Epochs: 30, Chains: 2, Samples: 3}), 6, 0},
		{"backprop", of("bbb", bayes.Spec{Epochs: 30, Samples: 4}), 4, 0},
	}
}

// A run has the same bits whatever the number of threads, and also if it was stopped twice and
// resumed.
func TestRunsAreTheSame(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	for _, k := range kinds(t) {
		t.Run(k.name, func(t *testing.T) {
			steps := 0
			whole := fit(t, k.spec, data, with(t, 1), bayes.WithObserver(func(e bayes.Event) { steps = max(steps, e.Total) }))
			want := contents(t, whole.Dir())
			checkCounts(t, k, whole, want)

			dir := filepath.Join(t.TempDir(), "stopped")
			ctx, stop := stopAt(steps / 3)
			_, err := bayes.Fit(ctx, k.spec, data, dir, with(t, 2), stop)
			first := checkStopped(t, whole, dir, err, 1, steps)
			ctx, stop = stopAt(2 * steps / 3)
			_, err = bayes.Resume(ctx, dir, data, with(t, 1), stop)
			checkStopped(t, whole, dir, err, first+1, steps)
			resumed, err := bayes.Resume(context.Background(), dir, data)
			must(t, err)
			same(t, "stopped twice and resumed", want, contents(t, dir))
			if resumed.Dir() != dir {
				t.Errorf("the run is in %s, want %s", resumed.Dir(), dir)
			}

			before := readFile(t, whole.Dir(), rundir.DiagnosticsFile)
			var remarks []string
			_, err = bayes.Resume(context.Background(), whole.Dir(), data, bayes.WithObserver(func(e bayes.Event) { remarks = append(remarks, e.Remark) }))
			must(t, err)
			same(t, "resumed when it was finished", want, contents(t, whole.Dir()))
			if text := strings.Join(remarks, ""); !strings.Contains(text, "nothing is left to do") {
				t.Errorf("remarks %q", text)
			}
			if after := readFile(t, whole.Dir(), rundir.DiagnosticsFile); after != before {
				t.Errorf("the diagnostics of a finished run were %.100s, and are %.100s", before, after)
			}
		})
	}
}

func readFile(t testing.TB, elements ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(elements...))
	must(t, err)
	return string(content)
}

func checkCounts(t *testing.T, k kind, run *bayes.Run, files map[string][]byte) {
	t.Helper()
	count := func(prefix string) int {
		return len(slices.Collect(func(yield func(string) bool) {
			for name := range files {
				if strings.HasPrefix(name, prefix) && !yield(name) {
					return
				}
			}
		}))
	}
	if count("samples/") != k.samples || count("states/") != k.states {
		t.Errorf("%d samples and %d states, want %d and %d", count("samples/"), count("states/"), k.samples, k.states)
	}
	if expected, err := run.Expected(); err != nil || expected != k.samples {
		t.Errorf("%d samples are expected (%v), want %d", expected, err, k.samples)
	}
	paths, err := run.Samples()
	if err != nil || len(paths) != k.samples || !slices.IsSorted(paths) {
		t.Errorf("samples %v (%v), want %d in their order", paths, err, k.samples)
	}
}

// checkStopped checks a run that was stopped after at least some steps: it reports its progress,
// and has the samples up to there.
func checkStopped(t *testing.T, whole *bayes.Run, dir string, err error, least, steps int) (made int) {
	t.Helper()
	var unfinished *bayes.UnfinishedError
	if !errors.As(err, &unfinished) || !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want Unfinished by the context", err)
	}
	if unfinished.Dir != dir || unfinished.Steps != steps || unfinished.Made < least || unfinished.Made >= steps {
		t.Fatalf("%+v, want %d to fewer than %d steps in %s", unfinished, least, steps, dir)
	}
	run, err := bayes.Open(dir)
	must(t, err)
	files, err := run.Samples()
	must(t, err)
	if len(files) != unfinished.Samples {
		t.Errorf("%d samples, and the error says %d", len(files), unfinished.Samples)
	}
	want := contents(t, whole.Dir())
	for name, content := range contents(t, dir) {
		if strings.HasPrefix(name, "samples/") && string(content) != string(want[name]) {
			t.Errorf("%s differs from the whole run's", name)
		}
	}
	d, err := run.Diagnostics()
	if err != nil || d.Made != unfinished.Made {
		t.Errorf("diagnostics of %d steps (%v), want %d", d.Made, err, unfinished.Made)
	}
	return unfinished.Made
}

// A process that was killed leaves samples and metrics of later steps than its checkpoint, and
// halves of files.
func TestKilledRunsGoOn(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	for _, k := range kinds(t) {
		if !slices.Contains([]string{"sampler", "replicas", "swag"}, k.name) {
			continue
		}
		whole := fit(t, k.spec, data)
		want := contents(t, whole.Dir())
		stopped := filepath.Join(t.TempDir(), "stopped")
		ctx, stop := stopAt(whole.Manifest().Steps / 2)
		if _, err := bayes.Fit(ctx, k.spec, data, stopped, stop); err == nil {
			t.Fatal("no error of a run that was stopped")
		}
		killed := filepath.Join(t.TempDir(), "killed")
		must(t, os.CopyFS(killed, os.DirFS(whole.Dir())))
		must(t, os.WriteFile(filepath.Join(killed, rundir.CheckpointFile), []byte(readFile(t, stopped, rundir.CheckpointFile)), 0o644))
		halves := []string{"samples/.chain00000-step000000020.safetensors.99-1.partial", "checkpoint/.state.safetensors.99-2.partial",
			".manifest.json.99-3.partial"}
		for _, half := range halves {
			must(t, os.WriteFile(filepath.Join(killed, half), []byte("half"), 0o600))
		}
		metrics, err := os.OpenFile(filepath.Join(killed, rundir.MetricsFile), os.O_APPEND|os.O_WRONLY, 0)
		must(t, err)
		_, err = metrics.WriteString(`{"step": 12`)
		must(t, err)
		must(t, metrics.Close())
		// Samples of later steps are removed at once: a reader would take them for this run's.
		ended, end := context.WithCancel(context.Background())
		end()
		_, err = bayes.Resume(ended, killed, data)
		var unfinished *bayes.UnfinishedError
		if !errors.As(err, &unfinished) {
			t.Fatalf("error %v, want Unfinished", err)
		}
		for _, dir := range []string{rundir.SamplesDir, rundir.StatesDir} {
			files, err := filepath.Glob(filepath.Join(killed, dir, "*"))
			must(t, err)
			for _, file := range files {
				if s, err := samples.ReadSample(file); err != nil || s.Step > unfinished.Made {
					t.Errorf("%s is there still after %d steps (%v)", file, unfinished.Made, err)
				}
			}
		}
		_, err = bayes.Resume(context.Background(), killed, data)
		must(t, err)
		same(t, k.name, want, contents(t, killed))
		for _, half := range halves {
			if _, err := os.Stat(filepath.Join(killed, half)); !os.IsNotExist(err) {
				t.Errorf("%s is there still (%v)", half, err)
			}
		}
	}
}

// A process that was killed when all steps were made, before its diagnostics and its calibration.
func TestKilledAtTheEnd(t *testing.T) {
	data := &datasets.Splits{Train: squares(t, 100, 4, 1), Validation: squares(t, 40, 4, 2)}
	for _, k := range kinds(t) {
		if !slices.Contains([]string{"sampler", "swag", "laplace", "backprop"}, k.name) {
			continue
		}
		whole := fit(t, k.spec, data)
		dir := copied(t, whole, func(dir string) {
			x, err := rundir.ReadIndex(dir)
			must(t, err)
			var lines []index.Line
			for _, name := range x.Names {
				if name != rundir.DiagnosticsFile && name != rundir.CalibrationFile {
					lines = append(lines, x.Lines[name])
				}
			}
			_, err = index.Rewrite(dir, lines, nil)
			must(t, err)
			must(t, os.Remove(filepath.Join(dir, rundir.DiagnosticsFile)))
			must(t, os.Remove(filepath.Join(dir, rundir.CalibrationFile)))
		})
		_, err := bayes.Resume(context.Background(), dir, data)
		must(t, err)
		for _, name := range []string{rundir.DiagnosticsFile, rundir.CalibrationFile} {
			if want, got := readFile(t, whole.Dir(), name), readFile(t, dir, name); got != want {
				t.Errorf("%s: %s is %.200s, want %.200s", k.name, name, got, want)
			}
		}
	}
}

// Seeds differ; a chain is the same on its own and among others.
func TestSeedsAndChains(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	spec := bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 10, Epochs: 2, Samples: 2, BurnIn: new(1), Chains: 2, Seed: 3}
	two := contents(t, fit(t, spec, data).Dir())
	spec.Chains = 1
	one := contents(t, fit(t, spec, data).Dir())
	for name, content := range one {
		if strings.HasPrefix(name, "samples/") && string(content) != string(two[name]) {
			t.Errorf("%s of one chain differs from that of two", name)
		}
	}
	first := slices.Sorted(maps.Keys(one))
	spec.Seed = 4
	other := contents(t, fit(t, spec, data).Dir())
	for _, name := range first {
		if string(other[name]) == string(one[name]) {
			t.Errorf("%s is the same with another seed", name)
		}
	}
}

// Events come in the order of steps, cover all of them, and have the figures of metrics.jsonl.
func TestObserver(t *testing.T) {
	data := squares(t, 100, 4, 1)
	var events []bayes.Event
	spec := bayes.Spec{Network: "mlp-3", Method: methodOf(t, "baoab"), Batch: 20, Epochs: 40, Chains: 2, Samples: 4, Seed: 1}
	run := fit(t, spec, trainOn(data), bayes.WithObserver(func(e bayes.Event) { events = append(events, e) }))
	after := slices.IndexFunc(events, func(e bayes.Event) bool { return e.Task == "temperature" })
	for i, e := range events[after:] {
		if e.Task != "temperature" || e.On != "squares" || e.Done != i+1 || e.Total != len(events)-after || e.Images != 5*100 || e.Remark != "" {
			t.Errorf("event %+v after the steps, number %d", e, i)
		}
	}
	if plan := events[0].Remark; plan != "friction=0.1, learning rate constant:0.0005, minibatches of 20, 40 epochs, 200 steps" {
		t.Errorf("before the steps: %q", plan)
	}
	events = events[1:after]
	done, images := 0, 0
	for _, e := range events {
		if e.Task != "fit" || e.On != "squares" || e.Total != 200 || e.Done <= done || e.Done > 200 || e.Remark != "" {
			t.Errorf("event %+v after step %d", e, done)
		}
		if !(e.Loss > 0 && e.Loss < 3) || !(e.Accuracy > 0 && e.Accuracy <= 1) || math.IsNaN(e.Temperature) {
			t.Errorf("event %+v: numbers", e)
		}
		done, images = e.Done, images+e.Images
	}
	if done != 200 || images != 200*20*2 {
		t.Errorf("%d steps and %d images, want 200 and 8000", done, images)
	}
	if last := events[len(events)-1]; !(last.RHat > 0.9) {
		t.Errorf("R-hat %v at the end", last.RHat)
	}
	lines := strings.Split(strings.TrimSpace(readFile(t, run.Dir(), rundir.MetricsFile)), "\n")
	if len(lines) != len(events) {
		t.Errorf("%d lines of metrics, %d events", len(lines), len(events))
	}
	_, err := run.With(bayes.WithObserver(nil)).Predictions(context.Background(), data, nil)
	must(t, err)
	events = nil
	_, err = run.With(bayes.WithObserver(func(e bayes.Event) { events = append(events, e) })).Predictions(context.Background(), data, nil)
	must(t, err)
	for i, e := range events {
		if e.Task != "predict" || e.On != "squares" || e.Done != i+1 || e.Total != 8 || e.Images != 100 {
			t.Errorf("event %d of a prediction: %+v", i, e)
		}
	}
	if len(events) != 8 {
		t.Errorf("%d events of a prediction by 8 samples", len(events))
	}
}

// Try makes some steps and no directory.
func TestTry(t *testing.T) {
	done := 0
	spec := bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 20, Epochs: 40, Anchor: 2, Chains: 2}
	total, err := bayes.Try(context.Background(), spec, squares(t, 100, 4, 1), 7, bayes.WithObserver(func(e bayes.Event) {
		if e.Remark == "" && (e.Task != "try" || e.Total != 7) {
			t.Errorf("event %+v", e)
		}
		done = e.Done
	}))
	if err != nil || total != 200 || done != 7 {
		t.Errorf("%d of %d steps (%v), want 7 of 200", done, total, err)
	}
	_, err = bayes.Try(context.Background(), bayes.Spec{Batch: 200}, squares(t, 100, 4, 1), 2)
	wantInvalid(t, "a batch of too many", err, "batch must be at most 100, the number of examples, got 200")
	_, err = bayes.Try(context.Background(), bayes.Spec{}, nil, 2)
	wantInvalid(t, "no data", err, "try: no data to train on")
	_, err = bayes.Fit(context.Background(), quick(), trainOn(squares(t, 100, 4, 1)), "")
	wantInvalid(t, "no folder", err, "fit: no directory for the run")
	_, err = bayes.Try(context.Background(), bayes.Spec{}, squares(t, 100, 4, 1), 0)
	wantInvalid(t, "no steps", err, "try: steps must be at least 1, got 0")
}
