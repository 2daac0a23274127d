package serve

import (
	"encoding/json"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/optimizers"
)

// GET /run has the guarantees of answers, and a reload takes over a new calibration.
func TestReloadTakesACalibration(t *testing.T) {
	data := func(name string, n int, shade byte) *datasets.Dataset {
		pixels, labels := make([]byte, 16*n), make([]int32, n)
		for i := range pixels {
			pixels[i] = byte(i*i*7+i/16*90) | shade
			labels[i/16] = int32(i / 16 % 2)
		}
		d, err := datasets.New(name, pixels, labels, 1, 4, 4, nil)
		check(err)
		return d
	}
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "run")
	spec := bayes.Spec{Network: "mlp-2", Method: optimizers.SGD{}, Batch: 5, Epochs: 1}
	run, err := bayes.Fit(ctx, spec, &datasets.Splits{Train: data("train", 40, 0)}, dir)
	check(err)
	run = run.With(bayes.WithRisk(0.9, 0.8), bayes.WithSetRule(evaluate.SetRule{PerClass: true}))
	s, err := New([]Model{{Run: run}}, Options{})
	check(err)
	defer s.Close()
	describe := func() (a runInfo) {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest("GET", "/run", nil))
		check(json.Unmarshal(w.Body.Bytes(), &a))
		return a
	}
	if a := describe(); a.Calibration != nil || a.SetRule != nil || a.Risk == nil || a.Risk.Certified {
		t.Errorf("before: %+v", a)
	}
	check(run.Calibrate(ctx, data("camera", 30, 1)))
	check(s.Reload([]Model{{Run: run}}))
	a := describe()
	if a.Calibration == nil || a.Calibration.Data != "camera" || a.Calibration.Images != 30 || a.SetRule == nil || !a.SetRule.PerClass ||
		len(a.Thresholds) != 2 || a.Thresholds[1].Class != "1" || a.Thresholds[1].Examples != 15 || a.Risk.Images != 30 || a.Risk.Confidence != 0.8 {
		t.Errorf("after: %+v", a)
	}
	c, err := run.Calibration()
	check(err)
	check(s.Reload([]Model{{Run: run.With(bayes.WithUnscaled())}}))
	if scaled, unscaled := a.Calibration.Exponent, describe().Calibration.Exponent; scaled != c.Exponent || unscaled != 0 {
		t.Errorf("the exponents are %v and, unscaled, %v, want %v and 0", scaled, unscaled, c.Exponent)
	}
}
