package runtest

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
)

// A run's diagnostics of predictions equal its samples', drawn as often. Validation data are
// preferred to test data.
func TestMixingOfPredictions(t *testing.T) {
	train, held, other := squares(t, 100, 4, 1), squares(t, 30, 4, 2), squares(t, 20, 4, 3)
	spec := bayes.Spec{
		Network: "mlp-3", Method: methodOf(t, "sgld"), Schedule: optimizers.Constant{Rate: 0.05}, Batch: 10, Epochs: 260, Chains: 2,
		BurnInSteps: 1000, Thinning: 100,
	}
	for _, splits := range []datasets.Splits{{Train: train, Test: held}, {Train: train, Validation: held, Test: other}} {
		run, err := bayes.Fit(context.Background(), spec, &splits, t.TempDir()+"/run")
		must(t, err)
		d, err := run.Diagnostics()
		must(t, err)
		if d.Predicted == nil || d.Predicted.Images != held.Len() || d.Predicted.Values != 16 {
			t.Fatalf("watched %+v, want %d images and 16 values", d.Predicted, held.Len())
		}
		probabilities := map[int][][]float32{} // by chain
		files, err := run.Samples()
		must(t, err)
		at := 0
		_, err = run.Predictions(context.Background(), held, func(p []float32, _ float64) error {
			chain := 0
			if strings.Contains(files[at], "chain00001") {
				chain = 1
			}
			at++
			probabilities[chain] = append(probabilities[chain], slices.Clone(p))
			return nil
		})
		must(t, err)
		if len(probabilities[0]) != 16 || len(probabilities[1]) != 16 {
			t.Fatalf("%d and %d samples of chains: %v", len(probabilities[0]), len(probabilities[1]), files[:3])
		}
		var rHats []float64
		for i := range held.Len() {
			first := probabilities[0][0][i*4:][:4]
			class := slices.Index(first, slices.Max(first))
			traces := make([][]float64, 2)
			for chain := range traces {
				for _, p := range probabilities[chain] {
					traces[chain] = append(traces[chain], float64(p[i*4+class]))
				}
			}
			rHat, err := diagnostics.SplitRHat(traces)
			must(t, err)
			rHats = append(rHats, rHat)
		}
		slices.Sort(rHats)
		if want := rHats[28]; !(math.Abs(float64(d.Predicted.RHat)-want) < 1e-9) { // 29 of 30 are at most that
			t.Errorf("split R-hat %v, the samples' is %v", d.Predicted.RHat, want)
		}
		if !(d.Predicted.BulkESS > 1 && d.Predicted.BulkESS < 200 && d.Predicted.TailESS > 1) {
			t.Errorf("effective sample sizes %+v of 32 values", d.Predicted)
		}
	}
	run := fit(t, spec, trainOn(train))
	if d, err := run.Diagnostics(); err != nil || d.Predicted != nil {
		t.Errorf("nothing is held out, and yet %+v (%v)", d.Predicted, err)
	}
	wrong := squares(t, 20, 4, 3)
	wrong.Width, wrong.Height = wrong.Width*2, wrong.Height/2
	_, err := bayes.Fit(context.Background(), spec, &datasets.Splits{Train: train, Test: wrong}, t.TempDir()+"/run")
	if err == nil || !strings.Contains(err.Error(), "must have the") {
		t.Errorf("test images of another shape: error %v", err)
	}
}

