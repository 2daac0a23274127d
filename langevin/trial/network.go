package trial

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// The network of these tests: images of 5 x 7 pixels in two channels, one hidden layer with ReLU,
// four classes.
const (
	ImageChannels, ImageHeight, ImageWidth = 2, 5, 7

	ImageSize     = ImageChannels * ImageHeight * ImageWidth
	HiddenUnits   = 9
	NetworkLabels = 4
	ImageMean     = 0.4
	ImageSpread   = 0.3
)

// Network maps images to logits. Its parameters are hidden.weight [9 70], hidden.bias [9],
// output.weight [4 9] and output.bias [4].
func Network(b *graph.Builder, x *graph.Node) *graph.Node {
	start := Normal(func(int) float64 { return 0.2 })
	h := b.Apply(op.Flatten(x), x)
	h = b.Apply(op.MatMul{TransposeB: true}, h, b.Parameter("hidden.weight", start, HiddenUnits, ImageSize))
	h = b.Apply(op.ReLU{}, b.Apply(op.BiasAdd{}, h, b.Parameter("hidden.bias", start, HiddenUnits)))
	h = b.Apply(op.MatMul{TransposeB: true}, h, b.Parameter("output.weight", start, NetworkLabels, HiddenUnits))
	return b.Apply(op.BiasAdd{}, h, b.Parameter("output.bias", start, NetworkLabels))
}

// SoftmaxOf computes the network's probabilities for one image in float64.
func SoftmaxOf(parameters map[string][]float64, pixels []byte) []float64 {
	hidden := make([]float64, HiddenUnits)
	for k := range hidden {
		hidden[k] = parameters["hidden.bias"][k]
		for i, v := range pixels {
			hidden[k] += parameters["hidden.weight"][k*ImageSize+i] * (float64(v)/255 - ImageMean) / ImageSpread
		}
		hidden[k] = math.Max(0, hidden[k])
	}
	p, total := make([]float64, NetworkLabels), 0.0
	for k := range p {
		logit := parameters["output.bias"][k]
		for i, v := range hidden {
			logit += parameters["output.weight"][k*HiddenUnits+i] * v
		}
		p[k] = math.Exp(logit)
		total += p[k]
	}
	for k := range p {
		p[k] /= total
	}
	return p
}

// SomeBytes returns n bytes below bound that depend only on the stream.
func SomeBytes(n, bound int, stream uint16) []byte {
	words, data := make([]uint32, n), make([]byte, n)
	random.Bits(words, 0, random.Address{Seed: 5, Stream: stream})
	for i, word := range words {
		data[i] = byte(word >> 16 % uint32(bound))
	}
	return data
}

// SomeLabels returns n labels of the network's classes that depend only on the stream.
func SomeLabels(n int, stream uint16) []int32 {
	labels := make([]int32, n)
	for i, v := range SomeBytes(n, NetworkLabels, stream) {
		labels[i] = int32(v)
	}
	return labels
}

// TrainingImages is the number of images that the classifier learns from.
const TrainingImages = 60

// Classifier loads a session that samples the network's posterior with the sampler, on shuffled
// minibatches of 16 of 60 images.
func Classifier(t *testing.T, sampler langevin.Sampler, o graph.LoadOptions, threads int) *graph.Session {
	t.Helper()
	b := graph.New(tensor.Float32)
	images := tensor.Shape{TrainingImages, ImageChannels, ImageHeight, ImageWidth}
	x, labels := op.Minibatch(b, op.Batch{Size: 16, Order: op.Shuffled}, images, []float64{ImageMean}, []float64{ImageSpread})
	loss := b.Apply(op.CrossEntropy{}, Network(b, x), labels)
	posterior := langevin.Posterior{
		DataSize: TrainingImages, Prior: langevin.Gaussian(1),
		Layers: map[string]langevin.Prior{"output": langevin.Laplace(0.5), "output.bias": langevin.StudentT(4, 1)},
	}
	if err := langevin.Attach(b, sampler, posterior, loss, []float64{1e-3, 2e-3, 5e-4}, []float64{1, 0.5, 1}); err != nil {
		t.Fatal(err)
	}
	session := Load(t, b, o, threads)
	if err := graph.Write(session, "images", 0, 0, SomeBytes(TrainingImages*ImageSize, 256, 1)); err != nil {
		t.Fatal(err)
	}
	if err := graph.Write(session, "labels", 0, 0, SomeLabels(TrainingImages, 2)); err != nil {
		t.Fatal(err)
	}
	return session
}

// PredictorImages returns n images for the network.
func PredictorImages(n int) samples.Images {
	return samples.Images{
		Pixels: SomeBytes(n*ImageSize, 256, 3), Channels: ImageChannels, Height: ImageHeight, Width: ImageWidth,
		Mean: []float64{ImageMean}, Std: []float64{ImageSpread},
	}
}
