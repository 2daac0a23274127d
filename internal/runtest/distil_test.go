package runtest

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/optimizers"
)

// lesson is a small posterior with its data, and a specification that distils it.
func lesson(t *testing.T) (data *datasets.Splits, teacher *bayes.Run, spec bayes.Spec) {
	t.Helper()
	data = &datasets.Splits{Train: squares(t, 200, 4, 1), Validation: squares(t, 60, 4, 2), Test: squares(t, 80, 4, 3)}
	teacher = fit(t, bayes.Spec{Network: "mlp-6", Method: methodOf(t, "sghmc"), Batch: 20, Epochs: 12, Samples: 5, Chains: 2, Seed: 3}, data)
	return data, teacher, bayes.Spec{Network: "mlp-12", Method: methodOf(t, "distil:copies=4"), Teacher: teacher.Dir(), Batch: 20, Epochs: 40, Seed: 5}
}

// A distilled run predicts what its teacher does, with calibration, a manifest that names the
// teacher, and no samples of its own besides the network.
func TestDistil(t *testing.T) {
	data, teacher, spec := lesson(t)
	run := fit(t, spec, data)
	m := run.Manifest()
	digest, err := teacher.Digest()
	must(t, err)
	if about := m.Teacher; about == nil || about.Digest != digest || about.Samples != 10 || about.Method != "sghmc:friction=0.1" || about.Network != "mlp-6" {
		t.Errorf("the teacher is %+v, want that of digest %s", about, digest)
	}
	if _, err := os.Stat(filepath.Join(run.Dir(), rundir.TargetsDir)); !os.IsNotExist(err) {
		t.Errorf("the teacher's predictions are left (%v)", err)
	}
	f, err := run.MeasureFidelity(context.Background(), data.Test, squares(t, 30, 9, 4))
	must(t, err)
	if f.Agreement < 0.95 || f.KL > 0.05 || f.InformationRank < 0.5 || f.Student["accuracy"] < f.Teacher["accuracy"]-0.05 {
		t.Errorf("fidelity %+v, want at least 0.95 agreement and a rank correlation of 0.5", f)
	}
	if len(f.Out) != 2 || f.Out[0].Images != 600 || f.Out[1].Images != 30 || f.Out[0].Student["mutualInformation"].AUROC == 0 {
		t.Errorf("out of distribution %d sets, want 600 strange images and 30 others", len(f.Out))
	}
	read, err := run.Fidelity()
	if err != nil || read.KL != f.KL || read.Teacher["nll"] != f.Teacher["nll"] {
		t.Errorf("fidelity is read as %+v (%v), want %+v", read, err, f)
	}
	v, err := bayes.Verify(run.Dir())
	if err != nil || len(v.Damaged) > 0 || !v.Resumable || v.Samples != 1 {
		t.Errorf("verified: %v (%v)", v, err)
	}
	_, err = bayes.Gather(filepath.Join(t.TempDir(), "gathered"), []string{run.Dir()})
	wantInvalid(t, "gather", err, "it is a distilled run")
	checkSpread(t, run, data.Test)
}

// The networks start at the means of the teacher's samples, by chain and, if a chain has several
// cycles, by cycle. At a rate of almost 0 they stay there.
func TestDistilNetworksStart(t *testing.T) {
	data, teacher, spec := lesson(t)
	cyclical := fit(t, bayes.Spec{Network: "mlp-6", Method: methodOf(t, "sghmc"), Batch: 20, Epochs: 8, Samples: 6, Chains: 2, Cycles: 2, Seed: 3}, data)
	// Samples at steps 6, 8, 10, 16, 18, 20, 26, 28: the last cycle is shorter.
	uneven := fit(t, bayes.Spec{Network: "mlp-6", Method: methodOf(t, "sghmc"), Batch: 50, Epochs: 7, Samples: 6, Chains: 1, Cycles: 3, Seed: 3}, data)
	for name, c := range map[string]struct {
		teacher  *bayes.Run
		networks int
		want     [][2]int // draws from and to, by network
	}{
		"one of two chains":      {teacher, 1, [][2]int{{5, 10}}},
		"two chains":             {teacher, 2, [][2]int{{0, 5}, {5, 10}}},
		"three uneven cycles":    {uneven, 3, [][2]int{{0, 3}, {3, 6}, {6, 8}}},
		"two chains, two cycles": {cyclical, 4, [][2]int{{0, 3}, {3, 6}, {6, 9}, {9, 12}}},
	} {
		t.Run(name, func(t *testing.T) {
			spec.Network, spec.Teacher, spec.Epochs = "mlp-6", c.teacher.Dir(), 1
			spec.Method = bayes.Distillation{PrecisionWeight: 0.1, Copies: 1, Networks: c.networks}
			spec.Schedule = optimizers.Constant{Rate: 1e-9}
			run := fit(t, spec, data)
			students, err := run.Draws()
			must(t, err)
			if students.Len() != c.networks {
				t.Fatalf("the student has %d samples, want one for each of %d networks", students.Len(), c.networks)
			}
			draws, err := c.teacher.Draws()
			must(t, err)
			for i, interval := range c.want {
				student, err := students.Read(i)
				must(t, err)
				for number, p := range student.Parameters {
					mean := make([]float64, len(p.Values))
					for at := interval[0]; at < interval[1]; at++ {
						s, err := draws.Read(at)
						must(t, err)
						for k, v := range s.Parameters[number].Values {
							mean[k] += float64(v) / float64(interval[1]-interval[0])
						}
					}
					for k, v := range p.Values {
						if math.Abs(float64(v)-mean[k]) > 1e-5 {
							t.Fatalf("network %d: %s, element %d: %v, want the mean %v of draws %v", i, p.Name, k, v, mean[k], interval)
						}
					}
				}
			}
		})
	}
}

