package runtest

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/bayes"
	_ "github.com/pollen-ml/pollen/internal/fixedseed"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/samples"
)

// keeping specifies a run with the samples 24, 28, ... 60, and keeps at most 4: 24 and 32 are
// dropped at 40, and 28 and 44 at 60.
func keeping(t testing.TB) bayes.Spec {
	return bayes.Spec{Network: "mlp-3", Method: methodOf(t, "sghmc"), Batch: 10, Epochs: 6, Chains: 2, Samples: 10, Keep: 4, Seed: 7}
}

// stepsOf are the steps of the samples of the first chain.
func stepsOf(t testing.TB, run *bayes.Run) (steps []int) {
	t.Helper()
	files, err := run.Samples()
	must(t, err)
	for _, path := range files {
		chain, step, err := samples.ParseFileName(path)
		must(t, err)
		if chain == 0 {
			steps = append(steps, step)
		}
	}
	if len(files) != 2*len(steps) {
		t.Errorf("%d samples, want %d of each chain", len(files), len(steps))
	}
	return steps
}

// stoppedAt is the directory of a run that was stopped after the given number of steps.
func stoppedAt(t testing.TB, spec bayes.Spec, steps int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "stopped")
	ctx, stop := stopAt(steps)
	if _, err := bayes.Fit(ctx, spec, trainOn(squares(t, 100, 4, 1)), dir, stop); err == nil {
		t.Fatal("the run did not stop")
	}
	return dir
}

// A run that keeps few samples has the same samples, bit for bit, as a run with longer thinning.
// Before its end it has the plan's samples so far, thinned.
func TestKeep(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	whole := fit(t, keeping(t), data)
	if m := whole.Manifest(); m.Format != rundir.Format || m.Spec.Keep != 4 {
		t.Errorf("format %d, keep %d", m.Format, m.Spec.Keep)
	}
	thin := keeping(t)
	thin.Keep, thin.Samples, thin.Thinning = 0, 0, 16
	want := contents(t, fit(t, thin, data).Dir())
	got := contents(t, whole.Dir())
	for name := range got {
		if strings.HasPrefix(name, rundir.SamplesDir) != (want[name] != nil && strings.HasPrefix(name, rundir.SamplesDir)) {
			t.Errorf("%s is there", name)
		}
	}
	for name, content := range want {
		if strings.HasPrefix(name, rundir.SamplesDir) && string(got[name]) != string(content) {
			t.Errorf("%s is not that of the run with a longer thinning", name)
		}
	}
	for stop, want := range map[int][]int{36: {24, 28, 32, 36}, 40: {28, 36}, 44: {28, 36, 44}, 56: {28, 36, 44, 52}} {
		dir := stoppedAt(t, keeping(t), stop)
		run, err := bayes.Open(dir)
		must(t, err)
		if got := stepsOf(t, run); !slices.Equal(got, want) {
			t.Errorf("after %d steps there are samples of %v, want %v", stop, got, want)
		}
		v, err := bayes.Verify(dir)
		must(t, err)
		if len(v.Damaged) > 0 || v.Samples != 2*len(want) || v.Expected != 4 {
			t.Errorf("after %d steps: %+v", stop, v)
		}
		finished, err := run.Finished()
		must(t, err)
		_, err = bayes.Resume(context.Background(), dir, data)
		must(t, err)
		same(t, "resumed", contents(t, whole.Dir()), contents(t, dir))
		now, err := run.Finished()
		if must(t, err); finished || !now {
			t.Errorf("finished when it was stopped after %d: %t, and at its end: %t", stop, finished, now)
		}
	}
	if steps := stepsOf(t, whole); !slices.Equal(steps, []int{36, 52}) {
		t.Errorf("samples of %v", steps)
	}
	for want, s := range map[string]bayes.Spec{
		"keep applies to ":                {Method: methodOf(t, "swag:2"), Keep: 3},
		"keep must be at least 1, got -1": {Keep: -1},
		"keep is 3 with 2 cycles:":        {Keep: 3, Cycles: 2},
	} {
		_, err := s.Resolve()
		wantInvalid(t, want, err, want)
	}
}

