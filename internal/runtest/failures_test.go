package runtest

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
)

// quick is a run of 10 steps.
func quick() bayes.Spec {
	return bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 20, Epochs: 2, Samples: 2}
}

// A run whose numbers overflow reports where, keeps the samples before, and fails in the same way
// when it is resumed.
func TestNotFinite(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	spec := bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 10, Epochs: 20, BurnIn: new(0), Samples: 20, Chains: 2}
	var err error
	spec.Schedule, err = optimizers.ParseSchedule("step:0.05,1e30,100")
	must(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	_, err = bayes.Fit(context.Background(), spec, data, dir)
	for _, what := range []string{"fit", "resumed"} {
		var unfinished *bayes.UnfinishedError
		var at *graph.NotFinite
		if !errors.As(err, &unfinished) || !errors.As(err, &at) {
			t.Fatalf("%s: error %v, want Unfinished by a NotFinite", what, err)
		}
		if unfinished.Made != 100 || unfinished.Steps != 200 || unfinished.Samples != 20 || at.Step < 100 || at.Step > 102 {
			t.Errorf("%s: %+v at %+v, want 100 of 200 steps and 20 samples", what, unfinished, at)
		}
		wantError(t, what, err, dir+" stopped after 100 of 200 steps, 20 samples kept: ", "computed a NaN or an infinity in ")
		run, opening := bayes.Open(dir)
		must(t, opening)
		files, opening := run.Samples()
		if opening != nil || len(files) != 20 || !strings.HasSuffix(files[19], "chain00001-step000000100.safetensors") {
			t.Errorf("%s: samples %v (%v)", what, files, opening)
		}
		if _, err := run.Assess(context.Background(), data.Train, nil); err != nil {
			t.Errorf("%s: what was kept does not predict: %v", what, err)
		}
		_, err = bayes.Resume(context.Background(), dir, data)
	}

	// From the first step on there is no sample.
	spec.Schedule = optimizers.Constant{Rate: 1e10}
	early := filepath.Join(t.TempDir(), "early")
	_, err = bayes.Fit(context.Background(), spec, data, early)
	var unfinished *bayes.UnfinishedError
	if !errors.As(err, &unfinished) || unfinished.Made != 0 || unfinished.Samples != 0 {
		t.Errorf("error %v, want Unfinished after no step", err)
	}
	run, err := bayes.Open(early)
	must(t, err)
	_, err = run.Predict(context.Background(), data.Train)
	wantError(t, "prediction without samples", err, "predict: "+early+" has no samples yet")
}

// Fit with a context that has ended makes a directory that Resume accepts.
func TestEndedContext(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	ended, end := context.WithCancel(context.Background())
	end()
	dir := filepath.Join(t.TempDir(), "run")
	_, err := bayes.Fit(ended, quick(), data, dir)
	var unfinished *bayes.UnfinishedError
	if !errors.As(err, &unfinished) || unfinished.Made != 0 || !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want Unfinished", err)
	}
	_, err = bayes.Resume(context.Background(), dir, data)
	must(t, err)
	same(t, "resumed", contents(t, fit(t, quick(), data).Dir()), contents(t, dir))

	// It may end while the run is calibrated: then all steps are made.
	calibrated := &datasets.Splits{Train: data.Train, Validation: squares(t, 40, 4, 2)}
	ctx, stop := context.WithCancel(context.Background())
	dir = filepath.Join(t.TempDir(), "run")
	_, err = bayes.Fit(ctx, quick(), calibrated, dir, bayes.WithObserver(func(e bayes.Event) {
		if e.Task == "predict" {
			stop()
		}
	}))
	if !errors.As(err, &unfinished) || unfinished.Made != 10 || unfinished.Steps != 10 || !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want Unfinished", err)
	}
	run, err := bayes.Resume(context.Background(), dir, calibrated)
	must(t, err)
	if _, err := run.Calibration(); err != nil {
		t.Error(err)
	}
	_, err = run.Predict(ended, data.Train)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a prediction without time: error %v", err)
	}
}

