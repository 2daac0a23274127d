package pollen

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/samples"
)

// The runs of testdata/format2 were made at the commit 4250335, when files had no checksums:
//
//	pollen fit --data glyphs --model mlp-1 --batch 1000 --epochs 4 --method psgld --chains 2
//	      --samples 2 --validation 0.1 --folder finished
//	pollen fit --data glyphs --model mlp-1 --batch 50 --epochs 6 --burn-in 2 --method swag:rank=2
//	      --samples 2 --folder half
//
// The second was interrupted; half-first-draw.safetensors is its first sample after it was resumed
// then.

// format2 is a copy of one of these runs, with the folder of samples that was empty, which Git does
// not keep.
func format2(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	must(t, os.CopyFS(dir, os.DirFS(filepath.Join("testdata/format2", name))))
	must(t, os.MkdirAll(filepath.Join(dir, samplesDir), 0o755))
	return dir
}

// What earlier versions wrote opens, and scores to the digit.
func TestFormat2Opens(t *testing.T) {
	run, err := Open("testdata/format2/finished")
	must(t, err)
	a, err := run.Assess(context.Background(), glyphs(t).Test, nil)
	must(t, err)
	// What pollen eval printed then.
	const want = "accuracy 0.2592, NLL 2.0566, Brier 0.8209, ECE 0.1178"
	if got := a.String(); !strings.HasPrefix(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
	for name, value := range map[string]float64{"setCoverage": 0.8863, "setSize": 5.9472, "inDistribution": 0.9819} {
		if got := a.Values[name]; math.Abs(got-value) > 1e-4 {
			t.Errorf("%s is %v, want %v", name, got, value)
		}
	}
	d, err := run.Diagnostics()
	must(t, err)
	if d.Made != 72 || d.Samples != 4 || math.Abs(float64(d.LossRHat)-2.608) > 1e-3 {
		t.Errorf("diagnostics %+v", d)
	}
	for dir, samples := range map[string]int{"finished": 4, "half": 0} {
		v, err := Verify(format2(t, dir))
		must(t, err)
		if v.Format != 2 || len(v.Damaged) > 0 || v.Samples != samples || !v.Resumable || len(v.Notes) != 1 {
			t.Errorf("%s: %+v", dir, v)
		}
	}
}

// A run that was interrupted then goes on to where it would have come then.
func TestFormat2GoesOn(t *testing.T) {
	const tolerance = 1e-3 // processors round sums differently
	dir := format2(t, "half")
	var remarks []string
	run, err := Resume(context.Background(), dir, trainOn(glyphs(t).Train), WithObserver(func(e Event) { remarks = append(remarks, e.Remark) }))
	must(t, err)
	if text := strings.Join(remarks, "; "); !strings.Contains(text, "resumed after 1300 of 2400 steps; temperatures and R-hat cover the rest") {
		t.Errorf("remarks %q", text)
	}
	got, err := samples.ReadSample(filepath.Join(dir, "samples", samples.FileName(0, 2400)))
	must(t, err)
	want, err := samples.ReadSample("testdata/format2/half-first-draw.safetensors")
	must(t, err)
	for i, p := range want.Parameters {
		for j, v := range p.Values {
			if math.Abs(float64(v-got.Parameters[i].Values[j])) > tolerance {
				t.Fatalf("%s[%d] is %v, want %v", p.Name, j, got.Parameters[i].Values[j], v)
			}
		}
	}
	v, err := Verify(dir)
	must(t, err)
	if len(v.Damaged) > 0 || v.Samples != 2 || v.Made != 2400 {
		t.Errorf("%+v", v)
	}
	files, err := run.Samples()
	if err != nil || len(files) != 2 {
		t.Errorf("samples %v (%v)", files, err)
	}
}

// copied is a copy of a run in which something was changed.
func copied(t testing.TB, run *Run, change func(dir string)) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	must(t, os.CopyFS(dir, os.DirFS(run.Dir())))
	change(dir)
	return dir
}

