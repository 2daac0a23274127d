package bayes

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/internal/onnxtest"
	"github.com/pollen-ml/pollen/tensor"
)

// loads counts what is loaded on a device.
type loads struct {
	tensor.Device
	count int
}

func (l *loads) Load(w tensor.Workload) (tensor.Runner, error) {
	l.count++
	return l.Device.Load(w)
}

// A predictor has loaded the frozen network before the first image arrives, also if features of
// that image are known already.
func TestPredictorIsWarm(t *testing.T) {
	spec := Spec{Network: onnxtest.Backbone{Channels: 1, Side: side, Filters: 4}.Write(t), Method: methodOf(t, "adam"), Epochs: 1}
	data, device := squares(t, 40, 4, 1), &loads{Device: tensor.NewHost(1)}
	defer device.Close()
	run, err := Fit(context.Background(), spec, trainOn(data), filepath.Join(t.TempDir(), "run"), WithDevice(device))
	must(t, err)
	unknown := squares(t, 2, 4, 2)
	for i, which := range []string{"first", "second"} {
		p, err := run.Predictor(2)
		must(t, err)
		before := device.count
		_, err = p.Answer(context.Background(), unknown.Image(i))
		must(t, err)
		if device.count > before {
			t.Errorf("the %s predictor has loaded %d more programs for the first image", which, device.count-before)
		}
		must(t, p.Close())
	}
}
