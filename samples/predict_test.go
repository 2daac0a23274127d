package samples_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

func predictor(t *testing.T, dtype tensor.DType, images samples.Images, batch int) *samples.SamplePredictor {
	t.Helper()
	host := tensor.NewHost(2)
	p, err := samples.NewSamplePredictor(host, dtype, images, batch, trial.Network)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		host.Close()
	})
	return p
}

// networkSample is a sample of the classifier after some steps.
func networkSample(t *testing.T, steps int) samples.Sample {
	t.Helper()
	session := trial.Classifier(t, langevin.SGLD{}, graph.LoadOptions{Seed: 11}, 1)
	trial.Advance(t, session, steps)
	return trial.CurrentSample(t, session, 0)
}

// TestPredictor compares with the network in float64, image by image, for batch sizes that do not
// divide their number.
func TestPredictor(t *testing.T) {
	drawn := []samples.Sample{networkSample(t, 3), networkSample(t, 40)}
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for _, c := range []struct{ images, batch int }{{37, 8}, {37, 37}, {37, 100}, {37, 1}, {1, 5}, {16, 8}} {
			t.Run(fmt.Sprintf("%v/%d by %d", dtype, c.images, c.batch), func(t *testing.T) {
				images := trial.PredictorImages(c.images)
				p := predictor(t, dtype, images, c.batch)
				if p.Classes() != trial.NetworkLabels || images.Len() != c.images {
					t.Fatalf("%d classes, %d images", p.Classes(), images.Len())
				}
				got := make([]float32, c.images*trial.NetworkLabels)
				var first []float32
				// The first sample is repeated last: batches then begin elsewhere.
				for _, sample := range []samples.Sample{drawn[0], drawn[1], drawn[1], drawn[0]} {
					if err := p.Predict(sample, got); err != nil {
						t.Fatal(err)
					}
					checkProbabilities(t, sample, images, got)
					if first == nil {
						first = append(first, got...)
					}
				}
				for i := range got {
					if got[i] != first[i] {
						t.Fatalf("probability %d is %v, before it was %v", i, got[i], first[i])
					}
				}
			})
		}
	}
}

func checkProbabilities(t *testing.T, s samples.Sample, images samples.Images, got []float32) {
	t.Helper()
	parameters := map[string][]float64{}
	for _, p := range s.Parameters {
		parameters[p.Name] = tensor.Convert[float64](p.Values)
	}
	for i := range images.Len() {
		sum := 0.0
		for k, want := range trial.SoftmaxOf(parameters, images.Pixels[i*trial.ImageSize:(i+1)*trial.ImageSize]) {
			v := float64(got[i*trial.NetworkLabels+k])
			if !(math.Abs(v-want) < 2e-5) {
				t.Fatalf("image %d, class %d: %v, want %v", i, k, v, want)
			}
			sum += v
		}
		if !(math.Abs(sum-1) < 4*0x1p-23) {
			t.Fatalf("image %d: the probabilities' sum is %v", i, sum)
		}
	}
}

func TestPredictRefuses(t *testing.T) {
	p := predictor(t, tensor.Float32, trial.PredictorImages(5), 2)
	good := networkSample(t, 1)
	capacity := make([]float32, 5*trial.NetworkLabels)
	for name, bad := range badSamples(good) {
		if err := p.Predict(bad, capacity); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, n := range []int{0, 5*trial.NetworkLabels - 1, 5*trial.NetworkLabels + 1} {
		if err := p.Predict(good, make([]float32, n)); err == nil {
			t.Errorf("room for %d probabilities: no error", n)
		}
	}
	if err := p.Predict(good, capacity); err != nil {
		t.Error(err)
	}
}

func TestNewPredictorRefuses(t *testing.T) {
	host := tensor.NewHost(1)
	defer host.Close()
	type asked struct {
		images  samples.Images
		batch   int
		network func(b *graph.Builder, x *graph.Node) *graph.Node
	}
	for name, change := range map[string]func(a *asked){
		"no images":               func(a *asked) { a.images.Pixels = nil },
		"half an image":           func(a *asked) { a.images.Pixels = a.images.Pixels[1:] },
		"images without height":   func(a *asked) { a.images.Height = 0 },
		"negative channels":       func(a *asked) { a.images.Channels, a.images.Height = -2, -5 },
		"a deviation of 0":        func(a *asked) { a.images.Std = []float64{0} },
		"an infinite deviation":   func(a *asked) { a.images.Std = []float64{math.Inf(1)} },
		"a mean that is a NaN":    func(a *asked) { a.images.Mean = []float64{math.NaN()} },
		"a batch of 0":            func(a *asked) { a.batch = 0 },
		"a negative batch":        func(a *asked) { a.batch = -3 },
		"an output of four axes":  func(a *asked) { a.network = func(_ *graph.Builder, x *graph.Node) *graph.Node { return x } },
		"an output of other rows": func(a *asked) { a.network = foldedNetwork },
		"an output of nothing":    func(a *asked) { a.network = func(*graph.Builder, *graph.Node) *graph.Node { return nil } },
		"a network for other images": func(a *asked) {
			a.images.Channels, a.images.Height = 1, trial.ImageHeight*trial.ImageChannels-1
			a.images.Pixels = a.images.Pixels[:(trial.ImageHeight*trial.ImageChannels-1)*trial.ImageWidth]
		},
	} {
		a := asked{trial.PredictorImages(6), 3, trial.Network}
		change(&a)
		if p, err := samples.NewSamplePredictor(host, tensor.Float32, a.images, a.batch, a.network); err == nil {
			t.Errorf("%s: no error", name)
			p.Close()
		}
	}
}

// foldedNetwork combines two images into one.
func foldedNetwork(b *graph.Builder, x *graph.Node) *graph.Node {
	shape := graph.ShapeOf(x)
	return b.Apply(op.ViewAs(1, shape.Elements()), x)
}
