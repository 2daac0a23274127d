package langevin_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

func predictorImages(n int) langevin.Images {
	return langevin.Images{
		Pixels: someBytes(n*imageSize, 256, 3), Channels: imageChannels, Height: imageHeight, Width: imageWidth,
		Mean: []float64{imageMean}, Deviation: []float64{imageSpread},
	}
}

func predictor(t *testing.T, dtype tensor.DType, images langevin.Images, batch int) *langevin.Predictor {
	t.Helper()
	host := tensor.NewHost(2)
	p, err := langevin.NewPredictor(host, dtype, images, batch, network)
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
func networkSample(t *testing.T, steps int) langevin.Sample {
	t.Helper()
	session := classifier(t, rows()[0], graph.LoadOptions{Seed: 11}, 1)
	advance(t, session, steps)
	return take(t, session, 0, 0)
}

// TestPredictor compares with the network in float64, image by image, for batches that do not divide their number.
func TestPredictor(t *testing.T) {
	samples := []langevin.Sample{networkSample(t, 3), networkSample(t, 40)}
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for _, c := range []struct{ images, batch int }{{37, 8}, {37, 37}, {37, 100}, {37, 1}, {1, 5}, {16, 8}} {
			t.Run(fmt.Sprintf("%v/%d by %d", dtype, c.images, c.batch), func(t *testing.T) {
				images := predictorImages(c.images)
				p := predictor(t, dtype, images, c.batch)
				if p.Classes() != networkLabels || images.Len() != c.images {
					t.Fatalf("%d classes, %d images", p.Classes(), images.Len())
				}
				got := make([]float32, c.images*networkLabels)
				var first []float32
				// The first sample comes again last: batches then begin elsewhere.
				for _, sample := range []langevin.Sample{samples[0], samples[1], samples[1], samples[0]} {
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

func checkProbabilities(t *testing.T, s langevin.Sample, images langevin.Images, got []float32) {
	t.Helper()
	parameters := map[string][]float64{}
	for _, p := range s.Parameters {
		parameters[p.Name] = wide(p.Values)
	}
	for i := range images.Len() {
		sum := 0.0
		for k, want := range softmaxOf(parameters, images.Pixels[i*imageSize:(i+1)*imageSize]) {
			v := float64(got[i*networkLabels+k])
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
	p := predictor(t, tensor.Float32, predictorImages(5), 2)
	good := networkSample(t, 1)
	room := make([]float32, 5*networkLabels)
	for name, bad := range badSamples(good) {
		if err := p.Predict(bad, room); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, n := range []int{0, 5*networkLabels - 1, 5*networkLabels + 1} {
		if err := p.Predict(good, make([]float32, n)); err == nil {
			t.Errorf("room for %d probabilities: no error", n)
		}
	}
	if err := p.Predict(good, room); err != nil {
		t.Error(err)
	}
}

func TestNewPredictorRefuses(t *testing.T) {
	host := tensor.NewHost(1)
	defer host.Close()
	type asked struct {
		images  langevin.Images
		batch   int
		network func(b *graph.Builder, x *graph.Node) *graph.Node
	}
	for name, change := range map[string]func(a *asked){
		"no images":               func(a *asked) { a.images.Pixels = nil },
		"half an image":           func(a *asked) { a.images.Pixels = a.images.Pixels[1:] },
		"images without height":   func(a *asked) { a.images.Height = 0 },
		"negative channels":       func(a *asked) { a.images.Channels, a.images.Height = -2, -5 },
		"a deviation of 0":        func(a *asked) { a.images.Deviation = []float64{0} },
		"an infinite deviation":   func(a *asked) { a.images.Deviation = []float64{math.Inf(1)} },
		"a mean that is a NaN":    func(a *asked) { a.images.Mean = []float64{math.NaN()} },
		"a batch of 0":            func(a *asked) { a.batch = 0 },
		"a negative batch":        func(a *asked) { a.batch = -3 },
		"an output of four axes":  func(a *asked) { a.network = func(_ *graph.Builder, x *graph.Node) *graph.Node { return x } },
		"an output of other rows": func(a *asked) { a.network = foldedNetwork },
		"an output of nothing":    func(a *asked) { a.network = func(*graph.Builder, *graph.Node) *graph.Node { return nil } },
		"a network for other images": func(a *asked) {
			a.images.Channels, a.images.Height = 1, imageHeight*imageChannels-1
			a.images.Pixels = a.images.Pixels[:(imageHeight*imageChannels-1)*imageWidth]
		},
	} {
		a := asked{predictorImages(6), 3, network}
		change(&a)
		if p, err := langevin.NewPredictor(host, tensor.Float32, a.images, a.batch, a.network); err == nil {
			t.Errorf("%s: no error", name)
			p.Close()
		}
	}
}

// foldedNetwork takes two images for one.
func foldedNetwork(b *graph.Builder, x *graph.Node) *graph.Node {
	shape := graph.ShapeOf(x)
	return b.Apply(op.ViewAs(1, shape.Elements()), x)
}
