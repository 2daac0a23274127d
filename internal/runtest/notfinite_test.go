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
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// A sample whose weights are finite, but so large that predictions are not, is not kept: the run
// stops before it is written, and the samples before it can predict.
func TestPoisonedSampleIsNotKept(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	spec := bayes.Spec{Network: "mlp-3-3-3", Method: langevin.SGLD{}, Batch: 10, Epochs: 11, BurnIn: new(0), Thinning: 1}
	var err error
	spec.Schedule, err = optimizers.ParseSchedule("step:0.05,1e25,100")
	must(t, err)
	dir := filepath.Join(t.TempDir(), "run")
	_, err = bayes.Fit(t.Context(), spec, data, dir)
	for range 2 {
		var at *bayes.DivergedError
		var sample *samples.NotFiniteError
		if !errors.As(err, &at) || !errors.As(err, &sample) || at.Method != "sgld" || sample.Step != 101 {
			t.Fatalf("error %v, want Diverged by the sample after step 101", err)
		}
		wantError(t, "fit", err, "sgld diverged: samples: the sample of chain 0 at step 101 has a probability of image",
			"start a new run with smaller learning rates")
		v, failed := bayes.Verify(dir)
		must(t, failed)
		if len(v.Damaged) != 0 || v.Samples != 100 || len(v.Notes) != 1 || !strings.Contains(v.Notes[0], "it failed, and may fail again when it is resumed: ") {
			t.Errorf("verification %v, want 100 samples, no damage, and a note on the failure", v)
		}
		_, err = bayes.Resume(t.Context(), dir, data)
	}
	run, err := bayes.Open(dir)
	must(t, err)
	if _, err := run.Predict(t.Context(), data.Train); err != nil {
		t.Error(err)
	}
}

// poison replaces a sample of a run by one with huge weights: the file is intact, and the index
// lists it.
func poison(t *testing.T, run *bayes.Run, at int) (path string) {
	t.Helper()
	files, err := run.Samples()
	must(t, err)
	s, err := samples.ReadSample(files[at])
	must(t, err)
	for _, p := range s.Parameters {
		for i := range p.Values {
			p.Values[i] = float32(math.Copysign(1e30, float64(p.Values[i])))
		}
	}
	written, err := samples.NewStore(filepath.Join(run.Dir(), rundir.SamplesDir)).Write(nil, s)
	must(t, err)
	x, err := index.Read(run.Dir())
	must(t, err)
	var lines []index.Line
	for _, name := range x.Names {
		line := x.Lines[name]
		if name == rundir.SamplesDir+"/"+written[0].Name {
			line = index.Line{File: name, Bytes: written[0].Bytes, Sum: written[0].Sum}
		}
		lines = append(lines, line)
	}
	_, err = index.Rewrite(run.Dir(), lines, nil)
	must(t, err)
	return files[at]
}