func TestDirs(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	must(t, os.WriteFile(file, nil, 0o644))
	_, err := bayes.Fit(context.Background(), quick(), data, dir)
	if want := "pollen: run directory " + dir + " is not empty"; err == nil || err.Error() != want || !errors.Is(err, os.ErrExist) {
		t.Errorf("a folder with a file: error %v, want %s, which is os.ErrExist", err, want)
	}
	for _, place := range []string{file, filepath.Join(file, "run")} {
		_, err = bayes.Fit(context.Background(), quick(), data, place)
		wantError(t, place, err, "pollen: run directory: ", "not a directory")
	}
	empty := filepath.Join(dir, "empty")
	must(t, os.Mkdir(empty, 0o755))
	_, err = bayes.Fit(context.Background(), quick(), data, empty)
	must(t, err)
	_, err = bayes.Fit(context.Background(), quick(), data, empty)
	wantError(t, "a run's folder", err, "is not empty: it has a run; resume that run, or choose another directory")

	for _, place := range []string{dir, file, filepath.Join(dir, "nowhere")} {
		_, opening := bayes.Open(place)
		_, resuming := bayes.Resume(context.Background(), place, data)
		for _, err := range []error{opening, resuming} {
			var not *bayes.NotARunError
			if !errors.As(err, &not) || not.Dir != place || not.Unwrap() == nil {
				t.Errorf("%s: error %v, want NotARun", place, err)
			}
			wantError(t, place, err, place+" is not the directory of a run: ")
			if missing := place != file; missing {
				wantError(t, place, err, " of a run: there is no "+filepath.Join(place, "manifest.json"))
			}
		}
	}
}

