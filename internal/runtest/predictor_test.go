package runtest

import (
	"context"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
)

// striped is a run on stripes and 40 others of them.
func striped(t *testing.T, method bayes.Method, validation bool) (*bayes.Run, *datasets.Dataset) {
	t.Helper()
	pixels, labels := stripes(140)
	data, err := datasets.New("stripes", pixels, labels, 1, 8, 8, []string{"across", "along"})
	must(t, err)
	train, others, err := data.Split(100)
	must(t, err)
	splits := &datasets.Splits{Train: train}
	if validation {
		splits.Validation = others
	}
	spec := bayes.Spec{Network: "mlp-16", Method: method, Batch: 20, Epochs: 8, Samples: 4}
	run, err := bayes.Fit(t.Context(), spec, splits, filepath.Join(t.TempDir(), "run"))
	if err != nil {
		t.Fatal(err)
	}
	return run, others
}

func loaded(t *testing.T, run *bayes.Run, batch int) *bayes.Predictor {
	t.Helper()
	p, err := run.Predictor(batch)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestPredictor: a Predictor has the answers of Predict, to the bit, for many images and for few,
// in any order, from many goroutines.
func TestPredictor(t *testing.T) {
	for _, calibrated := range []bool{false, true} {
		run, images := striped(t, langevin.SGLD{}, calibrated)
		want, err := run.Predict(t.Context(), images)
		must(t, err)
		p := loaded(t, run, 4)
		levels := map[bool][2]float64{true: {0.9, 0.95}}[calibrated]
		d, set := p.Decisions(), 0.0
		if d.Sets != nil {
			set = d.Sets.Level
		}
		if p.Samples() != 4 || p.PartSize() != 32 || d.Calibrated() != calibrated || [2]float64{set, d.InDistributionRate} != levels {
			t.Errorf("%d samples, parts of %d, calibrated %t, levels %v and %v", p.Samples(), p.PartSize(), d.Calibrated(), set, d.InDistributionRate)
		}
		var asking sync.WaitGroup
		for _, part := range [][2]int{{0, 40}, {39, 40}, {3, 10}, {0, 33}} {
			asking.Go(func() {
				got, err := p.Answer(t.Context(), images.Images[part[0]*64:part[1]*64])
				if err != nil || !reflect.DeepEqual(got, want[part[0]:part[1]]) {
					t.Errorf("calibrated %t: images %v: %+v, want %+v: %v", calibrated, part, got, want[part[0]:part[1]], err)
				}
			})
		}
		asking.Wait()
	}
}

// TestPredictorOfDropout: the passes of Monte Carlo dropout disagree, as in Predict, and the same
// question has the same answer.
func TestPredictorOfDropout(t *testing.T) {
	run, images := striped(t, bayes.Dropout{Rate: 0.5}, false)
	p := loaded(t, run, 8)
	if p.Samples() != 4 {
		t.Errorf("%d samples, want the 4 passes", p.Samples())
	}
	first, err := p.Answer(t.Context(), images.Images)
	must(t, err)
	if _, err := p.Answer(t.Context(), images.Images[:64]); err != nil {
		t.Error(err)
	}
	again, err := p.Answer(t.Context(), images.Images)
	must(t, err)
	if !reflect.DeepEqual(first, again) {
		t.Error("the same images have other answers")
	}
	disagree := 0
	for _, a := range first {
		if a.MutualInformation > 0 {
			disagree++
		}
	}
	if disagree < len(first)/2 {
		t.Errorf("passes disagree on %d of %d images", disagree, len(first))
	}
}

func TestPredictorRefuses(t *testing.T) {
	run, images := striped(t, langevin.SGLD{}, false)
	if _, err := run.Predictor(0); err == nil || !strings.Contains(err.Error(), "batch must be at least 1, got 0") {
		t.Errorf("a batch of 0: %v", err)
	}
	p, err := run.Predictor(1)
	must(t, err)
	for _, bytes := range []int{0, 63, 65} {
		if _, err := p.Answer(t.Context(), make([]byte, bytes)); err == nil || !strings.Contains(err.Error(), "are not one or more images of 1x8x8") {
			t.Errorf("%d bytes: %v", bytes, err)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Answer(over, images.Images); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	for range 2 {
		if err := p.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	if _, err := p.Answer(t.Context(), images.Images); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("after Close: %v", err)
	}
}
