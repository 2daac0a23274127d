package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// The study at a hundredth of its length, on letters that need no download. It prints each method's
// distance from the reference, which is 0 for the reference itself. By default every sixth method
// runs, one of each kind: an optimizer, two samplers on minibatches and one on all data.
func TestRun(t *testing.T) {
	short := perceptron
	if !testenv.All(t) {
		short.methods = nil
		for i := 0; i < len(perceptronMethods); i += 6 {
			short.methods = append(short.methods, perceptronMethods[i])
		}
	}
	var out bytes.Buffer
	if err := short.compare(context.Background(), &out, io.Discard, "glyphs", 0.01, "", ""); err != nil {
		t.Fatal(err)
	}
	rows := rowsOf(out.String())
	if got := rows["HMC, both seeds"]; len(got) < 4 || got[0] != 1 || got[1] != 0 {
		t.Errorf("HMC against itself: %v, want agreement 1 and total variation 0", got)
	}
	for _, m := range short.methods {
		got := rows[m.name]
		if len(got) < 4 || !(got[0] >= 0 && got[0] < 1) || !(got[1] > 0 && got[1] < 1) {
			t.Errorf("%s: %v, want agreement, total variation, accuracy and NLL", m.name, got)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// The settings of every method are valid.
func TestMethods(t *testing.T) {
	for _, p := range []posterior{perceptron, convolutional} {
		for _, m := range p.methods {
			if err := m.spec(&study{posterior: &p, effort: 1}).Validate(); err != nil {
				t.Errorf("%s: %v", m.name, err)
			}
		}
	}
}

// rowsOf returns the numbers of each row of a table.
func rowsOf(table string) map[string][]float64 {
	rows := map[string][]float64{}
	for _, line := range strings.Split(table, "\n") {
		name, rest, ok := strings.Cut(line, "  ")
		if !ok {
			continue
		}
		for _, field := range strings.Fields(rest) {
			if v, err := strconv.ParseFloat(field, 64); err == nil {
				rows[name] = append(rows[name], v)
			}
		}
	}
	return rows
}

func TestEffort(t *testing.T) {
	for _, effort := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := perceptron.newStudy(t.Context(), "glyphs", effort, ""); err == nil || !strings.Contains(err.Error(), "effort must be above 0") {
			t.Errorf("effort %v: %v, want an error", effort, err)
		}
	}
}

// A reference that could not be written is an error before it is sampled.
func TestReferenceWithoutDirectory(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "reference.json")
	err := perceptron.compare(t.Context(), io.Discard, io.Discard, "glyphs", 0.01, "", path)
	if err == nil || !strings.Contains(err.Error(), "is not a directory") {
		t.Errorf("got %v, want an error that names the directory", err)
	}
}

// Samples of cycles are averaged with the step sizes at which they were drawn as weights.
func TestSamplesAreWeighted(t *testing.T) {
	testenv.NeedsAll(t, "long chains")
	s, err := perceptron.newStudy(context.Background(), "glyphs", 0.01, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	at := slices.IndexFunc(perceptronMethods, func(m method) bool { return m.name == "cyclical SGHMC" })
	r, err := s.predict(perceptronMethods[at])
	if err != nil {
		t.Fatal(err)
	}
	run, err := bayes.Open(filepath.Join(s.dir, "cyclical sghmc"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := run.Samples()
	if err != nil {
		t.Fatal(err)
	}
	var each [][]float64
	_, err = run.Predictions(s.ctx, s.data.Test, func(probabilities []float32, _ float64) error {
		var wide []float64
		for _, p := range probabilities {
			wide = append(wide, float64(p))
		}
		each = append(each, wide)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	rates, err := optimizers.Cyclical{Initial: 2e-3, Cycles: 4}.Rates(5 * run.Manifest().Spec.Epochs)
	if err != nil {
		t.Fatal(err)
	}
	want, equal, sum := make([]float64, len(r.mean)), make([]float64, len(r.mean)), 0.0
	for i, file := range files {
		sample, err := samples.ReadSample(file)
		if err != nil {
			t.Fatal(err)
		}
		weight := rates[sample.Step-1]
		sum += weight
		for at, p := range each[i] {
			want[at] += weight * p
			equal[at] += p / float64(len(files))
		}
	}
	far, apart := 0.0, 0.0
	for at := range want {
		far = max(far, math.Abs(want[at]/sum-r.mean[at]))
		apart = max(apart, math.Abs(want[at]/sum-equal[at]))
	}
	if len(files) != 4*8 || !(far < 1e-6) || !(apart > 1e-2) {
		t.Errorf("of %d samples: %g from the weighted mean, which is %g from that of equal weights", len(files), far, apart)
	}
}

// A study that was stopped resumes in its directory: interrupted runs end with the results of
// uninterrupted ones, and finished ones are not repeated.
func TestGoesOn(t *testing.T) {
	whole, err := perceptron.newStudy(context.Background(), "glyphs", 0.01, "")
	if err != nil {
		t.Fatal(err)
	}
	defer whole.close()
	dir := filepath.Join(t.TempDir(), "study")
	predict := func(ctx context.Context) ([]float64, error) {
		t.Helper()
		s := &study{posterior: &perceptron, ctx: ctx, data: whole.data, effort: whole.effort, device: whole.device}
		if err := s.begin(dir); err != nil {
			t.Fatal(err)
		}
		defer s.runs.Close()
		r, err := s.predict(perceptronMethods[0])
		return r.mean, err
	}
	first, err := whole.predict(perceptronMethods[0])
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	if _, err := predict(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want that of the context", err)
	}
	sample := filepath.Join(dir, "sgd", "samples", samples.FileName(0, 16*5))
	var made os.FileInfo
	for _, what := range []string{"stopped", "finished"} {
		got, err := predict(context.Background())
		if err != nil || !slices.Equal(got, first.mean) {
			t.Errorf("a study that was %s predicts otherwise (%v)", what, err)
		}
		now, err := os.Stat(sample)
		if err != nil || made != nil && !os.SameFile(made, now) {
			t.Errorf("a study that was %s drew its sample again (%v)", what, err)
		}
		made = now
	}
	other := &study{posterior: &perceptron, ctx: context.Background(), effort: 0.1}
	if err := other.begin(dir); err == nil || !strings.Contains(err.Error(), "has other entries") {
		t.Errorf("another effort: %v", err)
	}
}

// The stored reference belongs to the program's digits, and its chains have mixed.
func TestConvolutionalReference(t *testing.T) {
	s, err := convolutional.newStudy(context.Background(), "mnist", 1, "")
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	r, err := s.reference("", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	near, err := evaluate.Compare(r.Halves[0].Mean, r.Halves[1].Mean, classes)
	if err != nil {
		t.Fatal(err)
	}
	sorted := slices.Sorted(slices.Values(r.RHats))
	if len(sorted) < 900 || !(sorted[len(sorted)*95/100] < 1.04) || !(near.Agreement > 0.98) || !(near.TotalVariation < 0.03) {
		t.Errorf("its halves: %+v, %d split R-hats, %v the largest", near, len(sorted), sorted[len(sorted)-1])
	}
}

// A stored reference gives the same comparison as a sampled one, up to its rounding. The reference
// of another posterior is an error.
func TestStoredReference(t *testing.T) {
	testenv.NeedsAll(t, "long chains")
	small := convolutional
	small.examples, small.hmc, small.methods = 100, trajectories{leaps: 3, warmup: 400, draws: 600}, convolutionalMethods[:1]
	dir := t.TempDir()
	file := filepath.Join(dir, "reference.json")
	var sampled, read bytes.Buffer
	if err := small.compare(context.Background(), &sampled, io.Discard, "glyphs", 0.01, filepath.Join(dir, "first"), file); err != nil {
		t.Fatal(err)
	}
	var err error
	if small.stored, err = os.ReadFile(file); err != nil {
		t.Fatal(err)
	}
	if err := small.compare(context.Background(), &read, io.Discard, "glyphs", 0.01, filepath.Join(dir, "second"), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "second", "hmc, seed 1")); !os.IsNotExist(err) {
		t.Errorf("HMC ran again (%v)", err)
	}
	want, got := rowsOf(sampled.String()), rowsOf(read.String())
	if len(want) < 3 || len(got) != len(want) {
		t.Errorf("%d rows of %d", len(got), len(want))
	}
	for name, row := range want {
		for i, v := range row {
			if !(len(got[name]) == len(row) && math.Abs(got[name][i]-v) < 2e-3) {
				t.Fatalf("%s: %v, want %v", name, got[name], row)
			}
		}
	}
	small.examples++
	err = small.compare(context.Background(), io.Discard, io.Discard, "glyphs", 0.01, "", "")
	if err == nil || !strings.Contains(err.Error(), "is of other data") {
		t.Errorf("another posterior's reference: %v", err)
	}
}

func TestPool(t *testing.T) {
	if got := pool([]float64{0.25, 0.75}, []float64{0.75, 0.25}); got[0] != 0.5 || got[1] != 0.5 {
		t.Errorf("%v, want the mean", got)
	}
}
