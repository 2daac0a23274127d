package runtest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/internal/letters"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/tensor"
)

// side is the height and width of the images of squares.
const side = letters.Side

var squares = letters.Squares

// trainOn are splits with only training data.
func trainOn(data *datasets.Dataset) *datasets.Splits { return &datasets.Splits{Train: data} }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// with is a device of the given number of threads, which the test closes.
func with(t testing.TB, threads int) bayes.Option {
	host := tensor.NewHost(threads)
	t.Cleanup(func() { host.Close() })
	return bayes.WithDevice(host)
}

// methodOf parses a method.
func methodOf(t testing.TB, text string) bayes.Method {
	t.Helper()
	m, err := bayes.ParseMethod(text)
	must(t, err)
	return m
}

// fit makes a run in a new folder.
func fit(t testing.TB, spec bayes.Spec, data *datasets.Splits, options ...bayes.Option) *bayes.Run {
	t.Helper()
	run, err := bayes.Fit(context.Background(), spec, data, filepath.Join(t.TempDir(), "run"), options...)
	must(t, err)
	return run
}

// stopAt ends a context once the given number of steps is made.
func stopAt(steps int) (context.Context, bayes.Option) {
	ctx, stop := context.WithCancel(context.Background())
	return ctx, bayes.WithObserver(func(e bayes.Event) {
		if e.Task == "fit" && e.Done >= steps {
			stop()
		}
	})
}

// contents are the files of a run's folder that are the same whenever the run is made: samples,
// states, metrics and checkpoint.
func contents(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, pattern := range []string{"samples/*", "states/*", rundir.MetricsFile, rundir.CheckpointFile} {
		files, err := filepath.Glob(filepath.Join(dir, pattern))
		must(t, err)
		for _, file := range files {
			name, err := filepath.Rel(dir, file)
			must(t, err)
			content, err := os.ReadFile(file)
			must(t, err)
			all[name] = content
		}
	}
	return all
}

// same fails the test where two runs differ in a bit.
func same(t testing.TB, what string, want, got map[string][]byte) {
	t.Helper()
	for name, content := range want {
		if other, ok := got[name]; !ok {
			t.Errorf("%s: no %s", what, name)
		} else if !bytes.Equal(content, other) {
			t.Errorf("%s: %s differs", what, name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s is not to be there", what, name)
		}
	}
}

// wantError fails the test unless the error has all these texts.
func wantError(t testing.TB, what string, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: error %v, want one that says %q", what, err, text)
		}
	}
}

// wantDamaged fails the test unless the error is Damaged and names the file.
func wantDamaged(t testing.TB, err error, path string) {
	t.Helper()
	var at *bayes.DamagedError
	if !errors.As(err, &at) || at.File != path || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v (%T), want that %s is damaged", err, err, path)
	}
}

// resealed returns a changed text with the right checksum.
func resealed(t testing.TB, text string) string {
	t.Helper()
	at := strings.LastIndex(text, `"sha256": "`) + len(`"sha256": "`)
	content := []byte(text[:at] + checksum.Blank + text[at+len(checksum.Blank):])
	_, err := checksum.Fill(content, len(content))
	must(t, err)
	return string(content)
}

// wantInvalid is wantError for mistakes of the caller.
func wantInvalid(t testing.TB, what string, err error, texts ...string) {
	t.Helper()
	wantError(t, what, err, texts...)
	if !errors.As(err, new(*bayes.InvalidError)) {
		t.Errorf("%s: the error %v (%T) is not Invalid", what, err, err)
	}
}

func glyphs(t *testing.T) *datasets.Splits {
	t.Helper()
	splits, err := datasets.Open("glyphs", datasets.Options{Offline: true})
	must(t, err)
	return splits
}

// stripes are images of 8x8 bytes, striped across or along.
func stripes(n int) (images []byte, labels []int32) {
	for i := range n {
		labels = append(labels, int32(i%2))
		for pixel := range 64 {
			row, column := pixel/8, pixel%8
			images = append(images, byte(255*((row*(i%2)+column*(1-i%2))/2%2)))
		}
	}
	return images, labels
}
