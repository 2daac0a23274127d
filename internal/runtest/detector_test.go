package runtest

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
)

// flat returns n images of one grey level each, which no run of squares was trained on.
func flat(t testing.TB, n int) *datasets.Dataset {
	t.Helper()
	like := squares(t, n, 4, 1)
	pixels := make([]byte, len(like.Images))
	for i := range pixels {
		pixels[i] = byte(i / like.ImageSize() * 255 / n)
	}
	data, err := datasets.New("flat", pixels, nil, like.Channels, like.Height, like.Width, nil)
	must(t, err)
	return data
}

func accepted(answers []bayes.Answer) float64 {
	count := 0.0
	for _, a := range answers {
		if *a.InDistribution {
			count++
		}
	}
	return count / float64(len(answers))
}

// TestDetectorOfEveryKind: a run by any kind of method rejects images unlike those it was trained
// on, by Predict and by a Predictor alike, accepts most others, and has tested itself.
func TestDetectorOfEveryKind(t *testing.T) {
	strange, own := flat(t, 30), squares(t, 100, 4, 5)
	for _, k := range kinds(t) {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			run := fit(t, k.spec, &datasets.Splits{Train: squares(t, 100, 4, 1), Validation: squares(t, 60, 4, 2)})
			p := loaded(t, run, 10)
			for _, c := range []struct {
				data        *datasets.Dataset
				least, most float64
			}{{strange, 0, 0}, {own, 0.8, 1}} {
				answers, err := run.Predict(t.Context(), c.data)
				must(t, err)
				served, err := p.Answer(t.Context(), c.data.Images)
				must(t, err)
				// With more samples than a detector compares there are two ensembles.
				if k.name != "dropout" && !reflect.DeepEqual(answers, served) {
					t.Errorf("%s: the Predictor has other answers", c.data.Name)
				}
				for _, share := range []float64{accepted(answers), accepted(served)} {
					if share < c.least || share > c.most {
						t.Errorf("%s: accepts %v, want %v to %v", c.data.Name, share, c.least, c.most)
					}
				}
			}
			c, err := run.Calibration()
			must(t, err)
			if c.SelfTest == nil || c.SelfTest.Images() != 600 || !c.SelfTest.Passed() || p.Decisions().SelfTest().String() != c.SelfTest.String() {
				t.Errorf("the run %v", c.SelfTest)
			}
		})
	}
}

// TestAcceptanceIsAsPromised over 20 splits, with few and with many held-out images: the mean
// acceptance of fresh images is at least the rate, and exceeds it only by the granularity of few
// images.
func TestAcceptanceIsAsPromised(t *testing.T) {
	const splits, fresh, rate = 20, 300, 0.9
	for _, heldOut := range []int{9, 40, 200} {
		mean := 0.0
		for seed := range uint32(splits) {
			spec := bayes.Spec{Network: "mlp-3", Method: methodOf(t, "adam"), Batch: 20, Epochs: 3, Seed: uint64(seed)}
			run := fit(t, spec, &datasets.Splits{Train: squares(t, 60, 4, 3*seed+1), Validation: squares(t, heldOut, 4, 3*seed+2)},
				bayes.WithInDistributionRate(rate))
			answers, err := run.Predict(t.Context(), squares(t, fresh, 4, 3*seed+3))
			must(t, err)
			mean += accepted(answers) / splits
		}
		// The threshold is the score of rank ceil((n+1) rate), which a fresh one exceeds with the
		// probability of the other ranks.
		n := float64(heldOut)
		want := math.Ceil((n+1)*rate-1e-9) / (n + 1)
		std := math.Sqrt(rate * (1 - rate) * (1/n + 1./fresh) / splits)
		t.Logf("%d held out: %v accepted, expected %v ± %v", heldOut, mean, want, std)
		if math.Abs(mean-want) > 3*std {
			t.Errorf("%d held out: %v of fresh images are accepted, want %v ± %v", heldOut, mean, want, std)
		}
	}
}