// The estimate of what minibatches add to the temperature is h Var(gU)/(2T) of softmax regression,
// whose gradients are (p - y) x, over the friction; on all data there is none.
func TestHeating(t *testing.T) {
	const size, batch, rate, temperature = 40, 5, 0.02, 0.5
	data := squares(t, size, 4, 1)
	of := func(method string, batch int) (*bayes.Run, diagnostics.Temperature) {
		spec := bayes.Spec{
			Layers: layers.Sequential{layers.Flatten{}, layers.Linear{Outputs: 4}}, Method: methodOf(t, method), Temperature: new(temperature),
			Schedule: optimizers.Constant{Rate: rate}, Batch: batch, Epochs: 20, Samples: 1,
		}
		run := fit(t, spec, trainOn(data))
		d, err := run.Diagnostics()
		must(t, err)
		if len(d.Temperatures) != 2 || d.Temperatures[0].Weights != d.Temperatures[1].Weights || d.Temperatures[0].Weights != 4*data.ImageSize()+4 {
			t.Fatalf("%s: temperatures %+v", method, d.Temperatures)
		}
		return run, d.Temperatures[1]
	}
	for method, friction := range map[string]float64{"sgld": 1, "sghmc:friction=0.1": 0.1, "sgnht:friction=0.2": 0.2} {
		run, got := of(method, batch)
		m := run.Manifest()
		predictions, err := run.Predictions(context.Background(), data, nil) // by the one sample, the last state
		must(t, err)
		var variance float64 // of the mean gradient of a minibatch, mean over the elements
		for k := range 4 {
			for j := range data.ImageSize() + 1 {
				sum, squares := 0.0, 0.0
				for i := range size {
					g := predictions.Probabilities[i*4+k]
					if int(data.Labels[i]) == k {
						g--
					}
					if j < data.ImageSize() { // else the bias
						g *= (float64(data.Image(i)[j])/255 - m.Data.Mean[0]) / m.Data.Std[0]
					}
					sum, squares = sum+g, squares+g*g
				}
				variance += (squares - sum*sum/size) / (size - 1) / batch * (1 - batch/float64(size)) / float64(got.Weights)
			}
		}
		want := rate / size / friction * size * size * variance / (2 * temperature)
		if !(math.Abs(float64(got.GradientNoise)/want-1) < 0.25) {
			t.Errorf("%s: the estimate is %v, want about %v", method, got.GradientNoise, want)
		}
		equilibrium := got.Kinetic
		if friction == 1 {
			equilibrium = temperature * (1 + got.GradientNoise)
		}
		if want := got.Configurational - equilibrium; !(math.Abs(float64(got.Drift-want)) < 1e-12) {
			t.Errorf("%s: the drift is %v, want %v", method, got.Drift, want)
		}
	}
	if _, all := of("sgld", size); !(math.Abs(float64(all.GradientNoise)) < 1e-9) {
		t.Errorf("on all data it is %v", all.GradientNoise)
	}
}

// A run that was stopped and resumed has seen as much of its chains' predictions as one that was
// not; with other held-out images, it says so, and starts again.
func TestMixingOfAResumedRun(t *testing.T) {
	splits := datasets.Splits{Train: squares(t, 100, 4, 1), Test: squares(t, 30, 4, 2)}
	spec := bayes.Spec{
		Network: "mlp-3", Method: methodOf(t, "sgnht"), Schedule: optimizers.Constant{Rate: 0.005}, Batch: 10, Epochs: 200, Chains: 2,
		BurnInSteps: 300, Thinning: 240,
	}
	whole, err := bayes.Fit(context.Background(), spec, &splits, t.TempDir()+"/run")
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir := t.TempDir() + "/run"
	_, err = bayes.Fit(ctx, spec, &splits, dir, bayes.WithObserver(func(e bayes.Event) {
		if e.Done > 800 {
			cancel()
		}
	}))
	if err == nil {
		t.Fatal("the run was not stopped")
	}
	stopped := func(name string) string {
		copied := filepath.Join(t.TempDir(), name)
		must(t, os.CopyFS(copied, os.DirFS(dir)))
		return copied
	}
	want, err := whole.Diagnostics()
	must(t, err)
	const other = "the held-out images are not those that chains were watched on before"
	for _, c := range []struct {
		dir     string
		test    *datasets.Dataset
		differs bool
	}{
		{stopped("same"), splits.Test, false},
		{stopped("other"), squares(t, 30, 4, 3), true},
		{stopped("fewer"), squares(t, 20, 4, 2), true},
	} {
		remarks := ""
		resumed, err := bayes.Resume(context.Background(), c.dir, &datasets.Splits{Train: splits.Train, Test: c.test},
			bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark }))
		must(t, err)
		got, err := resumed.Diagnostics()
		must(t, err)
		if want.Predicted == nil || want.Predicted.Values < 8 || got.Predicted == nil || (*got.Predicted != *want.Predicted) != c.differs {
			t.Errorf("%s: resumed: %+v, never stopped: %+v", c.dir, got.Predicted, want.Predicted)
		}
		if strings.Contains(remarks, other) != c.differs || c.differs && got.Predicted.Values >= want.Predicted.Values {
			t.Errorf("%s: %d values, remarks %q", c.dir, got.Predicted.Values, remarks)
		}
	}
}
