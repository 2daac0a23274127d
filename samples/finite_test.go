package samples_test

import (
	"math"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// wantNotFinite fails the test unless the error is of chain 0 after 3 steps.
func wantNotFinite(t *testing.T, err error, what string) {
	t.Helper()
	var at *samples.NotFiniteError
	if !errors.As(err, &at) || at.Chain != 0 || at.Step != 3 || at.What != what {
		t.Errorf("error %v, want that a %s of chain 0 after step 3 is not finite", err, what)
	}
}

// TestNotFinite: a sample of finite weights whose probabilities overflow is an error wherever it
// predicts, and one of infinite weights in a probe.
func TestNotFinite(t *testing.T) {
	good, huge, infinite := networkSample(t, 3), networkSample(t, 3), networkSample(t, 3)
	for _, p := range huge.Parameters {
		for i := range p.Values {
			p.Values[i] *= 1e30
		}
	}
	infinite.Parameters[1].Values[0] = float32(math.Inf(1))

	images := trial.PredictorImages(5)
	host := tensor.NewHost(1)
	defer host.Close()
	probe, err := samples.NewProbe(host, images, trial.Network)
	if err != nil {
		t.Fatal(err)
	}
	defer probe.Close()
	for range 2 {
		if err := probe.Check(good); err != nil {
			t.Error(err)
		}
		wantNotFinite(t, probe.Check(huge), "probability of image 0")
		wantNotFinite(t, probe.Check(infinite), "value in "+infinite.Parameters[1].Name)
	}

	p := predictor(t, tensor.Float32, images, 2)
	wantNotFinite(t, p.Predict(huge, make([]float32, 5*trial.NetworkLabels)), "probability of image 0")

	g, err := samples.NewInputGradient(host, tensor.Float32, images, make([]int32, 5), 2, trial.Network)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	wantNotFinite(t, g.Add(huge), "probability of image 0")
	for _, v := range g.Gradient() {
		if v != 0 {
			t.Fatalf("the gradient of no sample is %v", v)
		}
	}

	c := ensemble(t, 2, 4, []samples.Sample{good, huge}, trial.Network)
	used := 0
	err = c.Predict(images.Slice(0, 2), 1, func([]float32, float64) error { used++; return nil })
	if wantNotFinite(t, err, "probability of image 0"); used != 1 {
		t.Errorf("%d members were used, want only the first", used)
	}
}

func TestNilNetwork(t *testing.T) {
	host := tensor.NewHost(1)
	defer host.Close()
	if _, err := samples.NewProbe(host, trial.PredictorImages(1), nil); err == nil || !strings.Contains(err.Error(), "the network must not be nil") {
		t.Error(err)
	}
}
