package runtest

import (
	"context"
	"os"
	"slices"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
)

// Images that a run was trained on calibrate it if the caller notes it. Its own validation images
// do, although they have copies of training images.
func TestCalibrateOnTrained(t *testing.T) {
	ctx := context.Background()
	spec := bayes.Spec{Network: "mlp-8", Method: methodOf(t, "sgd"), Epochs: 2, Batch: 20, Seed: 1}
	train, held, other := squares(t, 100, 4, 1), squares(t, 60, 4, 3), squares(t, 60, 4, 4)
	copy(held.Images, train.Image(0))
	copy(other.Images, train.Image(1))
	run := fit(t, spec, &datasets.Splits{Train: train, Validation: held})
	must(t, run.Calibrate(ctx, held))
	wantInvalid(t, "calibrated on a training image", run.Calibrate(ctx, other), "has 1 images that")
	before, err := run.Calibration()
	must(t, err)
	must(t, run.With(bayes.WithNotes(map[string]string{bayes.TrainedNote: "1"})).Calibrate(ctx, other))
	if after, err := run.Calibration(); err != nil || before.Exponent == 1 || after.Exponent != 1 {
		t.Errorf("the exponents are %v, and %v with an image that was trained on: %v", before.Exponent, after.Exponent, err)
	}
}

// A run that was trained without held-out images is calibrated later, and again: answers, the
// digest and a Predictor that is loaded then use the new calibration, which records its images.
func TestCalibrateLater(t *testing.T) {
	ctx := context.Background()
	spec := bayes.Spec{Network: "mlp-8", Method: methodOf(t, "sghmc"), Epochs: 6, Batch: 20, BurnIn: new(3), Samples: 3, Seed: 1}
	train, fresh := squares(t, 100, 4, 1), squares(t, 60, 4, 3)
	run := fit(t, spec, &datasets.Splits{Train: train})
	risky := run.With(bayes.WithRisk(0.5, 0), bayes.WithSetRule(evaluate.SetRule{Score: evaluate.AdaptiveSets, PerClass: true}), bayes.WithLevel(0.8))
	answers, err := risky.Predict(ctx, fresh)
	must(t, err)
	if a := answers[0]; a.PredictionSet != nil || a.InDistribution != nil || a.MarginalClasses != nil || a.Refer == nil || !*a.Refer {
		t.Errorf("without a calibration: %+v, want an image that is referred to a person, and nothing else", a)
	}
	wantInvalid(t, "calibrated on training images", run.Calibrate(ctx, train), "has 100 images that")
	some := *fresh
	some.Images = append(slices.Clone(train.Images[:3*len(train.Image(0))]), fresh.Images[3*len(fresh.Image(0)):]...)
	wantInvalid(t, "calibrated on some training images", run.Calibrate(ctx, &some), "has 3 images that")
	unlabelled := *fresh
	unlabelled.Labels = nil
	wantInvalid(t, "calibrated without labels", run.Calibrate(ctx, &unlabelled), "has no labels")
	if _, err := run.Calibration(); !os.IsNotExist(errors.Cause(err)) {
		t.Fatalf("calibration: %v, want none yet", err)
	}
	digests := map[string]bool{}
	for i, held := range []*datasets.Dataset{squares(t, 80, 4, 2), squares(t, 30, 4, 4)} {
		notes := map[string]string{"data": "camera"}
		must(t, run.With(bayes.WithNotes(notes)).Calibrate(ctx, held))
		c, err := run.Calibration()
		must(t, err)
		if c.Examples != held.Len() || c.Notes["data"] != "camera" || len(c.Content) != 64 || c.Nonconformity == nil || c.SelfTest == nil {
			t.Errorf("calibration %d: %+v", i, c)
		}
		answers, err := risky.Predict(ctx, fresh)
		must(t, err)
		averages, err := risky.Predictions(ctx, fresh, nil)
		must(t, err)
		certificate, err := c.Certify(0.5, evaluate.RiskConfidence)
		must(t, err)
		sets, err := c.Sets(0.8, evaluate.SetRule{Score: evaluate.AdaptiveSets, PerClass: true})
		must(t, err)
		for i, a := range answers {
			if !a.Calibrated || *a.Refer == certificate.Answers(averages.Confidence[i]) || len(a.MarginalClasses) != len(sets.Fallbacks()) || a.MarginalClasses == nil {
				t.Errorf("calibration %d: %+v by %+v and %+v", i, a, certificate, sets)
			}
		}
		digest, err := run.Digest()
		must(t, err)
		digests[digest] = true
		p, err := risky.Predictor(4)
		must(t, err)
		if d := p.Decisions(); p.Digest() != digest || d.Calibration.Content != c.Content || *d.Certificate != certificate || d.Sets.Level != 0.8 {
			t.Errorf("calibration %d: a predictor has another one", i)
		}
		must(t, p.Close())
		v, err := bayes.Verify(run.Dir())
		must(t, err)
		if len(v.Damaged) > 0 {
			t.Errorf("calibration %d: %v", i, v)
		}
	}
	if len(digests) != 2 {
		t.Errorf("%d digests, want another one for each calibration", len(digests))
	}
	for _, option := range []bayes.Option{bayes.WithRisk(1, 0), bayes.WithRisk(-1, 0), bayes.WithRisk(0.1, 2)} {
		_, err := run.With(option).Predict(ctx, fresh)
		wantInvalid(t, "predict", err, "must be between 0 and 1")
	}
	_, err = run.With(bayes.WithSetRule(evaluate.SetRule{Score: "x"})).Predict(ctx, fresh)
	wantInvalid(t, "predict", err, "Score must be")
}

// TestCalibrationStays: a run that was calibrated again keeps this calibration when it is resumed
// although it is finished.
func TestCalibrationStays(t *testing.T) {
	spec := bayes.Spec{Network: "mlp-8", Method: methodOf(t, "sghmc"), Epochs: 6, Batch: 20, Samples: 3}
	data := &datasets.Splits{Train: squares(t, 100, 4, 1), Validation: squares(t, 40, 4, 2)}
	run, other := fit(t, spec, data), squares(t, 60, 4, 3)
	must(t, run.Calibrate(t.Context(), other))
	want, err := run.Digest()
	must(t, err)
	resumed, err := bayes.Resume(t.Context(), run.Dir(), data)
	must(t, err)
	if c, err := resumed.Calibration(); err != nil || c.Examples != other.Len() {
		t.Errorf("calibrated on %d images (%v), want %d", c.Examples, err, other.Len())
	}
	if got := digestOf(t, run.Dir()); got != want {
		t.Errorf("the digest is %s, and was %s", got, want)
	}
}