// The files in a run's folder may be damaged.
func TestDamagedRuns(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	whole := fit(t, quick(), data)
	manifest := readFile(t, whole.Dir(), rundir.ManifestFile)
	damaged := func(t *testing.T, name, content string) string {
		dir := filepath.Join(t.TempDir(), "run")
		must(t, os.CopyFS(dir, os.DirFS(whole.Dir())))
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644))
		return dir
	}
	for content, want := range map[string]string{
		manifest[:100]: "unexpected end of JSON",
		"":             "unexpected end of JSON",
		"[]":           "pollen: manifest: ",
		strings.Replace(manifest, `"epochs": 2`, `"epochs": 3`, 1):                               "it was changed: its SHA-256 is ",
		strings.Replace(manifest, `"sha256": "`, `"sha257": "`, 1):                               "it has no checksum",
		resealed(t, strings.Replace(manifest, `"format": 1`, `"format": 5`, 1)):                  "format must be 1, got 5: ",
		resealed(t, strings.Replace(manifest, `"format": 1`, `"format": -1`, 1)):                 "format must be 1, got -1: ",
		resealed(t, strings.Replace(manifest, `"method": "sgld"`, `"method": "dance"`, 1)):       `no method "dance"`,
		resealed(t, strings.Replace(manifest, `"batch": 20`, `"dance": 20`, 1)):                  `no setting "dance"`,
		resealed(t, strings.Replace(manifest, `"epochs": 2`, `"epochs": -2`, 1)):                 "epochs must be at least 1, got -2",
		resealed(t, strings.Replace(manifest, `"burn-in": 1`, `"burn-in": 2`, 1)):                "burn-in is 2 of 2 epochs",
		resealed(t, strings.Replace(manifest, `"size": 100`, `"size": -100`, 1)):                 "size must be at least 1, got -100",
		resealed(t, strings.Replace(manifest, `"channels": 1`, `"channels": 0`, 1)):              "got 0x12x12",
		resealed(t, strings.Replace(manifest, `"height": 12`, `"height": -12`, 1)):               "got 1x-12x12",
		resealed(t, strings.Replace(manifest, `"mean": [`, `"mean": [1, `, 1)):                   "manifest: ",
		resealed(t, strings.Replace(manifest, `"std": [`, `"std": [0, `, 1)):                     "manifest: ",
		resealed(t, strings.Replace(manifest, `"classNames": [`, `"classNames": [], "x": [`, 1)): "manifest: ",
		`{"format": 2}`:  "format must be 1, got 2: ",
		`{"config": {}}`: "no format, must be 1: ",
	} {
		dir := damaged(t, rundir.ManifestFile, content)
		_, err := bayes.Open(dir)
		wantError(t, content[:min(len(content), 40)], err, want, rundir.ManifestFile)
		wantDamaged(t, err, filepath.Join(dir, rundir.ManifestFile))
	}

	// The checkpoint before takes the place of a damaged one; if there is none, that is an error.
	checkpoint := readFile(t, whole.Dir(), rundir.CheckpointFile)
	for _, content := range []string{"", checkpoint[:100], checkpoint[:len(checkpoint)-1], strings.Replace(checkpoint, "chain0", "chain1", 1)} {
		dir := damaged(t, rundir.CheckpointFile, content)
		var remarks []string
		_, err := bayes.Resume(context.Background(), dir, data, bayes.WithObserver(func(e bayes.Event) { remarks = append(remarks, e.Remark) }))
		must(t, err)
		same(t, "from the checkpoint before", contents(t, whole.Dir()), contents(t, dir))
		text := strings.Join(remarks, "; ")
		if !strings.Contains(text, rundir.CheckpointFile) || !strings.Contains(text, "continuing from the checkpoint before, after 9 steps") {
			t.Errorf("remarks %q", text)
		}
		if got := readFile(t, dir, rundir.DamagedCheckpoint); got != content {
			t.Error("the damaged checkpoint was not put aside")
		}
		dir = damaged(t, rundir.CheckpointFile, content)
		must(t, os.WriteFile(filepath.Join(dir, rundir.OlderCheckpoint), []byte(content), 0o644))
		_, err = bayes.Resume(context.Background(), dir, data)
		wantError(t, "damaged checkpoints", err, "checkpoint: ")
		wantDamaged(t, err, filepath.Join(dir, rundir.CheckpointFile))
	}
	dir := damaged(t, rundir.CheckpointFile, "")
	must(t, os.RemoveAll(filepath.Join(dir, filepath.Dir(rundir.CheckpointFile))))
	_, err := bayes.Resume(context.Background(), dir, data)
	wantError(t, "no checkpoint", err, "no checkpoint to resume from: ")

	dir = damaged(t, "samples/chain00000-step000000010.safetensors", "not one")
	run, err := bayes.Open(dir)
	must(t, err)
	_, err = run.Predict(context.Background(), data.Train)
	wantDamaged(t, err, filepath.Join(dir, "samples/chain00000-step000000010.safetensors"))
	if strings.Count(err.Error(), dir) != 1 {
		t.Errorf("%v: want the path once", err)
	}
	must(t, os.RemoveAll(filepath.Join(dir, rundir.SamplesDir)))
	_, err = run.Predict(context.Background(), data.Train)
	wantError(t, "no samples", err, "no such file")

	dir = damaged(t, rundir.CalibrationFile, "{")
	run, err = bayes.Open(dir)
	must(t, err)
	_, predicting := run.Predict(context.Background(), data.Train)
	_, assessing := run.Assess(context.Background(), data.Train, nil)
	wantError(t, "a damaged calibration", predicting, rundir.CalibrationFile)
	wantError(t, "a damaged calibration", assessing, rundir.CalibrationFile)

	// Without a damaged or missing calibration there are answers, without sets.
	calibrated := fit(t, quick(), &datasets.Splits{Train: data.Train, Validation: squares(t, 40, 4, 2)})
	must(t, os.Remove(filepath.Join(calibrated.Dir(), rundir.CalibrationFile)))
	_, err = calibrated.Predict(context.Background(), data.Train)
	wantDamaged(t, err, filepath.Join(calibrated.Dir(), rundir.CalibrationFile))
	for _, run := range []*bayes.Run{run, calibrated} {
		remarks := ""
		without := run.With(bayes.WithoutDamaged(), bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark }))
		answers, err := without.Predict(context.Background(), data.Train)
		must(t, err)
		if answers[0].PredictionSet != nil || answers[0].InDistribution != nil ||
			!strings.Contains(remarks, "continuing without the calibration: no prediction sets") {
			t.Errorf("%+v, remarks %q", answers[0], remarks)
		}
		_, err = without.Assess(context.Background(), data.Train, nil)
		must(t, err)
	}
}