// Missing, foreign and exchanged files are named, and left out only where that is asked for.
func TestFilesThatAreNotTheRuns(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	spec := quick()
	spec.Chains = 2
	whole := fit(t, spec, data)
	spec.Seed = 5
	other := fit(t, spec, data)
	const name = "samples/chain00001-step000000007.safetensors"
	exchange := func(name string) func(string) {
		return func(dir string) {
			must(t, os.WriteFile(filepath.Join(dir, name), []byte(readFile(t, other.Dir(), name)), 0o644))
		}
	}
	for what, c := range map[string]struct {
		file   string
		change func(dir string)
		left   int
	}{
		"missing":   {name, func(dir string) { must(t, os.Remove(filepath.Join(dir, name))) }, 3},
		"exchanged": {name, exchange(name), 3},
		"renamed": {name, func(dir string) {
			must(t, os.Rename(filepath.Join(dir, "samples/chain00000-step000000007.safetensors"), filepath.Join(dir, name)))
		}, 2},
		"foreign": {"samples/chain00002-step000000007.safetensors", func(dir string) {
			must(t, os.WriteFile(filepath.Join(dir, "samples/chain00002-step000000007.safetensors"), []byte(readFile(t, other.Dir(), name)), 0o644))
		}, 4},
		"no index": {index.File, func(dir string) { must(t, os.Remove(filepath.Join(dir, index.File))) }, 4},
		"damaged index": {index.File, func(dir string) {
			content := []byte(readFile(t, dir, index.File))
			content[300] ^= 1
			must(t, os.WriteFile(filepath.Join(dir, index.File), content, 0o644))
		}, 4},
	} {
		dir := copied(t, whole, c.change)
		path := filepath.Join(dir, c.file)
		v, err := Verify(dir)
		must(t, err)
		if !slices.ContainsFunc(v.Damaged, func(d *DamagedError) bool { return d.File == path }) {
			t.Errorf("%s: %+v does not name %s", what, v.Damaged, path)
		}
		run, err := Open(dir)
		must(t, err)
		_, err = run.Predictions(context.Background(), data.Train, nil)
		if what == "renamed" {
			wantError(t, what, err, "chain0000")
		} else {
			wantDamaged(t, err, path)
		}
		run = run.With(WithoutDamaged())
		p, err := run.Predictions(context.Background(), data.Train, nil)
		must(t, err)
		if p.Samples != c.left || !slices.Contains(run.LeftOut(), path) {
			t.Errorf("%s: %d samples, left out %v, want %d", what, p.Samples, run.LeftOut(), c.left)
		}
	}
}

// A sample that was lost is an error when the run is resumed, and the run then remembers that it
// went on without.
func TestResumeWithoutASample(t *testing.T) {
	data := trainOn(squares(t, 100, 4, 1))
	spec := quick()
	spec.Samples = 4
	whole := fit(t, spec, data)
	const name = "samples/chain00000-step000000007.safetensors"
	for what, change := range map[string]func(path string){
		"missing": func(path string) { must(t, os.Remove(path)) },
		"changed": func(path string) { must(t, os.WriteFile(path, []byte("changed"), 0o644)) },
		"foreign": func(path string) { // of a chain that the run does not have
			foreign := samples.Sample{Chain: 1, Step: 7, Weight: 1, Parameters: []samples.Parameter{{Name: "w", Values: []float32{1}}}}
			must(t, samples.NewStore(filepath.Dir(path)).Add(foreign))
		},
	} {
		name := name
		left, out := 4, []string{name}
		if what == "foreign" {
			name, left, out = "samples/"+samples.FileName(1, 7), 5, nil
		}
		dir := copied(t, whole, func(dir string) { change(filepath.Join(dir, name)) })
		_, err := Resume(context.Background(), dir, data)
		wantDamaged(t, err, filepath.Join(dir, name))
		for range 2 {
			run, err := Resume(context.Background(), dir, data, WithoutDamaged())
			must(t, err)
			p, err := run.Predictions(context.Background(), data.Train, nil)
			must(t, err)
			for i := range out {
				out[i] = filepath.Join(dir, name)
			}
			if p.Samples != left || !slices.Equal(run.LeftOut(), out) {
				t.Errorf("%s: %d samples, left out %v", what, p.Samples, run.LeftOut())
			}
		}
		v, err := Verify(dir)
		must(t, err)
		if len(v.Damaged) > 0 || strings.Contains(strings.Join(v.Notes, "; "), "the run went on without "+name) != (out != nil) {
			t.Errorf("%s: %+v", what, v)
		}
	}
}

// Runs with seals open as they did, too: that of testdata/format3 was made at the commit 4746f87 by
// the command of format2/finished, that of format4 was the first that dropped samples:
//
//	pollen fit --data glyphs --model mlp-1 --batch 1000 --epochs 4 --method sghmc --burn-in 1
//	      --chains 2 --samples 12 --keep 4 --validation 0.1
func TestSealedFormatsOpen(t *testing.T) {
	test := glyphs(t).Test
	for dir, want := range map[string]struct {
		format, samples int
		scores          string // that pollen eval printed then
	}{
		"testdata/format3": {3, 4, "accuracy 0.2592, NLL 2.0566, Brier 0.8209, ECE 0.1178"},
		"testdata/format4": {4, 6, "accuracy 0.2720, NLL 2.0352, Brier 0.8091, ECE 0.1401"},
	} {
		v, err := Verify(dir)
		must(t, err)
		if v.Format != want.format || len(v.Damaged) > 0 || v.Samples != want.samples || v.Expected != want.samples || !v.Resumable || v.Made != 72 {
			t.Errorf("%s: %+v", dir, v)
		}
		run, err := Open(dir)
		must(t, err)
		a, err := run.Assess(context.Background(), test, nil)
		must(t, err)
		if got := a.String(); !strings.HasPrefix(got, want.scores) {
			t.Errorf("%s: %s, want %s", dir, got, want.scores)
		}
	}
}