// Verify names such a sample. Predictions, scores, gradients, mixing and servers return an error
// that names it, or leave it out.
func TestPoisonedSample(t *testing.T) {
	data := &datasets.Splits{Train: squares(t, 100, 4, 1), Test: squares(t, 40, 4, 2)}
	run := fit(t, bayes.Spec{Network: "mlp-3-3", Method: langevin.SGLD{}, Batch: 20, Epochs: 10, BurnIn: new(2), Samples: 8}, data)
	intact, err := run.Predict(t.Context(), data.Test)
	must(t, err)
	bad := poison(t, run, 3)

	v, err := bayes.Verify(run.Dir())
	must(t, err)
	if len(v.Damaged) != 1 || v.Damaged[0].File != bad || v.Samples != 7 || len(v.Notes) != 0 {
		t.Errorf("verification %v, want that %s is damaged, and 7 samples", v, bad)
	}
	uses := map[string]func(r *bayes.Run) error{
		"predict":  func(r *bayes.Run) error { _, err := r.Predict(t.Context(), data.Test); return err },
		"assess":   func(r *bayes.Run) error { _, err := r.Assess(t.Context(), data.Test, nil); return err },
		"gradient": func(r *bayes.Run) error { _, err := r.Gradient(t.Context(), data.Test); return err },
		"mixing":   func(r *bayes.Run) error { _, err := r.Mixing(t.Context(), data); return err },
		"predictor": func(r *bayes.Run) error {
			p, err := r.Predictor(8)
			if err != nil {
				return err
			}
			defer p.Close()
			if p.Samples() != 7 {
				t.Errorf("%d samples are served, want 7", p.Samples())
			}
			_, err = p.Answer(context.Background(), data.Test.Images)
			return err
		},
	}
	for name, use := range uses {
		whole, err := bayes.Open(run.Dir())
		must(t, err)
		err = use(whole)
		wantDamaged(t, err, bad)
		wantError(t, name, err, "has a probability of image", "that is not finite: its chain diverged")
		without, err := bayes.Open(run.Dir(), bayes.WithoutDamaged())
		must(t, err)
		if err := use(without); err != nil {
			t.Errorf("%s without it: %v", name, err)
		}
		if left := without.LeftOut(); len(left) != 1 || left[0] != bad {
			t.Errorf("%s left out %v, want %s", name, left, bad)
		}
	}

	// No run starts from one.
	last := poison(t, run, 7)
	started := bayes.Spec{Network: "mlp-3-3", Method: langevin.SGLD{}, Batch: 20, Epochs: 10, Start: run.Dir(), Seed: 2}
	_, err = bayes.Fit(t.Context(), started, data, filepath.Join(t.TempDir(), "run"))
	wantInvalid(t, "start", err, "start "+run.Dir(), "the sample of chain 0 at step 50 has a probability of image")
	if filepath.Base(last) != samples.FileName(0, 50) {
		t.Errorf("the last sample is %s", last)
	}

	// If all samples are such, there is nothing to average.
	for i := range 8 {
		poison(t, run, i)
	}
	without, err := bayes.Open(run.Dir(), bayes.WithoutDamaged())
	must(t, err)
	_, err = without.Predict(t.Context(), data.Test)
	wantError(t, "predict", err, "all samples of "+run.Dir()+" are damaged")
	_, err = without.Predictor(8)
	wantError(t, "predictor", err, "no sample of "+run.Dir()+" can be used")
	if len(intact) != 40 {
		t.Errorf("%d answers", len(intact))
	}
}

// Whatever the rate, a method ends, or stops with an error that names it. The samples that it
// kept are intact and can predict.
func TestAnyRate(t *testing.T) {
	data := &datasets.Splits{Train: squares(t, 60, 3, 1), Validation: squares(t, 60, 3, 2), Test: squares(t, 30, 3, 3)}
	teacher := fit(t, bayes.Spec{Network: "mlp-4-4", Method: methodOf(t, "ensemble"), Epochs: 2, Chains: 2, Batch: 20}, data)
	combined := map[string]func(s *bayes.Spec){
		"sgld, cycles":       func(s *bayes.Spec) { s.Cycles = 2 },
		"sgld, an anchor":    func(s *bayes.Spec) { s.Anchor = 2 },
		"sgld, temperatures": func(s *bayes.Spec) { s.Temperatures = []float64{1, 1.2} },
	}
	for _, what := range slices.Concat(bayes.MethodNames(), slices.Sorted(maps.Keys(combined))) {
		name, _, _ := strings.Cut(what, ",")
		for _, rate := range testenv.Some(t, 2, []float64{100, 1e30, 0.5, 3, 20, 1e3, 1e5, 1e10, 1e20, 3e38, 1e-30}) {
			spec := bayes.Spec{Network: "mlp-4-4", Method: methodOf(t, name), Schedule: optimizers.Constant{Rate: rate}, Epochs: 24, Chains: 2}
			if name == "distil" {
				spec.Chains, spec.Teacher = 1, teacher.Dir()
			}
			if spec.Validate() != nil {
				continue // it finds its own step size
			}
			spec.Batch = 20
			if change := combined[what]; change != nil {
				change(&spec)
			}
			dir := filepath.Join(t.TempDir(), "run")
			_, err := bayes.Fit(t.Context(), spec, data, dir)
			var diverged *bayes.DivergedError
			if err != nil && (!errors.As(err, &diverged) || diverged.Method != name) {
				t.Errorf("%s at rate %v: %v, want a DivergedError", what, rate, err)
				continue
			}
			v, failed := bayes.Verify(dir)
			must(t, failed)
			if len(v.Damaged) > 0 {
				t.Errorf("%s at rate %v: %v", what, rate, v)
			}
			run, failed := bayes.Open(dir)
			if v.Samples == 0 {
				continue
			}
			must(t, failed)
			if _, err := run.Assess(t.Context(), data.Test, nil); err != nil {
				t.Errorf("%s at rate %v: %v", what, rate, err)
			}
			must(t, os.RemoveAll(dir))
		}
	}
}
