package langevin_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// The network of these tests: images of 5 x 7 pixels in two channels, one hidden layer with ReLU, four classes.
const (
	imageChannels, imageHeight, imageWidth = 2, 5, 7

	imageSize     = imageChannels * imageHeight * imageWidth
	hiddenUnits   = 9
	networkLabels = 4
	imageMean     = 0.4
	imageSpread   = 0.3
)

// network maps images to logits: hidden.weight [9 70], hidden.bias [9], output.weight [4 9], output.bias [4].
func network(b *graph.Builder, x *graph.Node) *graph.Node {
	start := normal(func(int) float64 { return 0.2 })
	h := b.Apply(op.Flatten(x), x)
	h = b.Apply(op.MatMul{TransposeB: true}, h, b.Parameter("hidden.weight", start, hiddenUnits, imageSize))
	h = b.Apply(op.ReLU{}, b.Apply(op.BiasAdd{}, h, b.Parameter("hidden.bias", start, hiddenUnits)))
	h = b.Apply(op.MatMul{TransposeB: true}, h, b.Parameter("output.weight", start, networkLabels, hiddenUnits))
	return b.Apply(op.BiasAdd{}, h, b.Parameter("output.bias", start, networkLabels))
}

// softmaxOf is the network on one image, in float64.
func softmaxOf(parameters map[string][]float64, pixels []byte) []float64 {
	hidden := make([]float64, hiddenUnits)
	for k := range hidden {
		hidden[k] = parameters["hidden.bias"][k]
		for i, v := range pixels {
			hidden[k] += parameters["hidden.weight"][k*imageSize+i] * (float64(v)/255 - imageMean) / imageSpread
		}
		hidden[k] = math.Max(0, hidden[k])
	}
	p, total := make([]float64, networkLabels), 0.0
	for k := range p {
		logit := parameters["output.bias"][k]
		for i, v := range hidden {
			logit += parameters["output.weight"][k*hiddenUnits+i] * v
		}
		p[k] = math.Exp(logit)
		total += p[k]
	}
	for k := range p {
		p[k] /= total
	}
	return p
}

// someLabels are labels that depend on the stream only.
func someLabels(n int, stream uint16) []int32 {
	labels := make([]int32, n)
	for i, v := range someBytes(n, networkLabels, stream) {
		labels[i] = int32(v)
	}
	return labels
}

// someBytes are bytes below bound that depend on the stream alone.
func someBytes(n, bound int, stream uint16) []byte {
	words, data := make([]uint32, n), make([]byte, n)
	random.Bits(words, 0, random.Address{Seed: 5, Stream: stream})
	for i, word := range words {
		data[i] = byte(word >> 16 % uint32(bound))
	}
	return data
}

const trainingImages = 60

// classifier is the network's posterior, on shuffled minibatches of 16 of 60 images, as sampled by a row's sampler.
func classifier(t *testing.T, row row, o graph.LoadOptions, threads int) *graph.Session {
	t.Helper()
	b := graph.New(tensor.Float32)
	images := tensor.Shape{trainingImages, imageChannels, imageHeight, imageWidth}
	x, labels := op.Minibatch(b, op.Batch{Size: 16, Shuffled: true}, images, []float64{imageMean}, []float64{imageSpread})
	loss := b.Apply(op.CrossEntropy{}, network(b, x), labels)
	posterior := langevin.Posterior{
		DataSize: trainingImages, Prior: langevin.Gaussian(1),
		Layers: map[string]langevin.Prior{"output": langevin.Laplace(0.5), "output.bias": langevin.StudentT(4, 1)},
	}
	if err := langevin.Attach(b, row.sampler, posterior, loss, []float64{1e-3, 2e-3, 5e-4}, []float64{1, 0.5, 1}); err != nil {
		t.Fatal(err)
	}
	session := load(t, b, o, threads)
	if err := graph.Write(session, "images", 0, 0, someBytes(trainingImages*imageSize, 256, 1)); err != nil {
		t.Fatal(err)
	}
	if err := graph.Write(session, "labels", 0, 0, someLabels(trainingImages, 2)); err != nil {
		t.Fatal(err)
	}
	return session
}
