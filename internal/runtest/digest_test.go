package runtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
)

func digestOf(t *testing.T, dir string, options ...bayes.Option) string {
	t.Helper()
	run, err := bayes.Open(dir, options...)
	must(t, err)
	digest, err := run.Digest()
	must(t, err)
	return digest
}

// listedDigest computes a run's digest as docs/formats.md describes it, from the index.
func listedDigest(t *testing.T, dir string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(dir, index.File))
	must(t, err)
	sums := map[string]string{}
	for line := range strings.Lines(string(content)) {
		var l struct{ File, SHA256 string }
		must(t, json.Unmarshal([]byte(line), &l))
		if l.File != rundir.SplitsFile { // it lists the images, and no result depends on it
			sums[l.File] = l.SHA256
		}
	}
	var lines []string
	for name, sum := range sums {
		lines = append(lines, name+"\x00"+sum+"  "+name+"\n")
	}
	slices.Sort(lines)
	hash := sha256.New()
	for _, line := range lines {
		_, line, _ = strings.Cut(line, "\x00")
		hash.Write([]byte(line))
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// TestDigest: the digest covers the files that the index lists. A copy has the same one, and so
// does a resumed run. Every change that affects a result changes the digest, even if all checksums
// are right.
func TestDigest(t *testing.T) {
	data := &datasets.Splits{Train: squares(t, 100, 3, 1), Validation: squares(t, 60, 3, 2)}
	spec := bayes.Spec{Network: "mlp-4", Method: langevin.SGLD{}, Batch: 20, Epochs: 4, Samples: 3, Chains: 2}
	run := fit(t, spec, data)
	want, err := run.Digest()
	must(t, err)
	if listed := listedDigest(t, run.Dir()); want != listed {
		t.Errorf("digest %s, want that of the index, %s", want, listed)
	}
	copied := func() string {
		dir := filepath.Join(t.TempDir(), "copy")
		must(t, os.CopyFS(dir, os.DirFS(run.Dir())))
		return dir
	}
	if got := digestOf(t, copied()); got != want {
		t.Errorf("a copy's digest is %s, want %s", got, want)
	}
	ctx, stopped := stopAt(10)
	dir := filepath.Join(t.TempDir(), "stopped")
	if _, err := bayes.Fit(ctx, spec, data, dir, stopped); err == nil {
		t.Fatal("the run did not stop")
	}
	unfinished := digestOf(t, dir)
	resumed, err := bayes.Resume(context.Background(), dir, data)
	must(t, err)
	if got, err := resumed.Digest(); err != nil || got == unfinished || got != want {
		t.Errorf("the digest of a resumed run is %s (%v), of the unfinished one %s, want %s", got, err, unfinished, want)
	}

	seen := map[string]string{want: "the run"}
	distinct := func(what, digest string) {
		t.Helper()
		if other, twice := seen[digest]; twice {
			t.Errorf("%s has the digest of %s", what, other)
		}
		seen[digest] = what
	}
	other := spec
	other.Seed = 7
	distinct("another seed", digestOf(t, fit(t, other, data).Dir()))

	// Files of other runs, with their own right checksums.
	dir = copied()
	foreign, err := filepath.Glob(filepath.Join(dir, "samples", "*"))
	must(t, err)
	must(t, os.Remove(foreign[0]))
	if _, err := run.With().Digest(); err != nil {
		t.Fatal(err)
	}
	damagedRun, err := bayes.Open(dir)
	must(t, err)
	_, err = damagedRun.Digest()
	wantDamaged(t, err, foreign[0])
	distinct("a run without one of its samples", digestOf(t, dir, bayes.WithoutDamaged()))

	dir = copied()
	content, err := os.ReadFile(filepath.Join(dir, rundir.ManifestFile))
	must(t, err)
	changed := resealed(t, strings.Replace(string(content), `"name": "`, `"name": "x`, 1))
	must(t, os.WriteFile(filepath.Join(dir, rundir.ManifestFile), []byte(changed), 0o644))
	distinct("another manifest", digestOf(t, dir))

	dir = copied()
	must(t, os.Remove(filepath.Join(dir, rundir.CalibrationFile)))
	damagedRun, err = bayes.Open(dir)
	must(t, err)
	_, err = damagedRun.Digest()
	wantDamaged(t, err, filepath.Join(dir, rundir.CalibrationFile))
}

// A calibration that is not listed is used, so the digest includes it.
func TestDigestCountsWhatIsNotListed(t *testing.T) {
	run := fit(t, bayes.Spec{Network: "mlp-4", Method: langevin.SGLD{}, Batch: 20, Epochs: 2, Samples: 1}, trainOn(squares(t, 100, 3, 1)))
	before, err := run.Digest()
	must(t, err)
	x, err := os.ReadFile(filepath.Join(run.Dir(), index.File))
	must(t, err)
	must(t, run.Calibrate(context.Background(), squares(t, 60, 3, 2)))
	calibrated, err := run.Digest()
	must(t, err)
	must(t, os.WriteFile(filepath.Join(run.Dir(), index.File), x, 0o644))
	unlisted, err := run.Digest()
	must(t, err)
	if calibrated == before || unlisted != calibrated {
		t.Errorf("digests %s before, %s calibrated, %s not listed: the last two must be the same, and differ from the first", before, calibrated, unlisted)
	}
}

// The digest of a gathered run depends on its parts' contents, copied or not.
func TestDigestOfParts(t *testing.T) {
	data, place := squares(t, 100, 3, 1), t.TempDir()
	var parts []string
	for i := range 2 {
		run, err := bayes.Fit(context.Background(), chainsFrom(i, 1), trainOn(data), filepath.Join(place, fmt.Sprint("part", i)))
		must(t, err)
		parts = append(parts, run.Dir())
	}
	run, err := bayes.Gather(filepath.Join(place, "all"), parts)
	must(t, err)
	before, err := run.Digest()
	must(t, err)
	other := chainsFrom(1, 1)
	other.Epochs = 5 // some samples have the same names
	must(t, os.RemoveAll(parts[1]))
	_, err = bayes.Fit(context.Background(), other, trainOn(data), parts[1])
	must(t, err)
	after, err := run.Digest()
	must(t, err)
	if before == after {
		t.Error("another part does not change the digest")
	}
	must(t, os.RemoveAll(parts[1]))
	if _, err := run.Digest(); !errors.As(err, new(*bayes.NotARunError)) {
		t.Errorf("without a part: %v", err)
	}
}

// TestDigestOfAPredictor: a predictor has the digest of the samples that it has loaded, also
// while the run writes more.
func TestDigestOfAPredictor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run")
	data := &datasets.Splits{Train: squares(t, 100, 3, 1), Validation: squares(t, 60, 3, 2)}
	ended := make(chan error, 1)
	go func() {
		_, err := bayes.Fit(context.Background(), bayes.Spec{Network: "mlp-4", Method: langevin.SGLD{}, Batch: 10, Epochs: 16, Samples: 80}, data, dir)
		ended <- err
	}()
	digests := map[int]string{} // by the number of samples
	for running := true; running; {
		select {
		case err := <-ended:
			must(t, err)
			running = false
		default:
		}
		run, err := bayes.Open(dir)
		if err != nil {
			continue // it has no manifest yet
		}
		p, err := run.Predictor(8)
		if err != nil {
			if !strings.Contains(err.Error(), "has no samples yet") {
				t.Fatal(err)
			}
			continue
		}
		// After the last sample the run gets diagnostics, a detector and a calibration, which count
		// as well. If it has none yet, the predictor had none when it was loaded.
		_, err = os.Stat(filepath.Join(dir, "diagnostics.json"))
		if before := digests[p.Samples()]; before != "" && before != p.Digest() && os.IsNotExist(err) {
			t.Fatalf("%d samples have the digests %s and %s", p.Samples(), before, p.Digest())
		}
		digests[p.Samples()] = p.Digest()
		must(t, p.Close())
		if !running && p.Digest() != digestOf(t, dir) {
			t.Errorf("the digest at the end is %s, want that of the run, %s", p.Digest(), digestOf(t, dir))
		}
	}
	seen := map[string]int{}
	for n, digest := range digests {
		if other, twice := seen[digest]; twice {
			t.Errorf("%d and %d samples have the same digest", n, other)
		}
		seen[digest] = n
	}
	t.Logf("%d numbers of samples", len(digests))
}
