package export

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/maruel/safetensors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/npz"
	"github.com/pollen-ml/pollen/internal/onnxtest"
	"github.com/pollen-ml/pollen/tensor"
)

// TestTorch: PyTorch computes the run's probabilities, also for a distilled run.
func TestTorch(t *testing.T) {
	for network, output := range map[string]string{"lenet-small": "logits", "distilled": "log_concentrations"} {
		t.Run(network, func(t *testing.T) { checkTorch(t, network, output) })
	}
}

// writtenByTorch exports a run to a file and returns the file's content.
func writtenByTorch(t *testing.T, run *bayes.Run, path string) safetensors.File {
	t.Helper()
	if err := Torch(run, path); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Parse(content)
	if err != nil {
		t.Fatal(err)
	}
	return *f
}

func checkTorch(t *testing.T, network, output string) {
	run, data := fitted(t, network, 1, 3)
	dir := t.TempDir()
	path, reference := filepath.Join(dir, "posterior.safetensors"), filepath.Join(dir, "reference.npz")
	f := writtenByTorch(t, run, path)
	draws, err := run.Draws()
	if err != nil {
		t.Fatal(err)
	}
	last, err := draws.Read(draws.Len() - 1)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Metadata["output"]; got != output {
		t.Errorf("the output is %q, want %q", got, output)
	}
	stored := map[string]safetensors.Tensor{}
	for _, x := range f.Tensors {
		stored[x.Name] = x
	}
	for _, p := range last.Parameters {
		x := stored[p.Name]
		values := make([]float32, len(x.Data)/4)
		copy(tensor.Bytes(values), x.Data)
		if len(values) != draws.Len()*len(p.Values) || int(x.Shape[0]) != draws.Len() || len(x.Shape) != 1+len(p.Shape) {
			t.Fatalf("%s has shape %v and %d values", p.Name, x.Shape, len(values))
		}
		for i, v := range values[len(values)-len(p.Values):] {
			if v != p.Values[i] {
				t.Fatalf("%s: value %d of the last sample is %v, want %v", p.Name, i, v, p.Values[i])
			}
		}
	}
	p, err := predict(t.Context(), run, data.Test)
	if err != nil {
		t.Fatal(err)
	}
	s, n, k := p.size()
	if err := npz.Write(reference, npz.Array{Name: "images", Shape: []int{n, 1, side, side}, Values: data.Test.Images},
		npz.Array{Name: "probabilities", Shape: []int{s, n, k}, Values: p.probabilities},
		npz.Array{Name: "mean", Shape: []int{n, k}, Values: p.average.Probabilities}); err != nil {
		t.Fatal(err)
	}
	python(t, "torch_check.py", path, reference)
}

// TestTorchOffsets: samples that are offsets from the weights of an ONNX file are exported as
// weights.
func TestTorchOffsets(t *testing.T) {
	run, _ := fitted(t, "offsets", 1, 3)
	path := filepath.Join(t.TempDir(), "posterior.safetensors")
	f := writtenByTorch(t, run, path)
	draws, err := run.Draws()
	if err != nil {
		t.Fatal(err)
	}
	first, err := draws.Read(0)
	if err != nil {
		t.Fatal(err)
	}
	starts, _ := onnxtest.Backbone{Channels: 1, Filters: 12}.Kernels()
	found := false
	for j, x := range f.Tensors {
		if x.Name != "features.0.weight" {
			continue
		}
		found = true
		values := make([]float32, len(x.Data)/4)
		copy(tensor.Bytes(values), x.Data)
		for i, start := range starts {
			if want := start + first.Parameters[j].Values[i]; values[i] != want {
				t.Fatalf("%s: value %d is %v, want %v, the file's %v and an offset", x.Name, i, values[i], want, start)
			}
		}
	}
	if !found {
		t.Error("there is no features.0.weight")
	}
}
