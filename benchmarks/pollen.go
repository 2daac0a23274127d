package main

import (
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// training is a training step to be timed.
type training struct {
	network string
	batch   int
	sampler string // sgd, sgld or psgld
}

// images returns the channels and side of the network's images: MNIST's, or a small colour image's.
func (t training) images() (channels, side int) {
	if t.network == "cnn" || strings.HasPrefix(t.network, "resnet20-") {
		return 3, 32
	}
	return 1, 28
}

// moments returns the means and standard deviations of the channels' pixels.
func (t training) moments() (means, stds []float64) {
	channels, _ := t.images()
	return slices.Repeat([]float64{pixelMean}, channels), slices.Repeat([]float64{pixelStd}, channels)
}

// examples returns the size of the training set, which is noise.
func (t training) examples() int { return 10 * t.batch }

// Settings that all sides share; with this rate, training on noise stays finite.
const (
	rate        = 1e-3
	priorStd    = 0.3
	psgldAlpha  = 0.99
	psgldLambda = 1e-5
)

// pixelMean and pixelStd are MNIST's, for every channel of every network's images.
const (
	pixelMean = 0.1307
	pixelStd  = 0.3081
)

// pollen is a session of Pollen.
type pollen struct {
	device  tensor.Device
	session *graph.Session
}

func newPollen(t training, threads, chains int) (contestant, error) {
	return loadPollen(t, tensor.NewHost(threads), chains)
}

func loadPollen(t training, device tensor.Device, chains int) (contestant, error) {
	program, err := t.compile()
	if err != nil {
		return nil, err
	}
	p := &pollen{device: device}
	if p.session, err = program.Load(p.device, graph.LoadOptions{Seed: 1, Chains: chains}); err != nil {
		return nil, err
	}
	images, classes := t.fixedData(t.examples())
	if err := graph.Write(p.session, "images", 0, 0, images); err != nil {
		return nil, err
	}
	return p, graph.Write(p.session, "labels", 0, 0, classes)
}

func (t training) compile() (*graph.Program, error) {
	model, err := layers.New(t.network, 10)
	if err != nil {
		return nil, err
	}
	b := graph.New(tensor.Float32)
	channels, side := t.images()
	means, stds := t.moments()
	shape := tensor.Shape{t.examples(), channels, side, side}
	x, labels := op.Minibatch(b, op.Batch{Size: t.batch, Order: op.Shuffled}, shape, means, stds)
	loss := b.Apply(op.CrossEntropy{}, model.Apply(b, x), labels)
	switch t.sampler {
	case "sgd":
		parameters := b.Parameters()
		optimizers.Update(b, optimizers.SGD{}, parameters, b.Gradients(loss, parameters...), b.Table("rates", []float64{rate}))
	case "sgld":
		err = t.attach(b, langevin.SGLD{}, loss)
	case "psgld":
		err = t.attach(b, langevin.PSGLD{Alpha: psgldAlpha, Lambda: psgldLambda, Gamma: langevin.GammaNone}, loss)
	default:
		err = errors.Errorf("benchmarks: the sampler must be sgd, sgld or psgld, got %q", t.sampler)
	}
	if err != nil {
		return nil, err
	}
	return b.Compile()
}

func (t training) attach(b *graph.Builder, s langevin.Sampler, loss *graph.Node) error {
	posterior := langevin.Posterior{DataSize: t.examples(), Prior: langevin.Gaussian(priorStd)}
	return langevin.Attach(b, s, posterior, loss, []float64{posterior.StepSize(rate)}, []float64{1})
}

// fixedData is a data set of arbitrary pixels and labels.
func (t training) fixedData(examples int) (images []byte, labels []int32) {
	channels, side := t.images()
	images, labels = make([]byte, examples*channels*side*side), make([]int32, examples)
	state := uint32(1)
	for i := range images {
		state = state*1664525 + 1013904223
		images[i] = byte(state >> 24)
	}
	for i := range labels {
		labels[i] = int32(i % 10)
	}
	return images, labels
}

func (p *pollen) run(steps int) (float64, error) {
	return timed(func() error {
		for left := steps; left > 0; left -= graph.MetricRows {
			if err := p.session.Run(min(left, graph.MetricRows)); err != nil {
				return err
			}
		}
		return nil
	})
}

func (p *pollen) close() error {
	if err := p.session.Close(); err != nil {
		return err
	}
	return p.device.Close()
}
