package runtest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/samples"
)

// copied returns a copy of a run after a change.
func copied(t testing.TB, run *bayes.Run, change func(dir string)) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	must(t, os.CopyFS(dir, os.DirFS(run.Dir())))
	change(dir)
	return dir
}

// Missing, foreign and exchanged files are errors that name them, and left out only on request.
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
		v, err := bayes.Verify(dir)
		must(t, err)
		if !slices.ContainsFunc(v.Damaged, func(d *bayes.DamagedError) bool { return d.File == path }) {
			t.Errorf("%s: %+v does not name %s", what, v.Damaged, path)
		}
		run, err := bayes.Open(dir)
		must(t, err)
		_, err = run.Predictions(context.Background(), data.Train, nil)
		if what == "renamed" {
			wantError(t, what, err, "chain0000")
		} else {
			wantDamaged(t, err, path)
		}
		run = run.With(bayes.WithoutDamaged())
		p, err := run.Predictions(context.Background(), data.Train, nil)
		must(t, err)
		if p.Samples != c.left || !slices.Contains(run.LeftOut(), path) {
			t.Errorf("%s: %d samples, left out %v, want %d", what, p.Samples, run.LeftOut(), c.left)
		}
	}
}

// A lost sample is an error when the run is resumed. The run then records that it continued
// without the sample.
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
		_, err := bayes.Resume(context.Background(), dir, data)
		wantDamaged(t, err, filepath.Join(dir, name))
		for range 2 {
			run, err := bayes.Resume(context.Background(), dir, data, bayes.WithoutDamaged())
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
		v, err := bayes.Verify(dir)
		must(t, err)
		if len(v.Damaged) > 0 || strings.Contains(strings.Join(v.Notes, "; "), "the run continued without "+name) != (out != nil) {
			t.Errorf("%s: %+v", what, v)
		}
	}
}

// The runs of testdata were made by
//
//	pollen fit --data glyphs --model mlp-1 --batch 1000 --epochs 4 --method psgld --chains 2
//	      --samples 2 --validation 0.1 --folder plain
//	pollen fit --data glyphs --model mlp-1 --batch 1000 --epochs 4 --method sghmc --burn-in 1
//	      --chains 2 --samples 12 --keep 4 --validation 0.1 --folder kept
//
// They open, and score to the digit what they scored then.
func TestFormatOpens(t *testing.T) {
	test := glyphs(t).Test
	for dir, want := range map[string]struct {
		samples int
		scores  string
	}{
		"testdata/plain": {4, "accuracy 0.2592, NLL 2.0566, Brier 0.8209, ECE 0.1178"},
		"testdata/kept":  {6, "accuracy 0.2720, NLL 2.0352, Brier 0.8091, ECE 0.1401"},
	} {
		v, err := bayes.Verify(dir)
		must(t, err)
		if len(v.Damaged) > 0 || v.Samples != want.samples || v.Expected != want.samples || !v.Resumable || v.Made != 72 {
			t.Errorf("%s: %+v", dir, v)
		}
		run, err := bayes.Open(dir)
		must(t, err)
		a, err := run.Assess(context.Background(), test, nil)
		must(t, err)
		if got := a.String(); !strings.HasPrefix(got, want.scores) {
			t.Errorf("%s: %s, want %s", dir, got, want.scores)
		}
	}
}

// A run of another format is refused with the reason, before its checksum is looked at.
func TestOtherFormats(t *testing.T) {
	for _, change := range [][2]string{
		{`"format": 1`, `"format": 3`}, {`"format": 1`, `"format": 99`}, {`"format": 1,`, ``}, {`"std": [`, `"deviation": [`},
	} {
		dir := filepath.Join(t.TempDir(), "run")
		must(t, os.CopyFS(dir, os.DirFS("testdata/plain")))
		path := filepath.Join(dir, rundir.ManifestFile)
		must(t, os.WriteFile(path, []byte(resealed(t, strings.Replace(readFile(t, path), change[0], change[1], 1))), 0o644))
		_, err := bayes.Open(dir)
		wantDamaged(t, err, path)
		wantError(t, change[1], err, "made by a version of Pollen from before its formats were reset")
	}
}
