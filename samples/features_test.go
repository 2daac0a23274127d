package samples_test

import (
	"math"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// TestFeatures compares features with the definition, and probabilities with a predictor without
// features, bit by bit.
func TestFeatures(t *testing.T) {
	const n = 37
	s, images := networkSample(t, 40), trial.PredictorImages(n)
	host := tensor.NewHost(2)
	defer host.Close()
	p, err := samples.NewFeaturePredictor(host, images, 8, trial.Network)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	plain := predictor(t, tensor.Float32, images, 8)
	got, want := make([]float32, n*trial.NetworkLabels), make([]float32, n*trial.NetworkLabels)
	for _, call := range []struct {
		p  *samples.SamplePredictor
		to []float32
	}{{p, got}, {plain, want}} {
		if err := call.p.Predict(s, call.to); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, want) {
		t.Error("features change probabilities")
	}
	logits := make([]float32, n*trial.NetworkLabels)
	if err := p.Logits(logits); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		row, sum := logits[i*trial.NetworkLabels:(i+1)*trial.NetworkLabels], 0.0
		for _, v := range row {
			sum += math.Exp(float64(v))
		}
		if v := math.Exp(float64(row[1])) / sum; math.Abs(v-float64(got[i*trial.NetworkLabels+1])) > 1e-6 {
			t.Errorf("image %d: the logits give the probability %v, want %v", i, v, got[i*trial.NetworkLabels+1])
		}
	}
	count := p.FeatureCount()
	if count != 2*trial.ImageChannels+trial.HiddenUnits {
		t.Fatalf("%d features, want moments of %d channels and %d units", count, trial.ImageChannels, trial.HiddenUnits)
	}
	features := make([]float32, n*count)
	if err := p.Features(0, features); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		// The units give the logits.
		output, bias := s.Parameters[2].Values, s.Parameters[3].Values
		logit := float64(bias[0])
		for j, v := range features[i*count+2*trial.ImageChannels : (i+1)*count] {
			logit += float64(v) * float64(output[j])
		}
		if math.Abs(logit-float64(logits[i*trial.NetworkLabels])) > 1e-5 {
			t.Errorf("image %d: the features of the last layer give the logit %v, want %v", i, logit, logits[i*trial.NetworkLabels])
		}
	}
	part := make([]float32, 5*count)
	if err := p.Features(20, part); err != nil || !slices.Equal(part, features[20*count:25*count]) {
		t.Errorf("rows 20 to 25 differ (%v)", err)
	}
	if p.Features(36, part) == nil || p.Features(0, part[1:]) == nil || plain.Features(0, part) == nil || plain.Logits(logits) == nil {
		t.Error("no error for rows that are not there")
	}
	checkEnsembleFeatures(t, host, s, images, features)
}

// checkEnsembleFeatures checks that the members of an ensemble have features of their own.
func checkEnsembleFeatures(t *testing.T, host tensor.Device, s samples.Sample, images samples.Images, want []float32) {
	t.Helper()
	c, err := samples.NewFeatureEnsemble(host, images, 8, 37, 2, trial.Network)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i, member := range []samples.Sample{networkSample(t, 3), s} {
		if err := c.Load(i, member); err != nil {
			t.Fatal(err)
		}
	}
	member := 0
	err = c.Predict(images, 1, func([]float32, float64) error {
		got := make([]float32, len(want))
		err := c.Features(member, 0, got)
		if slices.Equal(got, want) != (member == 1) {
			t.Errorf("member %d: the features are those of the second: %v", member, member != 1)
		}
		member++
		return err
	})
	if err != nil || c.FeatureCount() != len(want)/37 {
		t.Errorf("%d features (%v)", c.FeatureCount(), err)
	}
}

// TestFeaturesOfConvolutions: features are the moments of the image and of what the second layer
// reads, taken before dropout and once.
func TestFeaturesOfConvolutions(t *testing.T) {
	start := trial.Normal(func(int) float64 { return 0.2 })
	linear := func(b *graph.Builder, x *graph.Node) *graph.Node {
		h := b.Apply(op.Dropout{Rate: 0.5, Stream: b.Stream()}, b.Apply(op.Flatten(x), x), b.Header())
		weight := func(name string) *graph.Node {
			return b.Parameter(name, start, trial.NetworkLabels, graph.ShapeOf(h)[1])
		}
		return b.Apply(op.Add{}, b.Apply(op.MatMul{TransposeB: true}, h, weight("a")), b.Apply(op.MatMul{TransposeB: true}, h, weight("b")))
	}
	const filters = 5
	convolution := func(b *graph.Builder, x *graph.Node) *graph.Node {
		conv := op.Conv2D{Stride: op.Square(1), Dilation: op.Square(1)}
		return linear(b, b.Apply(op.ReLU{}, b.Apply(conv, x, b.Parameter("conv.weight", start, filters, trial.ImageChannels, 2, 2))))
	}
	host, images := tensor.NewHost(1), trial.PredictorImages(3)
	defer host.Close()
	wide, err := samples.NewFeaturePredictor(host, images, 3, convolution)
	if err != nil {
		t.Fatal(err)
	}
	defer wide.Close()
	if got, want := wide.FeatureCount(), 2*trial.ImageChannels+2*filters; got != want {
		t.Errorf("%d features, want %d: moments of the image and of the filters", got, want)
	}
	p, err := samples.NewFeaturePredictor(host, images, 3, linear)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	values := make([]float32, trial.NetworkLabels*trial.ImageSize)
	shape := tensor.Shape{trial.NetworkLabels, trial.ImageSize}
	s := samples.Sample{Weight: 1, Parameters: []samples.Parameter{{Name: "a", Shape: shape, Values: values}, {Name: "b", Shape: shape, Values: values}}}
	if err := p.Predict(s, make([]float32, 3*trial.NetworkLabels)); err != nil {
		t.Fatal(err)
	}
	features := make([]float32, 3*2*trial.ImageChannels)
	if err := p.Features(0, features); err != nil {
		t.Fatal(err)
	}
	positions := trial.ImageSize / trial.ImageChannels
	for i := range 3 {
		for c := range trial.ImageChannels {
			mean, square := 0.0, 0.0
			for _, pixel := range images.Pixels[i*trial.ImageSize+c*positions:][:positions] {
				v := (float64(pixel)/255 - trial.ImageMean) / trial.ImageSpread
				mean += v / float64(positions)
				square += v * v / float64(positions)
			}
			row := features[i*2*trial.ImageChannels:]
			if a, b := row[c], row[trial.ImageChannels+c]; math.Abs(float64(a)-mean) > 1e-5 || math.Abs(float64(b)-square) > 1e-5 {
				t.Errorf("image %d, channel %d: moments %v and %v, want %v and %v", i, c, a, b, mean, square)
			}
		}
	}
}