// Data that are not a run's own.
func TestResumeOnOtherData(t *testing.T) {
	data := squares(t, 100, 4, 1)
	run := fit(t, quick(), trainOn(data))
	changed := func(change func(d *datasets.Dataset)) *datasets.Dataset {
		d := *data
		change(&d)
		return &d
	}
	for what, other := range map[string]*datasets.Dataset{
		"other noise":   squares(t, 100, 4, 2),
		"fewer":         changed(func(d *datasets.Dataset) { *d = *squares(t, 96, 4, 1) }),
		"another label": changed(func(d *datasets.Dataset) { d.Labels = append([]int32{3}, d.Labels[1:]...) }),
		"another shape": changed(func(d *datasets.Dataset) { d.Height, d.Width = 6, 24 }),
		"channels": changed(func(d *datasets.Dataset) {
			d.Channels, d.Width = 2, 6
			d.Mean, d.Std = []float64{0, 0}, []float64{1, 1}
		}),
		"another mean":     changed(func(d *datasets.Dataset) { d.Mean = []float64{0.25} }),
		"other deviations": changed(func(d *datasets.Dataset) { d.Std = []float64{0.25} }),
		"class names":      changed(func(d *datasets.Dataset) { d.ClassNames = []string{"1", "0", "2", "3"} }),
		"a class more":     changed(func(d *datasets.Dataset) { d.ClassNames, d.Classes = []string{"0", "1", "2", "3", "4"}, 5 }),
	} {
		_, err := bayes.Resume(context.Background(), run.Dir(), trainOn(other))
		wantInvalid(t, what, err, "resume "+run.Dir()+": the data squares differ from the data of the run: restore them, or start another run")
	}
	for _, none := range []*datasets.Splits{nil, {}} {
		_, err := bayes.Resume(context.Background(), run.Dir(), none)
		wantInvalid(t, "no data", err, "resume: no data to train on")
		_, err = bayes.Fit(context.Background(), quick(), none, t.TempDir())
		wantInvalid(t, "no data", err, "fit: no data to train on")
	}
	// The same images under another name are the same data.
	renamed := changed(func(d *datasets.Dataset) { d.Name = "other" })
	if _, err := bayes.Resume(context.Background(), run.Dir(), trainOn(renamed)); err != nil {
		t.Error(err)
	}
}

// Problems of the data are found before a directory is made.
func TestInvalidData(t *testing.T) {
	changed := func(change func(d *datasets.Dataset)) *datasets.Dataset {
		d := *squares(t, 100, 4, 1)
		change(&d)
		return &d
	}
	dir := filepath.Join(t.TempDir(), "run")
	refused := func(want string, spec bayes.Spec, data *datasets.Splits) {
		t.Helper()
		_, err := bayes.Fit(context.Background(), spec, data, dir)
		wantInvalid(t, want, err, want)
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Fatalf("%s: there is a folder (%v)", want, err)
		}
	}
	for want, data := range map[string]*datasets.Dataset{
		"no labels":                           changed(func(d *datasets.Dataset) { d.Labels = nil }),
		"below 4, got 4":                      changed(func(d *datasets.Dataset) { d.Labels[0] = 4 }),
		"below 4, got -1":                     changed(func(d *datasets.Dataset) { d.Labels[0] = -1 }),
		"must have 4 class names, got 3":      changed(func(d *datasets.Dataset) { d.ClassNames = d.ClassNames[:3] }),
		"images must have 144 bytes each":     changed(func(d *datasets.Dataset) { d.Images = d.Images[1:] }),
		"must be finite and positive, got 0":  changed(func(d *datasets.Dataset) { d.Std = []float64{0} }),
		"must be finite, got NaN":             changed(func(d *datasets.Dataset) { d.Mean = []float64{math.NaN()} }),
		"must have at least 2 classes, got 1": squares(t, 100, 1, 1),
	} {
		refused(want, quick(), trainOn(data))
		if want != "must have at least 2 classes, got 1" {
			refused(want, quick(), &datasets.Splits{Train: squares(t, 100, 4, 1), Validation: data})
		}
	}
	good := trainOn(squares(t, 100, 4, 1))
	refused("squares has images of 1x6x24, must have the 1x12x12", quick(), &datasets.Splits{
		Train: good.Train, Validation: changed(func(d *datasets.Dataset) { d.Height, d.Width = 6, 24 })})
	refused(`validation: pollen: squares has a class "4", but the classes of `, quick(), &datasets.Splits{Train: good.Train, Validation: squares(t, 40, 5, 1)})
	refused("subset must be at most 100, the number of examples of squares, got 101", bayes.Spec{Subset: 101}, good)
	refused("batch must be at most 100, the number of examples, got 101", bayes.Spec{Batch: 101}, good)
	refused("100 samples in the 5 steps after burn-in", bayes.Spec{Method: langevin.SGLD{}, Batch: 20, Epochs: 2, Samples: 100}, good)
	refused("burn-in is 10 of 10 steps, must be less", bayes.Spec{Batch: 20, Epochs: 2, BurnInSteps: 10}, good)
	refused("epochs are 1e+08 steps, must be at most", bayes.Spec{Batch: 20, Epochs: 20000000}, good)
	refused("40 states that swag collects in the 5 steps after burn-in", bayes.Spec{Batch: 20, Epochs: 2, Method: bayes.SWAG{Rank: 20}}, good)
	refused("mala evaluates all data at each step: batch must be 100, all examples, got 20", bayes.Spec{Batch: 20, Method: methodOf(t, "mala")}, good)
	refused(`no network "dance"; there are lenet,`, bayes.Spec{Network: "dance", Method: langevin.SGLD{}, Samples: 1}, good)
	refused("other networks are read from files, FILE.yaml or FILE.onnx", bayes.Spec{Network: "resnet50", Method: langevin.SGLD{}, Samples: 1}, good)
	refused("got \"0\"", bayes.Spec{Network: "mlp-0", Method: langevin.SGLD{}, Samples: 1}, good)
	refused("output must have shape [B 4], got [B 7]; the last layer is linear1",
		bayes.Spec{Layers: layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 7}}, Batch: 20, Epochs: 2, Samples: 2}, good)
	refused("no linear layer after another", bayes.Spec{Layers: layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 4}},
		Method: bayes.Dropout{Rate: 0.5}, Batch: 20}, good)
	refused("the network must end in a linear layer, got layers.ReLU",
		bayes.Spec{Layers: layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 4}, layers.ReLU{}},
			Method: bayes.LaplaceApproximation{}, Batch: 20}, good)
	refused("laplace: all priors must be Gaussian", bayes.Spec{Method: bayes.LaplaceApproximation{}, Batch: 20, Prior: new(langevin.Laplace(0.1))}, good)
}

