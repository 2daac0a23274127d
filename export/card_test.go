package export

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCard(t *testing.T) {
	run, data := fitted(t, "mlp-8", 1, 3)
	dir := filepath.Join(t.TempDir(), "card")
	remarks, err := Card(t.Context(), run, data.Test, dir, ONNXOptions{}, time.Unix(0, 0))
	if err != nil || len(remarks) > 0 {
		t.Fatal(err, remarks)
	}
	for _, name := range []string{"model.onnx", "posterior.zarr/.zmetadata", "posterior.safetensors", "predictions.npz", "tensorboard"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	content, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# mlp-8 on patterns", "120 images of 16x16 with 1 channels. The 3 classes are across, along, checked.", "| method | sgld |", "| accuracy | ",
		"| coverage of 90 % prediction sets | ", "stretched to this size by a bicubic filter",
		"  | images | accepted | of |", "not tested against images made to deceive",
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("the card lacks %q:\n%s", want, content)
		}
	}
	unlabelled := *data.Test
	unlabelled.Labels = nil
	if _, err := Card(t.Context(), run, &unlabelled, filepath.Join(t.TempDir(), "card"), ONNXOptions{}, time.Unix(0, 0)); err == nil {
		t.Error("no error without labels")
	}
}

// The card of a distilled run is about one network: it names the teacher, and has no posterior.
func TestCardOfDistilled(t *testing.T) {
	run, data := fitted(t, "distilled", 1, 3)
	_, err := ArviZ(t.Context(), run, data.Test, filepath.Join(t.TempDir(), "zarr"))
	if refused := "is one network, distilled from a posterior, and has no draws: export its teacher, "; err == nil || !strings.Contains(err.Error(), refused) {
		t.Errorf("the error is %v, want %q", err, refused)
	}
	dir := filepath.Join(t.TempDir(), "card")
	if _, err := Card(t.Context(), run, data.Test, dir, ONNXOptions{}, time.Unix(0, 0)); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := "distilled by Pollen from a Bayesian one (lenet-small by sgld): it predicts what the average of 6 samples does"
	if text := string(content); !strings.Contains(text, want) || strings.Contains(text, "posterior.zarr") {
		t.Errorf("the card is\n%s", text)
	}
	if _, err := os.Stat(filepath.Join(dir, "posterior.zarr")); !os.IsNotExist(err) {
		t.Errorf("there are groups for ArviZ (%v)", err)
	}
}

// TestIntervals: Wilson's interval of 8 of 10 is .490 to .943, as in Wilson (1927); the interval of
// a mean is 1.96 standard errors.
func TestIntervals(t *testing.T) {
	f := fraction("", 8, 10)
	if f.value != 0.8 || math.Abs(f.low-0.4902) > 1e-4 || math.Abs(f.high-0.9433) > 1e-4 {
		t.Errorf("8 of 10 is %+v", f)
	}
	m := mean("", []float64{1, 2, 3})
	if m.value != 2 || math.Abs(m.high-m.value-1.959964/math.Sqrt(3)) > 1e-9 {
		t.Errorf("the mean of 1, 2, 3 is %+v", m)
	}
}
