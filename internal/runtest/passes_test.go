package runtest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
)

// The passes of Monte Carlo dropout differ, and all count.
func TestDropoutPasses(t *testing.T) {
	data := squares(t, 100, 4, 1)
	run := fit(t, bayes.Spec{Network: "mlp-8", Method: bayes.Dropout{Rate: 0.5}, Batch: 20, Epochs: 10, Samples: 4, Chains: 2}, trainOn(data))
	var passes [][]float32
	p, err := run.Predictions(context.Background(), data, func(probabilities []float32, weight float64) error {
		passes = append(passes, slices.Clone(probabilities))
		return nil
	})
	must(t, err)
	if len(passes) != 8 || p.Samples != 8 {
		t.Fatalf("%d passes, %d samples, want 8", len(passes), p.Samples)
	}
	for i := range passes {
		for j := range i {
			if slices.Equal(passes[i], passes[j]) {
				t.Errorf("passes %d and %d are the same", i, j)
			}
		}
	}
	again, err := run.Predictions(context.Background(), data, nil)
	if err != nil || !slices.Equal(again.Probabilities, p.Probabilities) {
		t.Errorf("predicted again, probabilities differ (%v)", err)
	}
	if strings.Count(summaryOf(t, run), "dropout") != 1 {
		t.Errorf("network %s, want one dropout layer", summaryOf(t, run))
	}
}

// summaryOf has the types of a network's layers.
func summaryOf(t *testing.T, run *bayes.Run) string {
	network, err := run.Network()
	must(t, err)
	var names []string
	for _, layer := range network {
		names = append(names, strings.ToLower(fmt.Sprintf("%T", layer)))
	}
	return strings.Join(names, " ")
}

// The gradient belongs to -log p(label) of the weighted average: a small step along it raises this
// value by the predicted amount, except at kinks.
func TestGradient(t *testing.T) {
	run, data := uneven(t), squares(t, 8, 4, 3)
	gradient, err := run.Gradient(context.Background(), data)
	must(t, err)
	loss := func(d *datasets.Dataset) []float64 {
		p, err := run.Predictions(context.Background(), d, nil)
		must(t, err)
		var all []float64
		for i, label := range d.Labels {
			all = append(all, -math.Log(p.Probabilities[i*4+int(label)]))
		}
		return all
	}
	up, down := *data, *data
	up.Images, down.Images = slices.Clone(data.Images), slices.Clone(data.Images)
	expected := make([]float64, 8)
	for i, pixel := range data.Images {
		if g := gradient[i]; pixel > 0 && pixel < 255 {
			if g > 0 {
				up.Images[i], down.Images[i] = pixel+1, pixel-1
			} else {
				up.Images[i], down.Images[i] = pixel-1, pixel+1
			}
			expected[i/(side*side)] += math.Abs(g) * 2 / 255
		}
	}
	most, least := loss(&up), loss(&down)
	for i := range most {
		if got := most[i] - least[i]; math.Abs(got-expected[i]) > 0.25*expected[i] {
			t.Errorf("image %d: the loss rises by %v, want %v", i, got, expected[i])
		}
	}
}
