package runtest

import (
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/onnxtest"
)

// countFeatures counts the images that a frozen network computes features of.
func countFeatures(n *int) bayes.Option {
	return bayes.WithObserver(func(e bayes.Event) {
		if e.Task == "features" {
			*n += e.Images
		}
	})
}

// TestFeatureCache: results with cached features have the same bits, and features are computed
// again if anything that they depend on changes, or if they are damaged.
func TestFeatureCache(t *testing.T) {
	data, dir, n := splitsOf(t), filepath.Join(t.TempDir(), "features"), 0
	device, count := with(t, 2), countFeatures(&n)
	spec := func(change func(s *bayes.Spec)) bayes.Spec {
		s := pretrained(t, onnxtest.Backbone{Metadata: map[string]string{"is": "the same"}}) // a new copy of the file
		s.Epochs = 120
		change(&s)
		return s
	}
	unchanged := func(*bayes.Spec) {}
	samplesOf := func(run *bayes.Run) (all []string) {
		files, err := run.Samples()
		must(t, err)
		for _, file := range files {
			content, err := os.ReadFile(file)
			must(t, err)
			all = append(all, string(content))
		}
		return all
	}
	want := samplesOf(fit(t, spec(unchanged), data, device, count))
	computed := n
	check := func(name string, change func(s *bayes.Spec), same bool, images int) *bayes.Run {
		t.Helper()
		n = 0
		run := fit(t, spec(change), data, device, count, bayes.WithFeatureCache(dir))
		if n != images {
			t.Errorf("%s: features of %d images computed, want %d", name, n, images)
		}
		if got := samplesOf(run); same && !reflect.DeepEqual(got, want) {
			t.Errorf("%s: samples differ from those without a cache", name)
		}
		return run
	}
	check("first", unchanged, true, computed)
	run := check("second", unchanged, true, 0)
	check("another input", func(s *bayes.Spec) { s.Input = "inception" }, false, computed)
	check("another network", func(s *bayes.Spec) {
		s.Network = onnxtest.Backbone{Channels: 1, Side: side, Filters: 13}.Write(t)
	}, false, computed)
	check("other data in the file", func(s *bayes.Spec) {
		s.Network = onnxtest.Backbone{Channels: 1, Side: side, Filters: 12, Metadata: map[string]string{"is": "another"}}.Write(t)
	}, true, computed)

	// Predictions share the directory; one changed image is a single one to compute.
	options := []bayes.Option{device, count, bayes.WithFeatureCache(dir)}
	predict := func(data []byte) ([]bayes.Answer, int) {
		opened, err := bayes.Open(run.Dir(), options...)
		must(t, err)
		images := splitsOf(t).Test
		copy(images.Images, data)
		n = 0
		answers, err := opened.Predict(context.Background(), images)
		must(t, err)
		return answers, n
	}
	first, computedTest := predict(nil)
	again, none := predict(nil)
	if computedTest != data.Test.Len() || none != 0 || !reflect.DeepEqual(first, again) {
		t.Errorf("predictions computed features of %d and %d images, want %d and 0, and equal answers", computedTest, none, data.Test.Len())
	}
	if _, one := predict([]byte{255 - data.Test.Images[0]}); one != 1 {
		t.Errorf("one changed image: features of %d images computed", one)
	}

	must(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		must(t, err)
		for i := range content[len(content)/2:] {
			content[len(content)/2+i]++
		}
		return os.WriteFile(path, content, 0o600)
	}))
	n = 0
	got := samplesOf(fit(t, spec(unchanged), data, device, count, bayes.WithFeatureCache(dir)))
	if n == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("damaged: features of %d images computed, and samples are the same: %t", n, reflect.DeepEqual(got, want))
	}
}

// TestFeatureCacheThatCannotBe: a fit that cannot write the cache has a remark, and continues.
func TestFeatureCacheThatCannotBe(t *testing.T) {
	dir, remarks := filepath.Join(t.TempDir(), "file"), ""
	must(t, os.WriteFile(dir, nil, 0o600))
	spec := pretrained(t, onnxtest.Backbone{})
	spec.Epochs = 120
	fit(t, spec, splitsOf(t), with(t, 1), bayes.WithFeatureCache(dir), bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark + "\n" }))
	if !strings.Contains(remarks, "features cannot be cached") || !strings.Contains(remarks, "XDG_CACHE_HOME") {
		t.Errorf("remarks are %q", remarks)
	}
}

// TestFeaturesOneByOne: on the host, features of a few images are computed one by one, and have the
// bits that they have in a batch.
func TestFeaturesOneByOne(t *testing.T) {
	data := splitsOf(t)
	spec := pretrained(t, onnxtest.Backbone{})
	spec.Epochs = 120
	dir := fit(t, spec, data, with(t, 1)).Dir()
	answers := func(images int) (all []bayes.Answer) {
		run, err := bayes.Open(dir, with(t, 2)) // without the features that are in memory
		must(t, err)
		p, err := run.Predictor(2)
		must(t, err)
		defer func() { must(t, p.Close()) }()
		size := images * data.Test.ImageSize()
		for pixels := data.Test.Images; len(pixels) > 0; pixels = pixels[size:] {
			some, err := p.Answer(t.Context(), pixels[:size])
			must(t, err)
			all = append(all, some...)
		}
		return all
	}
	want := answers(data.Test.Len())
	for _, images := range []int{1, 5} {
		if got := answers(images); !reflect.DeepEqual(got, want) {
			t.Errorf("%d images at a time: answers differ from those of %d at a time", images, data.Test.Len())
		}
	}
}
