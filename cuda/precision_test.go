package cuda_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// learner is a network with a convolution of one channel, a convolution of many channels, a
// pooling, and a product of matrices.
const learner = `
- conv2d: {filters: 8, kernel: 5, stride: 3}
- relu
- conv2d: {filters: 16, kernel: 3}
- relu
- maxpool: {window: 2}
- flatten
- linear: {outputs: classes}
`

// TestPrecisions trains whole runs on letters in each precision: rounded products lead to other
// networks, as another seed does, but not to worse ones. Over more seeds the accuracy's standard
// deviation is some 0.02.
func TestPrecisions(t *testing.T) {
	testenv.NeedsAll(t, "nine trainings on the emulated GPU")
	if os.Getenv(cudatest.Variable) == cudatest.PTX {
		t.Skip("the kernels' sources train the same networks, and other tests compare the PTX in each precision with the host")
	}
	const seeds = 3
	data, err := datasets.Open("glyphs", datasets.Options{Validation: -1})
	if err != nil {
		t.Fatal(err)
	}
	if data.Test, err = data.Test.First(1000); err != nil {
		t.Fatal(err)
	}
	var accuracy, loss float64 // of FP32: the mean over seeds, and the first seed's NLL
	for _, precision := range []cuda.Precision{cuda.FP32, cuda.TF32, cuda.BF16} {
		t.Run(string(precision), func(t *testing.T) {
			device := cudatest.GPU(t, cuda.Options{Precision: precision})
			var runs []map[string]float64
			mean := 0.0
			for seed := range uint64(seeds) {
				runs = append(runs, learn(t, device, data, seed+1))
				mean += runs[seed]["accuracy"] / seeds
			}
			t.Logf("%s: mean accuracy %.4f, %v", precision, mean, runs)
			if precision == cuda.FP32 {
				accuracy, loss = mean, runs[0]["nll"]
				return
			}
			if mean < 0.6 || mean < accuracy-0.03 {
				t.Errorf("mean accuracy %v, in fp32 %v", mean, accuracy)
			}
			if runs[0]["nll"] == loss {
				t.Errorf("NLL %v, to the digit as in fp32: nothing was rounded", loss)
			}
		})
	}
}

// learn trains one chain on the device, and scores it on the host.
func learn(t *testing.T, device tensor.Device, data *datasets.Splits, seed uint64) map[string]float64 {
	t.Helper()
	network, err := layers.Parse([]byte(learner), data.Train.Classes)
	if err != nil {
		t.Fatal(err)
	}
	spec := bayes.Spec{
		Layers: network, Method: optimizers.Momentum{Decay: 0.9}, Schedule: optimizers.Cosine{First: 0.02},
		Subset: 200, Batch: 20, Epochs: 4, Seed: seed,
	}
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := bayes.Fit(context.Background(), spec, data, dir, bayes.WithDevice(device)); err != nil {
		t.Fatal(err)
	}
	run, err := bayes.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	a, err := run.Assess(context.Background(), data.Test, nil)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]float64{"accuracy": a.Values["accuracy"], "nll": a.Values["nll"]}
}