// A full disk ends the run and damages nothing. A file instead of a directory imitates a
// directory that the user may not write to.
func TestFullDisk(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	spec := quick()
	spec.Epochs, spec.Samples = 8, 5
	whole := fit(t, spec, data)
	dir := filepath.Join(t.TempDir(), "run")
	place := filepath.Join(dir, rundir.SamplesDir)
	_, err := bayes.Fit(context.Background(), spec, data, dir, bayes.WithObserver(func(e bayes.Event) {
		if _, err := os.Stat(place + "-before"); err != nil && e.Done >= 30 {
			os.Rename(place, place+"-before")
			os.WriteFile(place, nil, 0o644)
		}
	}))
	var unfinished *bayes.UnfinishedError
	if !errors.As(err, &unfinished) {
		t.Fatalf("error %v, want Unfinished", err)
	}
	wantError(t, "samples in a file", err, "samples: store: ")
	must(t, os.Remove(place))
	must(t, os.Rename(place+"-before", place))
	run, err := bayes.Open(dir)
	must(t, err)
	files, err := run.Samples()
	if err != nil || len(files) != unfinished.Samples || len(files) == 0 {
		t.Errorf("%d samples (%v), and the error says %d", len(files), err, unfinished.Samples)
	}
	_, err = bayes.Resume(context.Background(), dir, data)
	must(t, err)
	same(t, "resumed with room", contents(t, whole.Dir()), contents(t, dir))

	// At the beginning there is no half-made folder left.
	if os.Getuid() != 0 {
		closed := filepath.Join(t.TempDir(), "closed")
		must(t, os.Mkdir(closed, 0o500))
		if _, err := bayes.Fit(context.Background(), spec, data, filepath.Join(closed, "run")); err == nil {
			t.Error("no error in a folder that is closed")
		}
	}
}

// No goroutine stays, whatever the outcome of a call.
func TestNoGoroutineStays(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	before := runtime.NumGoroutine()
	run := fit(t, quick(), data)
	_, err := run.Predict(context.Background(), data.Train)
	must(t, err)
	ctx, stop := stopAt(1)
	bayes.Fit(ctx, bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 5, Epochs: 20}, data, filepath.Join(t.TempDir(), "stopped"), stop)
	wild := bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Schedule: optimizers.Constant{Rate: 1e10}}
	bayes.Fit(context.Background(), wild, data, filepath.Join(t.TempDir(), "nan"))
	bayes.Fit(context.Background(), bayes.Spec{Network: "dance"}, data, filepath.Join(t.TempDir(), "none"))
	deadline := time.Now().Add(5 * time.Second)
	for runtime.NumGoroutine() > before && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if after := runtime.NumGoroutine(); after > before {
		stacks := make([]byte, 1<<16)
		t.Errorf("%d goroutines, %d before:\n%s", after, before, stacks[:runtime.Stack(stacks, true)])
	}
}
