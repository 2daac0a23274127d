package samples_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

func ensemble(t *testing.T, batch, capacity int, drawn []samples.Sample,
	network func(b *graph.Builder, x *graph.Node) *graph.Node,
) *samples.EnsemblePredictor {
	t.Helper()
	host := tensor.NewHost(2)
	c, err := samples.NewEnsemblePredictor(host, trial.PredictorImages(1), batch, capacity, len(drawn), network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Close()
		host.Close()
	})
	for i, s := range drawn {
		if err := c.Load(i, s); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// TestEnsemble compares with a SamplePredictor, bit by bit, whatever was predicted before.
func TestEnsemble(t *testing.T) {
	drawn := []samples.Sample{networkSample(t, 3), networkSample(t, 40), networkSample(t, 20)}
	for i := range drawn {
		drawn[i].Weight = float64(i + 1)
	}
	images := trial.PredictorImages(37)
	for _, members := range []int{1, 3} {
		for _, shape := range [][2]int{{1, 40}, {8, 37}, {40, 40}, {64, 40}, {7, 38}} {
			single := predictor(t, tensor.Float32, images, shape[0])
			want := make([][]float32, members)
			for i := range want {
				want[i] = make([]float32, 37*trial.NetworkLabels)
				if err := single.Predict(drawn[i], want[i]); err != nil {
					t.Fatal(err)
				}
			}
			c := ensemble(t, shape[0], shape[1], drawn[:members], trial.Network)
			if c.Classes() != trial.NetworkLabels || c.Capacity() < shape[1] {
				t.Fatalf("%d classes, room for %d", c.Classes(), c.Capacity())
			}
			for _, part := range [][2]int{{0, 37}, {5, 6}, {0, 16}, {30, 37}, {0, 37}} {
				from, to := part[0], part[1]
				member := 0
				err := c.Predict(images.Slice(from, to), 1, func(p []float32, weight float64) error {
					if !slices.Equal(p, want[member][from*trial.NetworkLabels:to*trial.NetworkLabels]) || weight != float64(member+1) {
						t.Errorf("%v: member %d of weight %v differs for images %d to %d", shape, member, weight, from, to)
					}
					member++
					return nil
				})
				if err != nil || member != members {
					t.Fatalf("%d members were asked: %v", member, err)
				}
			}
		}
	}
}

// TestEnsemblePasses: passes of a network that draws random numbers differ from each other and
// between members, and are the same when the call is repeated.
func TestEnsemblePasses(t *testing.T) {
	s := networkSample(t, 40)
	dropping := func(b *graph.Builder, x *graph.Node) *graph.Node {
		return b.Apply(op.Dropout{Rate: 0.5, Stream: b.Stream()}, trial.Network(b, x), b.Header())
	}
	c := ensemble(t, 4, 8, []samples.Sample{s, s}, dropping)
	images := trial.PredictorImages(9)
	ask := func(from, to, passes int) []string {
		var seen []string
		err := c.Predict(images.Slice(from, to), passes, func(p []float32, _ float64) error {
			seen = append(seen, fmt.Sprint(p))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return seen
	}
	first := ask(0, 8, 3)
	different := slices.Compact(slices.Sorted(slices.Values(first)))
	if len(first) != 6 || len(different) != 6 {
		t.Errorf("%d predictions of 3 passes of 2 members, %d different ones", len(first), len(different))
	}
	ask(8, 9, 2)
	if again := ask(0, 8, 3); !slices.Equal(again, first) {
		t.Error("the same pixels have other probabilities")
	}
}

func TestEnsembleErrors(t *testing.T) {
	host := tensor.NewHost(1)
	defer host.Close()
	for _, bad := range [][3]int{{0, 1, 1}, {1, 0, 1}, {1, 1, 0}, {1, 1, 1 << 20}} {
		if _, err := samples.NewEnsemblePredictor(host, trial.PredictorImages(1), bad[0], bad[1], bad[2], trial.Network); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
	flat := trial.PredictorImages(1)
	flat.Height = 0
	if _, err := samples.NewEnsemblePredictor(host, flat, 1, 1, 1, trial.Network); err == nil {
		t.Error("images of no height: no error")
	}
	s := networkSample(t, 3)
	c := ensemble(t, 2, 4, []samples.Sample{s}, trial.Network)
	none := func([]float32, float64) error { return nil }
	for _, bad := range []struct {
		bytes, passes int
		want          string
	}{
		{0, 1, "whole images"}, {trial.ImageSize - 1, 1, "whole images"}, {5 * trial.ImageSize, 1, "must have 1 to 4 images"},
		{trial.ImageSize, 0, "must have 1 to 4 images"},
	} {
		images := trial.PredictorImages(1)
		images.Pixels = make([]byte, bad.bytes)
		if err := c.Predict(images, bad.passes, none); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if c.Load(1, s) == nil || c.Load(-1, s) == nil || c.Load(0, samples.Sample{}) == nil {
		t.Error("a member beyond the last: no error")
	}
}
