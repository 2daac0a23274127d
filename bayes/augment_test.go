package bayes

import (
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/onnxtest"
	"github.com/pollen-ml/pollen/tensor"
)

// Images change in units of the training images, however a network of an ONNX file reads them. The
// pixels of these images are one standard deviation above the mean.
func TestAugmentForONNX(t *testing.T) {
	network := onnxtest.Backbone{Channels: 1, Side: side, Filters: 4}.Write(t)
	for _, input := range []string{"imagenet", "none", "bytes"} {
		for _, c := range []struct {
			augment   Augment
			low, high float64
		}{{Augment{Brightness: 0.5}, 0.5, 1.5}, {Augment{Contrast: 1}, 0.5, 2}, {Augment{Shift: 2}, 0, 1}} {
			spec := Spec{Network: network, Input: input, Method: methodOf(t, "adam"), Freeze: "none", Epochs: 1, Augment: &c.augment}
			tr, err := newTraining(spec, squares(t, 100, 4, 1), "", environmentOf(nil))
			must(t, err)
			mean, std, readMean, readStd := tr.mean[0], tr.std[0], tr.data.Mean[0], tr.data.Std[0]
			y := make([]float32, 100*side*side)
			b := graph.New(tensor.Float32)
			b.Output("y", tr.augment(b, b.Data("x", tensor.Float32, 100, 1, side, side)))
			must(t, b.OnHost(graph.LoadOptions{Chains: 1}, func(s *graph.Session) error {
				must(t, graph.Write(s, "x", 0, 0, slices.Repeat([]float32{float32((mean + std - readMean) / readStd)}, len(y))))
				must(t, s.Run(1))
				return graph.Read(s, "y", 0, 0, y)
			}))
			value := func(y float32) float64 { return (float64(y)*readStd + readMean - mean) / std }
			low, high, room := value(slices.Min(y)), value(slices.Max(y)), 0.1*(c.high-c.low)
			if math.Abs(low-c.low) > room || math.Abs(high-c.high) > room {
				t.Errorf("%s, %v: values are %v to %v, want %v to %v", input, c.augment, low, high, c.low, c.high)
			}
		}
	}
}
