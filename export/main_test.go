package export

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/onnxtest"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor/random"
)

// side is the height and width of the images.
const side = 16

// patterns are noisy stripes across, along, and checks, with a number of channels.
func patterns(t testing.TB, n, channels int, stream uint16) *datasets.Dataset {
	t.Helper()
	size := channels * side * side
	noise := make([]float32, n*size)
	random.Uniforms(noise, 0, random.Address{Seed: 7, Stream: stream})
	pixels := make([]byte, len(noise))
	labels := make([]int32, n)
	for i := range pixels {
		image, row, column := i/size, i/side%side, i%side
		labels[image] = int32(image % 3)
		on := []int{row / 4, column / 4, row/4 + column/4}[image%3] % 2
		pixels[i] = byte(60*on) + byte(195*noise[i])
	}
	d, err := datasets.New("patterns", pixels, labels, channels, side, side, []string{"across", "along", "checked"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// fitted returns a small calibrated run with two chains, and its data. The network "distilled"
// stands for a run that is distilled from such a run, "distilled networks" for a distilled run of
// several networks; "frozen" and "partly frozen" are networks of an ONNX file.
func fitted(t testing.TB, network string, channels, samples int) (*bayes.Run, *datasets.Splits) {
	t.Helper()
	data := splits(t, channels)
	spec := bayes.Spec{Network: network, Method: langevin.SGLD{}, Batch: 30, Epochs: 8, Chains: 2, Samples: samples}
	if strings.HasPrefix(network, "distilled") {
		teacher, _ := fitted(t, "lenet-small", channels, samples)
		spec = bayes.Spec{Network: "lenet-small", Method: bayes.Distillation{PrecisionWeight: 0.1, Copies: 2}, Teacher: teacher.Dir(), Batch: 30, Epochs: 8}
		if network == "distilled networks" {
			spec.Method = bayes.Distillation{PrecisionWeight: 0.1, Copies: 2, Networks: 2}
		}
	}
	if strings.HasSuffix(network, "frozen") || network == "offsets" {
		spec.Network = onnxtest.Backbone{Channels: channels, Side: side, Filters: 12}.Write(t)
		spec.Head = "mlp:5"
		switch network {
		case "partly frozen":
			spec.Freeze = "features.0.weight"
		case "BGR frozen":
			spec.Input = "caffe"
		case "offsets": // all weights are sampled, around the file's
			prior := langevin.Start(0.1)
			spec.Freeze, spec.Prior = "none", &prior
		}
	}
	run, err := bayes.Fit(context.Background(), spec, data, filepath.Join(t.TempDir(), "patterns"))
	if err != nil {
		t.Fatal(err)
	}
	return run, data
}

// fittedWith returns a run of a small network on the same images, calibrated on held-out images.
func fittedWith(t testing.TB, spec bayes.Spec, data *datasets.Splits) *bayes.Run {
	t.Helper()
	spec.Batch = 30
	run, err := bayes.Fit(context.Background(), spec, data, filepath.Join(t.TempDir(), "patterns"))
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// splits returns the images of fitted.
func splits(t testing.TB, channels int) *datasets.Splits {
	t.Helper()
	return &datasets.Splits{Train: patterns(t, 120, channels, 1), Validation: patterns(t, 60, channels, 2), Test: patterns(t, 40, channels, 3)}
}

// pythonVariable names a Python with the packages of .ci/export.txt, with which the files are read
// back by the programs that they are for.
const pythonVariable = "POLLEN_EXPORT_PYTHON"

// needsPython skips a test without a Python.
func needsPython(t *testing.T) (program string) {
	t.Helper()
	if program = os.Getenv(pythonVariable); program == "" {
		t.Skipf("%s is not set: other programs do not read the files", pythonVariable)
	}
	return program
}

// python runs a script of testdata, if there is a Python that has its packages.
func python(t *testing.T, script string, arguments ...string) {
	t.Helper()
	out, err := exec.Command(needsPython(t), append([]string{filepath.Join("testdata", script)}, arguments...)...).CombinedOutput()
	if missing := "No module named "; err != nil && strings.Contains(string(out), missing) {
		_, name, _ := strings.Cut(string(out), missing)
		t.Skipf("%s is not run: Python has no %s", script, strings.TrimSpace(name))
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	t.Logf("%s: %s", script, out)
}

// TestCheckKept: predictions that do not fit into the memory are an error before they are made.
func TestCheckKept(t *testing.T) {
	if err := checkKept(10, 1000, 10); err != nil {
		t.Error(err)
	}
	if err := checkKept(1000, 10_000_000, 1000); !errors.As(err, new(*bayes.MemoryError)) {
		t.Errorf("40 TB: error %v, want a MemoryError", err)
	}
}