// Copies of the teacher's network follow it more closely than one network that starts at random,
// and their run is one like any other.
func TestDistilNetworks(t *testing.T) {
	data, teacher, spec := lesson(t)
	spec.Network, spec.Epochs = "mlp-6", 12
	one := fit(t, spec, data)
	spec.Method = methodOf(t, "distil:copies=4,networks=2")
	several := fit(t, spec, data)
	a, err := one.MeasureFidelity(context.Background(), data.Test)
	must(t, err)
	b, err := several.MeasureFidelity(context.Background(), data.Test)
	must(t, err)
	if !(b.KL < a.KL/2) || b.Agreement < 0.97 {
		t.Errorf("a divergence of %v and an agreement of %v, with one network %v and %v", b.KL, b.Agreement, a.KL, a.Agreement)
	}
	if chains := several.Manifest().Spec.Chains; chains != 2 {
		t.Errorf("the run has %d chains, want one for each of 2 networks", chains)
	}

	// Each network has learnt from its own chain of the teacher.
	students, chains := predicted(t, several, data.Test, 1), predicted(t, teacher, data.Test, 5)
	for i, student := range students {
		if own, other := divergence(chains[i], student), divergence(chains[1-i], student); !(own < other/3) {
			t.Errorf("network %d has a divergence of %v from its own chain, and %v from the other", i, own, other)
		}
	}
	checkSpread(t, several, data.Test)
}

// A network is weighted as the samples that it learns from are together: of cycles with 3, 3 and 2
// samples, the first network has one and the second has two.
func TestDistilWeights(t *testing.T) {
	data, _, spec := lesson(t)
	teacher := fit(t, bayes.Spec{Network: "mlp-6", Method: methodOf(t, "sghmc"), Batch: 50, Epochs: 7, Samples: 6, Chains: 1, Cycles: 3, Seed: 3}, data)
	spec.Network, spec.Teacher, spec.Epochs, spec.Method = "mlp-6", teacher.Dir(), 1, methodOf(t, "distil:copies=1,networks=2")
	var weights []float64
	_, err := fit(t, spec, data).Predictions(context.Background(), data.Test, func(_ []float32, weight float64) error {
		weights = append(weights, weight)
		return nil
	})
	must(t, err)
	if !slices.Equal(weights, []float64{3, 5}) {
		t.Errorf("the networks have the weights %v, want 3 and 5", weights)
	}
}

// predicted returns the averages of the predictions of each number of samples of a run.
func predicted(t *testing.T, run *bayes.Run, test *datasets.Dataset, each int) (averages [][]float64) {
	t.Helper()
	i := 0
	_, err := run.Predictions(context.Background(), test, func(probabilities []float32, _ float64) error {
		if i%each == 0 {
			averages = append(averages, make([]float64, len(probabilities)))
		}
		i++
		for k, p := range probabilities {
			averages[len(averages)-1][k] += float64(p) / float64(each)
		}
		return nil
	})
	must(t, err)
	return averages
}

// divergence returns the sum of p ln p/q.
func divergence(p, q []float64) (sum float64) {
	for i := range p {
		sum += p[i] * math.Log(max(p[i], 1e-30)/q[i])
	}
	return sum
}