// TestRunWithoutDetector: a run without a detector has prediction sets but decides nothing, and
// scores and tables omit the decisions.
func TestRunWithoutDetector(t *testing.T) {
	run := uneven(t)
	x, err := index.Read(run.Dir())
	must(t, err)
	var lines []index.Line
	for _, name := range x.Names {
		if name != rundir.DetectorFile {
			lines = append(lines, x.Lines[name])
		}
	}
	_, err = index.Rewrite(run.Dir(), lines, nil)
	must(t, err)
	must(t, os.Remove(filepath.Join(run.Dir(), rundir.DetectorFile)))
	must(t, run.Calibrate(t.Context(), squares(t, 60, 4, 2)))
	data := squares(t, 20, 4, 3)
	answers, err := run.Predict(t.Context(), data)
	must(t, err)
	p := loaded(t, run, 5)
	served, err := p.Answer(t.Context(), data.Images)
	must(t, err)
	for _, a := range [][]bayes.Answer{answers, served} {
		if a[0].PredictionSet == nil || a[0].InDistribution != nil || a[0].PValue != nil || a[0].Calibrated {
			t.Errorf("%+v", a[0])
		}
	}
	if d := p.Decisions(); d.Sets == nil || d.Sets.Level == 0 || d.InDistributionRate != 0 || d.SelfTest() != nil {
		t.Errorf("sets %v, rate %v, self-test %v", d.Sets, d.InDistributionRate, d.SelfTest())
	}
	a, err := run.Assess(t.Context(), data, flat(t, 10))
	must(t, err)
	_, detected := a.Detections["neighbours"]
	if _, decides := a.Values["inDistribution"]; decides || detected || a.Detections["entropy"] == (evaluate.Detection{}) {
		t.Errorf("values %v, detections %v", a.Values, a.Detections)
	}
}

// TestDamagedDetector is named, and left out on request. Prediction sets stay.
func TestDamagedDetector(t *testing.T) {
	run := uneven(t)
	path := filepath.Join(run.Dir(), rundir.DetectorFile)
	content, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, content[:len(content)/2], 0o644))
	data := squares(t, 20, 4, 3)
	_, err = run.Predict(t.Context(), data)
	wantDamaged(t, err, path)
	_, err = run.Predictor(1)
	wantDamaged(t, err, path)
	v, err := bayes.Verify(run.Dir())
	must(t, err)
	if len(v.Damaged) != 1 || v.Damaged[0].File != path {
		t.Errorf("damaged: %v", v.Damaged)
	}
	remarks := ""
	without := run.With(bayes.WithoutDamaged(), bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark }))
	answers, err := without.Predict(t.Context(), data)
	must(t, err)
	if answers[0].PredictionSet == nil || answers[0].InDistribution != nil || !strings.Contains(remarks, "continuing without the detector") {
		t.Errorf("%+v, remarks %q", answers[0], remarks)
	}
	must(t, os.Remove(path))
	_, err = run.Predict(t.Context(), data)
	wantDamaged(t, err, path)
}

// TestDetectorOfGatheredRun: the detector is fitted to the samples of all parts.
func TestDetectorOfGatheredRun(t *testing.T) {
	place, train := t.TempDir(), squares(t, 100, 4, 1)
	var parts []string
	for i := range 2 {
		parts = append(parts, filepath.Join(place, string(rune('a'+i))))
		spec := bayes.Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 20, Epochs: 4, Samples: 3, FirstChain: i}
		_, err := bayes.Fit(t.Context(), spec, &datasets.Splits{Train: train}, parts[i])
		must(t, err)
	}
	run, err := bayes.GatherCopies(filepath.Join(place, "all"), parts)
	must(t, err)
	unlabelled := *train
	unlabelled.Labels = nil
	wantInvalid(t, "a detector of images without labels", run.FitDetector(t.Context(), &unlabelled), "has no labels")
	must(t, run.FitDetector(t.Context(), train))
	must(t, run.Calibrate(t.Context(), squares(t, 60, 4, 2)))
	for _, c := range []struct {
		data *datasets.Dataset
		low  bool
	}{{flat(t, 20), true}, {squares(t, 60, 4, 3), false}} {
		answers, err := run.Predict(context.Background(), c.data)
		must(t, err)
		if share := accepted(answers); (share < 0.5) != c.low {
			t.Errorf("%s: accepts %v", c.data.Name, share)
		}
		ok := slices.ContainsFunc(answers, func(a bayes.Answer) bool { return *a.PValue < 0.05 })
		if c.low && !ok {
			t.Errorf("%s: no small p-value", c.data.Name)
		}
	}
}

// TestFitWithoutDetector: a run trained on a single image cannot have one, and continues.
func TestFitWithoutDetector(t *testing.T) {
	data := squares(t, 40, 4, 1)
	remarks := ""
	spec := bayes.Spec{Network: "mlp-3", Method: methodOf(t, "adam"), Subset: 1, Batch: 1, Epochs: 2}
	run := fit(t, spec, &datasets.Splits{Train: data, Validation: data}, bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark + "\n" }))
	if !strings.Contains(remarks, "no in-distribution decisions: detector: there must be at least 2 training images, got 1") {
		t.Errorf("remarks %q", remarks)
	}
	answers, err := run.Predict(t.Context(), data)
	must(t, err)
	if answers[0].InDistribution != nil || answers[0].PredictionSet == nil {
		t.Errorf("%+v", answers[0])
	}
}
