package bayes

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/internal/onnxtest"
)

// A predictor has loaded the frozen network before the first image arrives, also if features of
// that image are known already.
func TestPredictorIsWarm(t *testing.T) {
	spec := Spec{Network: onnxtest.Backbone{Channels: 1, Side: side, Filters: 4}.Write(t), Method: methodOf(t, "adam"), Epochs: 1}
	run, err := Fit(context.Background(), spec, trainOn(squares(t, 40, 4, 1)), filepath.Join(t.TempDir(), "run"), with(t, 1))
	must(t, err)
	for _, which := range []string{"first", "second"} {
		p, err := run.Predictor(2)
		must(t, err)
		if n := len(p.ensembles.extractor.sessions); n != 1 {
			t.Errorf("the %s predictor has loaded %d sessions of the frozen network, want 1", which, n)
		}
		must(t, p.Close())
	}
}