// TryTeacher predicts some images, and returns the number of images that a distillation predicts:
// each copy's once, with at most one copy for each epoch.
func TestTryTeacher(t *testing.T) {
	data, teacher, spec := lesson(t)
	predicted := 0
	count := bayes.WithObserver(func(e bayes.Event) {
		if e.Task == "predict" && e.Done == e.Total {
			predicted++
		}
	})
	for _, row := range []struct{ epochs, want int }{{40, 4 * 200}, {3, 3 * 200}} {
		spec.Epochs = row.epochs
		got, err := bayes.TryTeacher(context.Background(), spec, data.Train, 50, count)
		if err != nil || got != row.want {
			t.Errorf("%d epochs: the teacher predicts %d images (%v), want %d", row.epochs, got, err, row.want)
		}
	}
	if predicted != 2 {
		t.Errorf("%d predictions, want 2", predicted)
	}
	_, err := bayes.TryTeacher(context.Background(), teacher.Manifest().Spec, data.Train, 50)
	wantInvalid(t, "try", err, "the method must be distil, to have a teacher")
	spec.Teacher = filepath.Join(t.TempDir(), "none")
	_, err = bayes.TryTeacher(context.Background(), spec, data.Train, 50)
	wantInvalid(t, "try", err, "teacher")
}

// checkSpread compares the uncertainties of a distilled run, as Predictions and a Predictor compute
// them, with each other.
func checkSpread(t *testing.T, run *bayes.Run, test *datasets.Dataset) {
	t.Helper()
	p, err := run.Predictions(context.Background(), test, nil)
	must(t, err)
	if networks := run.Manifest().Spec.Chains; !p.Dirichlet || p.Samples != networks || p.Nonconformity == nil {
		t.Errorf("predictions have Dirichlet %v, %d samples and %d nonconformity scores, want %d samples", p.Dirichlet, p.Samples, len(p.Nonconformity), networks)
	}
	answers, err := loaded(t, run, 16).Answer(context.Background(), test.Images)
	must(t, err)
	for i, a := range answers {
		if math.Abs(a.MutualInformation-p.MutualInformation[i]) > 1e-6 || !(a.MutualInformation > 0) || a.MutualInformation > a.Entropy {
			t.Fatalf("image %d: mutual information %v of entropy %v, want %v", i, a.MutualInformation, a.Entropy, p.MutualInformation[i])
		}
		if !a.Calibrated || len(a.PredictionSet) == 0 {
			t.Fatalf("image %d: %+v is not calibrated", i, a)
		}
	}
	without := run.With()
	must(t, os.Remove(filepath.Join(run.Dir(), rundir.CalibrationFile)))
	must(t, os.Remove(filepath.Join(run.Dir(), rundir.DetectorFile)))
	if _, err := without.Predictions(context.Background(), test, nil); err == nil {
		t.Error("a missing detector is no error")
	}
	without = run.With(bayes.WithoutDamaged())
	q, err := without.Predictions(context.Background(), test, nil)
	must(t, err)
	for i, information := range q.MutualInformation {
		if math.Abs(information-p.MutualInformation[i]) > 1e-6 {
			t.Fatalf("without a detector the mutual information of image %d is %v, want %v", i, information, p.MutualInformation[i])
		}
	}
}

// A distillation that is stopped twice and resumed has the bits of one that is not; the teacher
// predicts no copy again, except one that is damaged.
func TestResumeDistillation(t *testing.T) {
	data, _, spec := lesson(t)
	spec.Epochs = 30
	unlabelled := bayes.WithUnlabelled(squares(t, 33, 4, 8))
	whole := fit(t, spec, data, unlabelled)
	want := contents(t, whole.Dir())
	dir := filepath.Join(t.TempDir(), "stopped")
	ctx, stop := stopAt(100)
	_, err := bayes.Fit(ctx, spec, data, dir, unlabelled, stop)
	checkStopped(t, whole, dir, err, 1, 300)
	targets, err := filepath.Glob(filepath.Join(dir, rundir.TargetsDir, "*"))
	if err != nil || len(targets) != 4 {
		t.Errorf("the teacher has predicted %d copies (%v), want 4", len(targets), err)
	}
	must(t, os.WriteFile(targets[2], []byte("damaged"), 0o644))
	predicted, remarks := map[string]bool{}, 0

	resumed, err := bayes.Resume(context.Background(), dir, data, unlabelled, bayes.WithObserver(func(e bayes.Event) {
		if e.Task == "predict" {
			predicted[e.On] = true
		}
		if e.Remark == targets[2]+" is damaged: the teacher predicts these images again" {
			remarks++
		}
	}))
	must(t, err)
	same(t, "resumed", want, contents(t, resumed.Dir()))
	if remarks != 1 || !predicted["copy 3 of 4 of squares"] || predicted["copy 1 of 4 of squares"] {
		t.Errorf("%d remarks, and the teacher predicted %v, want copy 3 only", remarks, predicted)
	}

	stopped := filepath.Join(t.TempDir(), "stopped again")
	ctx, stop = stopAt(100)
	_, err = bayes.Fit(ctx, spec, data, stopped, unlabelled, stop)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	_, err = bayes.Resume(context.Background(), stopped, data)
	wantInvalid(t, "without the unlabelled images", err, "the unlabelled images must be those that the run began with, 33 images, got 0")
	teacher, err := bayes.Open(spec.Teacher)
	must(t, err)
	must(t, teacher.Calibrate(context.Background(), squares(t, 61, 4, 6)))
	_, err = bayes.Resume(context.Background(), stopped, data, unlabelled)
	wantInvalid(t, "with another teacher", err, "its teacher "+spec.Teacher+" has changed since it began")
	_, err = resumed.MeasureFidelity(context.Background(), data.Test)
	wantInvalid(t, "fidelity to another teacher", err, "has changed since")
}