// A process may be killed before or after the checkpoint that follows when samples are listed as
// dropped, and the newer checkpoint may be damaged when they are gone.
func TestKilledWhileSamplesGo(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	want := contents(t, fit(t, keeping(t), data).Dir())
	before, after := stoppedAt(t, keeping(t), 36), stoppedAt(t, keeping(t), 40)
	state := readFile(t, before, rundir.CheckpointFile)
	for what, change := range map[string]func(dir string){
		"before the checkpoint": func(dir string) {
			for _, path := range []string{"chain00000-step000000024", "chain00001-step000000024", "chain00000-step000000032", "chain00001-step000000032"} {
				path = filepath.Join(rundir.SamplesDir, path+".safetensors")
				must(t, os.WriteFile(filepath.Join(dir, path), []byte(readFile(t, before, path)), 0o644))
			}
			must(t, os.WriteFile(filepath.Join(dir, rundir.CheckpointFile), []byte(state), 0o644))
		},
		"before they were removed": func(dir string) {
			path := filepath.Join(rundir.SamplesDir, "chain00001-step000000032.safetensors")
			must(t, os.WriteFile(filepath.Join(dir, path), []byte(readFile(t, before, path)), 0o644))
		},
		"from the older checkpoint": func(dir string) {
			must(t, os.WriteFile(filepath.Join(dir, rundir.CheckpointFile), []byte("damaged"), 0o644))
			must(t, os.WriteFile(filepath.Join(dir, rundir.OlderCheckpoint), []byte(state), 0o644))
		},
	} {
		dir := filepath.Join(t.TempDir(), "killed")
		must(t, os.CopyFS(dir, os.DirFS(after)))
		change(dir)
		run, err := bayes.Open(dir)
		must(t, err)
		if got := stepsOf(t, run); !slices.Equal(got, []int{28, 36}) {
			t.Errorf("%s: samples of %v", what, got)
		}
		v, err := bayes.Verify(dir)
		must(t, err)
		if damaged := len(v.Damaged); damaged > 1 || damaged == 1 && v.Damaged[0].File != filepath.Join(dir, rundir.CheckpointFile) {
			t.Errorf("%s: %v", what, v)
		}
		ctx, stop := stopAt(37)
		_, err = bayes.Resume(ctx, dir, data, stop)
		if err == nil {
			t.Fatalf("%s: the run did not stop", what)
		}
		_, err = run.Predictions(context.Background(), data.Train, nil)
		must(t, err)
		_, err = bayes.Resume(context.Background(), dir, data)
		must(t, err)
		same(t, what, want, contents(t, dir))
		if v, err = bayes.Verify(dir); err != nil || len(v.Damaged) > 0 || v.Samples != 4 {
			t.Errorf("%s: %v (%v)", what, v, err)
		}
	}
}

// A reader either reads all samples or gets an error while some are dropped.
func TestReadWhileSamplesGo(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	dir := stoppedAt(t, keeping(t), 36)
	drop := func() {
		spec := keeping(t)
		x, err := rundir.ReadIndex(dir)
		must(t, err)
		listed, err := x.Append(dir, nil)
		must(t, err)
		var gone []index.Line
		for _, step := range []int{24, 32} {
			for chain := range spec.Chains {
				gone = append(gone, index.Line{File: rundir.SamplesDir + "/" + samples.FileName(chain, step), Dropped: true})
			}
		}
		must(t, index.Add(listed, gone...))
		must(t, listed.Close())
		for _, l := range gone {
			must(t, os.Remove(filepath.Join(dir, l.File)))
		}
	}
	run, err := bayes.Open(dir, bayes.WithObserver(func(e bayes.Event) {
		if e.Task == "predict" && e.Done == 1 {
			drop()
		}
	}))
	must(t, err)
	_, err = run.Predictions(context.Background(), data.Train, nil)
	wantError(t, "samples that went", err, "dropped samples while they were read, to keep no more than 4 of a chain: try again")
	p, err := run.With(bayes.WithObserver(nil)).Predictions(context.Background(), data.Train, nil)
	if must(t, err); p.Samples != 4 || len(run.LeftOut()) > 0 {
		t.Errorf("%d samples, %v left out", p.Samples, run.LeftOut())
	}
}

// Progress reports no error if a process drops samples while the speed is measured.
func TestSpeedWhileSamplesGo(t *testing.T) {
	run, err := bayes.Open(stoppedAt(t, keeping(t), 36))
	must(t, err)
	files, err := run.Samples()
	must(t, err)
	// Two samples may be written within one tick of the file system's clock.
	now := time.Now()
	must(t, os.Chtimes(files[len(files)-1], now, now.Add(time.Second)))
	must(t, os.Chtimes(files[len(files)-2], now, now))
	if speed, err := rundir.Speed(files); err != nil || !(speed > 0) {
		t.Errorf("speed %v (%v), want that of its last two samples", speed, err)
	}
	must(t, os.Remove(files[len(files)-2]))
	if speed, err := rundir.Speed(files); err != nil || !math.IsNaN(speed) {
		t.Errorf("speed %v (%v), want NaN", speed, err)
	}
}
