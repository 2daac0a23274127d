package main

import (
	"bytes"
	"context"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
)

// The whole study at a hundredth of its length, on letters that need no download: it prints each
// method's distance from the reference, which is 0 for the reference itself.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), &out, io.Discard, "glyphs", 0.01); err != nil {
		t.Fatal(err)
	}
	rows := map[string][]float64{}
	for _, line := range strings.Split(out.String(), "\n") {
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
	if got := rows["HMC, both seeds"]; len(got) != 4 || got[0] != 1 || got[1] != 0 {
		t.Errorf("HMC against itself: %v, wants agreement 1 and total variation 0", got)
	}
	for _, m := range methods {
		got := rows[m.name]
		if len(got) != 4 || !(got[0] >= 0 && got[0] < 1) || !(got[1] > 0 && got[1] < 1) {
			t.Errorf("%s: %v, wants agreement, total variation, accuracy and NLL", m.name, got)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

// Samples of cycles are averaged with the learning rates of their steps as weights.
func TestSamplesAreWeighted(t *testing.T) {
	s, err := newStudy(context.Background(), "glyphs", 0.01)
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	at := slices.IndexFunc(methods, func(m method) bool { return m.name == "cyclical SGHMC" })
	mean, err := s.predict(methods[at])
	if err != nil {
		t.Fatal(err)
	}
	run, err := pollen.Open(filepath.Join(s.folder, "cyclical SGHMC"))
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
	want, equal, sum := make([]float64, len(mean)), make([]float64, len(mean)), 0.0
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
		far = max(far, math.Abs(want[at]/sum-mean[at]))
		apart = max(apart, math.Abs(want[at]/sum-equal[at]))
	}
	if len(files) != 4*8 || !(far < 1e-6) || !(apart > 1e-2) {
		t.Errorf("of %d samples: %g from the weighted mean, which is %g from that of equal weights", len(files), far, apart)
	}
}

func TestPool(t *testing.T) {
	if got := pool([]float64{0.25, 0.75}, []float64{0.75, 0.25}); got[0] != 0.5 || got[1] != 0.5 {
		t.Errorf("%v, wants the mean", got)
	}
}