func TestDistilRefuses(t *testing.T) {
	data, teacher, spec := lesson(t)
	single := fit(t, bayes.Spec{Network: "mlp-6", Method: methodOf(t, "adam"), Batch: 20, Epochs: 2}, data)
	spec.Epochs = 1
	distilled := fit(t, spec, data)
	with := func(change func(s *bayes.Spec)) bayes.Spec {
		s := spec
		change(&s)
		return s
	}
	for want, s := range map[string]bayes.Spec{
		"must have at least 2 samples, got 1: one network has no spread": with(func(s *bayes.Spec) { s.Teacher = single.Dir() }),
		"is distilled itself: distil its teacher, " + teacher.Dir():      with(func(s *bayes.Spec) { s.Teacher = distilled.Dir() }),
		"teacher must be the directory of a run":                         with(func(s *bayes.Spec) { s.Teacher = "" }),
		"is not the directory of a run":                                  with(func(s *bayes.Spec) { s.Teacher = t.TempDir() }),
		"chains must be 1, one for each network, got 2":                  with(func(s *bayes.Spec) { s.Chains = 2 }),
		"augment does not apply":                                         with(func(s *bayes.Spec) { s.Augment = &bayes.Augment{Flip: true} }),
		"class-weights do not apply":                                     with(func(s *bayes.Spec) { s.ClassWeights = bayes.ClassWeights{Balanced: true} }),
		"Copies must be at least 1, got 0":                               with(func(s *bayes.Spec) { s.Method = bayes.Distillation{PrecisionWeight: 1} }),
		"PrecisionWeight must be positive and finite, got 0":             with(func(s *bayes.Spec) { s.Method = bayes.Distillation{Copies: 1} }),
		"teacher applies to distil, not to adam":                         with(func(s *bayes.Spec) { s.Method = methodOf(t, "adam") }),
		"Networks must be at least 0, got -1": with(func(s *bayes.Spec) {
			s.Method = bayes.Distillation{PrecisionWeight: 1, Copies: 1, Networks: -1}
		}),
		"start does not apply with networks": with(func(s *bayes.Spec) {
			s.Method, s.Start = methodOf(t, "distil:networks=2"), teacher.Dir()
		}),
		"networks must be at most 2, the chains of": with(func(s *bayes.Spec) {
			s.Network, s.Method = "mlp-6", methodOf(t, "distil:networks=3")
		}),
		"its network is another one":           with(func(s *bayes.Spec) { s.Method = methodOf(t, "distil:networks=2") }),
		"the network must not be an ONNX file": with(func(s *bayes.Spec) { s.Network = "model.onnx" }),
	} {
		_, err := bayes.Fit(context.Background(), s, data, filepath.Join(t.TempDir(), "run"))
		wantInvalid(t, want, err, want)
	}
	dir := filepath.Join(t.TempDir(), "run")
	_, err := bayes.Fit(context.Background(), spec, trainOn(squares(t, 200, 5, 1)), dir)
	wantInvalid(t, "other classes", err, "the classes of squares must be those of "+teacher.Dir())
	images, labels := stripes(10)
	others, err := datasets.New("stripes", images, labels, 1, 8, 8, nil)
	must(t, err)
	_, err = bayes.Fit(context.Background(), spec, data, dir, bayes.WithUnlabelled(others))
	wantInvalid(t, "other sizes", err, "distil: stripes has images of 1x8x8, must have the 1x12x12 of squares")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a refused run has a directory (%v)", err)
	}
	_, err = teacher.MeasureFidelity(context.Background(), data.Test)
	wantInvalid(t, "fidelity of a posterior", err, "was not distilled, and has no teacher")
	if _, err = teacher.Fidelity(); !os.IsNotExist(errors.Cause(err)) {
		t.Errorf("fidelity that was not measured: %v", err)
	}
}
