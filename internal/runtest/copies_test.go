package runtest

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/onnxtest"
	"github.com/pollen-ml/pollen/samples"
)

// mirrored returns squares that are their own mirror images.
func mirrored(t *testing.T, n int) *datasets.Dataset {
	data := squares(t, n, 4, 1)
	data.Images = slices.Clone(data.Images)
	for i := range n {
		for row := range slices.Chunk(data.Image(i), side) {
			for x := range side / 2 {
				row[x] = row[side-1-x]
			}
		}
	}
	return data
}

// sampledValues returns the values of all samples of a run.
func sampledValues(t *testing.T, run *bayes.Run) (values []float32) {
	files, err := run.Samples()
	must(t, err)
	for _, file := range files {
		s, err := samples.ReadSample(file)
		must(t, err)
		for _, p := range s.Parameters {
			values = append(values, p.Values...)
		}
	}
	return values
}

// TestCopiesOfUnchangedImages: if the changes leave the images as they are, the posterior of a head
// on copies is the posterior without them. A chain on all data makes the same moves, and has the
// same temperatures.
func TestCopiesOfUnchangedImages(t *testing.T) {
	data := trainOn(mirrored(t, 60))
	spec := pretrained(t, onnxtest.Backbone{})
	spec.Method, spec.Epochs, spec.Samples = methodOf(t, "mala"), 80, 20
	plain := fit(t, spec, data, with(t, 1))
	must(t, spec.Set("augment", "flip,copies=3"))
	remarks := ""
	copied := fit(t, spec, data, with(t, 1), bayes.WithObserver(func(e bayes.Event) { remarks += e.Remark }))
	if !strings.Contains(remarks, "3 copies of each image changed at random (flip,copies=3)") {
		t.Errorf("remarks %q have no number of copies", remarks)
	}
	want, got := sampledValues(t, plain), sampledValues(t, copied)
	for i := range want {
		if !(math.Abs(float64(want[i]-got[i])) < 1e-4) {
			t.Fatalf("value %d of the samples is %v with copies, %v without", i, got[i], want[i])
		}
	}
	one, err := plain.Diagnostics()
	must(t, err)
	other, err := copied.Diagnostics()
	must(t, err)
	for _, c := range []struct {
		what      string
		want, got diagnostics.Number
		room      diagnostics.Number
	}{
		{"temperature", one.Temperatures[0].Configurational, other.Temperatures[0].Configurational, 1e-3},
		{"temperature of predictions", one.Predictions.Value, other.Predictions.Value, 0.1},
		{"temperature of predictions by determination", one.Determination.Value, other.Determination.Value, 0.1},
	} {
		if !(max(c.got-c.want, c.want-c.got) < c.room*c.want) {
			t.Errorf("%s is %v with copies, %v without", c.what, c.got, c.want)
		}
	}
}

// TestCopies: a run on changed copies has other samples, can be stopped and resumed, and a chain is
// the same on its own. Other kinds of methods accept copies, too.
func TestCopies(t *testing.T) {
	data := splitsOf(t)
	spec := pretrained(t, onnxtest.Backbone{})
	plain := fit(t, spec, data, with(t, 1))
	must(t, spec.Set("augment", "flip,shift=2"))
	whole := fit(t, spec, data, with(t, 1))
	if got := whole.Manifest().Spec.Augment.Copies; got != 8 {
		t.Errorf("there are %d copies by default, want 8", got)
	}
	if slices.Equal(sampledValues(t, plain), sampledValues(t, whole)) {
		t.Error("augmentation changes no sample")
	}
	ctx, stop := stopAt(40)
	dir := filepath.Join(t.TempDir(), "stopped")
	if _, err := bayes.Fit(ctx, spec, data, dir, stop, with(t, 1)); err == nil {
		t.Fatal("the run was not stopped")
	}
	resumed, err := bayes.Resume(context.Background(), dir, data, with(t, 1))
	must(t, err)
	same(t, "resumed", contents(t, whole.Dir()), contents(t, resumed.Dir()))
	for _, method := range []string{"adam", "sgnht", "matched-friction", "laplace", "bbb", "auto"} {
		spec.Method, spec.Epochs, spec.Chains, spec.Samples = methodOf(t, method), 4, 1, 2
		if method == "adam" {
			spec.Samples = 0
		}
		if method == "auto" {
			spec.Epochs = 1500
		}
		run := fit(t, spec, data, with(t, 1))
		p, err := run.Predictions(context.Background(), data.Test, nil)
		if err != nil || p.Samples == 0 {
			t.Errorf("%s: predictions of %+v samples: %v", method, p, err)
		}
	}
}

func TestCopiesAreRefused(t *testing.T) {
	head := pretrained(t, onnxtest.Backbone{})
	head.Method, head.Epochs = methodOf(t, "sgld"), 10
	tuned := head
	tuned.Freeze = "none"
	for want, c := range map[string]struct {
		spec bayes.Spec
		text string
	}{
		"augment: copies must be 1 to 1000 for a head on a frozen network, and 0 for others, got 3":                           {tuned, "flip,copies=3"},
		"augment: copies must be 1 to 1000 for a head on a frozen network, and 0 for others, got 2":                           {bayes.Spec{}, "flip,copies=2"},
		"augment: copies must be 1 to 1000 for a head on a frozen network, and 0 for others, got -1":                          {head, "flip,copies=-1"},
		"augment: copies must be 1 to 1000 for a head on a frozen network, and 0 for others, got 1001":                        {head, "flip,copies=1001"},
		"augment: one of flip, shift, rotation, zoom, contrast, brightness and erase must be set":                             {head, "copies=5"},
		"augment cannot be combined with temperatures or an anchor, which need epochs of unchanged images":                    {withAnchor(head), "flip"},
		"augment cannot be combined with an anchor, which is the gradient of all data, which must be a function of the param": {withAnchor(tuned), "flip"},
	} {
		must(t, c.spec.Set("augment", c.text))
		_, err := c.spec.Resolve()
		wantInvalid(t, c.text, err, want)
	}
}

func withAnchor(s bayes.Spec) bayes.Spec {
	s.Anchor = 1
	return s
}
