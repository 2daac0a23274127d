package export

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// records returns the records of an event file, whose checksums it checks.
func records(t *testing.T, path string) (all [][]byte) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for len(content) > 0 {
		n := int(binary.LittleEndian.Uint64(content))
		record := content[12 : 12+n]
		if binary.LittleEndian.Uint32(content[8:]) != maskedChecksum(content[:8]) || binary.LittleEndian.Uint32(content[12+n:]) != maskedChecksum(record) {
			t.Fatal("a checksum is wrong")
		}
		all, content = append(all, record), content[16+n:]
	}
	return all
}

func TestTensorBoard(t *testing.T) {
	run, _ := fitted(t, "mlp-8", 1, 3)
	var dot bytes.Buffer
	if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 3, 2))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run.Dir(), "dot.png"), dot.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	dir, at := filepath.Join(t.TempDir(), "board"), time.Unix(1700000000, 0)
	if err := TensorBoard(run, dir, at); err != nil {
		t.Fatal(err)
	}
	lines, err := readMetrics(run.Dir())
	if err != nil {
		t.Fatal(err)
	}
	draws, err := run.Draws()
	if err != nil {
		t.Fatal(err)
	}
	s, err := draws.Read(0)
	if err != nil {
		t.Fatal(err)
	}
	got := records(t, filepath.Join(dir, "events.out.tfevents.1700000000.pollen"))
	if want := 1 + 4*len(lines) + draws.Len()*len(s.Parameters) + 1; len(got) != want {
		t.Errorf("%d events, want %d", len(got), want)
	}
	if !bytes.Contains(got[0], []byte("brain.Event:2")) || !bytes.Contains(got[len(got)-1], dot.Bytes()) {
		t.Error("the first event is not the version, or the last one not the figure")
	}
	moved := filepath.Join(t.TempDir(), "run [1") // which a pattern cannot begin with
	if err := os.Rename(run.Dir(), moved); err != nil {
		t.Fatal(err)
	}
	if run, err = bayes.Open(moved); err == nil {
		err = TensorBoard(run, filepath.Join(t.TempDir(), "moved"), at)
	}
	if err != nil {
		t.Fatalf("in a directory whose name has a bracket: %v", err)
	}
	last := lines[slices.Max(slices.Collect(maps.Keys(lines)))]
	python(t, "tensorboard_check.py", dir, fmt.Sprint(len(lines)), fmt.Sprint(last.Loss), fmt.Sprint(8*side*side))
}

// TestHistogramOfEqualValues: one bin, no division by zero.
func TestHistogramOfEqualValues(t *testing.T) {
	var to bytes.Buffer
	w := newEvents(&to, time.Unix(0, 0))
	w.histogram(1, "constant", []float32{2, 2})
	if w.err != nil || !bytes.Contains(to.Bytes(), binary.LittleEndian.AppendUint64(nil, math.Float64bits(2))) {
		t.Errorf("%v, %x", w.err, to.Bytes())
	}
}

// TestLive: the file has the events that the observer received, without values that were not
// measured.
func TestLive(t *testing.T) {
	dir := t.TempDir()
	live, err := NewLive(dir, func() time.Time { return time.Unix(1700000000, 0) })
	if err != nil {
		t.Fatal(err)
	}
	live.Observe(bayes.Event{Task: "fit", Done: 7, Loss: 0.5, Accuracy: 0.75, Temperature: math.NaN(), RHat: math.NaN()})
	live.Observe(bayes.Event{Task: "predict", Done: 1})
	if err := live.Close(); err != nil {
		t.Fatal(err)
	}
	got := records(t, filepath.Join(dir, "events.out.tfevents.1700000000.pollen"))
	if len(got) != 3 || !bytes.Contains(got[1], []byte("loss")) || !bytes.Contains(got[2], []byte("accuracy")) {
		t.Errorf("events are %q", got)
	}
	// Another run that begins in the same second has its own file.
	if live, err = NewLive(dir, live.now); err != nil {
		t.Fatal(err)
	}
	if err := live.Close(); err != nil {
		t.Fatal(err)
	}
	if got := records(t, filepath.Join(dir, "events.out.tfevents.1700000000.pollen.1")); len(got) != 1 {
		t.Errorf("events of the second run are %q", got)
	}
}

// TestRates: a learning rate of 0 is exported, unless the run has no schedule of learning rates.
func TestRates(t *testing.T) {
	data := &datasets.Splits{Train: patterns(t, 30, 1, 1), Test: patterns(t, 6, 1, 3)}
	for text, want := range map[string]bool{"sgd": true, "nuts": false} {
		method, err := bayes.ParseMethod(text)
		if err != nil {
			t.Fatal(err)
		}
		spec := bayes.Spec{Network: "mlp-4", Method: method, Epochs: 20, Chains: 1, Samples: 4, Prior: new(langevin.Gaussian(0.5))}
		if want {
			spec.Schedule, spec.Samples, spec.Prior = optimizers.Cosine{First: 0.1}, 0, nil
		}
		run, err := bayes.Fit(t.Context(), spec, data, filepath.Join(t.TempDir(), "run"))
		if err != nil {
			t.Fatal(err)
		}
		dir, zarr := filepath.Join(t.TempDir(), "board"), filepath.Join(t.TempDir(), "run.zarr")
		if _, err := ArviZ(t.Context(), run, nil, zarr); err != nil {
			t.Fatal(err)
		}
		chunk, err := os.ReadFile(filepath.Join(zarr, "sample_stats/learning_rate/0.0"))
		if got := err == nil; got != want || got && !bytes.Equal(chunk, make([]byte, 8)) {
			t.Errorf("%s: the rate of the last step is %v (%v), want 0: %t", text, chunk, err, want)
		}
		if err := TensorBoard(run, dir, time.Unix(1700000000, 0)); err != nil {
			t.Fatal(err)
		}
		lines, err := readMetrics(run.Dir())
		if err != nil {
			t.Fatal(err)
		}
		rates := 0
		for _, record := range records(t, filepath.Join(dir, "events.out.tfevents.1700000000.pollen")) {
			if bytes.Contains(record, []byte("learning_rate")) {
				rates++
			}
		}
		if want && rates != len(lines) || !want && rates > 0 {
			t.Errorf("%s: %d learning rates of %d windows, want them: %t", text, rates, len(lines), want)
		}
	}
}
