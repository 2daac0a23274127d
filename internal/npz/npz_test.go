package npz

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/datasets"
)

// What is written is read by our own reader of such archives.
func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "answers.npz")
	err := Write(path, Array{"probabilities", []int{1, 2, 3}, []float32{0.5, 0.25, 0.25, 0, 1, 0}}, Array{"weights", []int{1}, []float64{2}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := datasets.Open(path, datasets.Options{}); err == nil || !strings.Contains(err.Error(), "probabilities") {
		t.Errorf("error %v, want one that names the arrays there are", err)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("no python3: NumPy does not read the archive")
	}
	script := "import numpy,sys; a=numpy.load(sys.argv[1]); print(a['probabilities'].shape, a['probabilities'].dtype, a['probabilities'][0,1,1], a['weights'])"
	out, err := exec.Command(python, "-c", script, path).CombinedOutput()
	if strings.Contains(string(out), "No module named") {
		t.Skip("no numpy: it does not read the archive")
	}
	if got, want := strings.TrimSpace(string(out)), "(1, 2, 3) float32 1.0 [2.]"; err != nil || got != want {
		t.Errorf("NumPy reads %q (%v), want %q", got, err, want)
	}
}

// An array that contradicts itself leaves no file.
func TestWriteRefuses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "answers.npz")
	for _, array := range []Array{{"a", []int{2}, []float32{1}}, {"a", []int{1}, []int{1}}} {
		if err := Write(path, array); err == nil {
			t.Errorf("%+v: no error", array)
		}
		if _, err := os.Stat(path); !os.IsNotExist(err) {
			t.Errorf("%+v: there is a file (%v)", array, err)
		}
	}
}
