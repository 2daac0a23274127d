package main

import (
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// examples is the size of the data set of noise that is trained on.
const examples = 10 * batch

// pollen is a session of ours.
type pollen struct {
	host    *tensor.Host
	session *graph.Session
}

func newPollen(network string, noise bool) (contestant, error) {
	model, err := layers.New(network, 10)
	if err != nil {
		return nil, err
	}
	b := graph.New(tensor.Float32)
	x, labels := op.Minibatch(b, op.Batch{Size: batch, Shuffled: true}, tensor.Shape{examples, 1, 28, 28}, 0.1307, 0.3081)
	loss := b.Apply(op.CrossEntropy{}, model.Apply(b, x), labels)
	if noise {
		posterior := langevin.Posterior{DataSize: examples, Prior: langevin.Gaussian(0.3)}
		err = langevin.Attach(b, langevin.SGLD{}, posterior, loss, []float64{posterior.StepSize(rate)}, []float64{1})
	} else {
		parameters := b.Parameters()
		optimizers.Update(b, optimizers.SGD{}, parameters, b.Gradients(loss, parameters...), b.Table("rates", []float64{rate}))
	}
	if err != nil {
		return nil, err
	}
	program, err := b.Compile()
	if err != nil {
		return nil, err
	}
	p := &pollen{host: tensor.NewHost(0)}
	if p.session, err = program.Load(p.host, graph.LoadOptions{Seed: 1}); err != nil {
		return nil, err
	}
	images, classes := fixedData()
	if err := graph.Write(p.session, "images", 0, 0, images); err != nil {
		return nil, err
	}
	return p, graph.Write(p.session, "labels", 0, 0, classes)
}

// rate keeps training on noise finite.
const rate = 1e-3

// fixedData is a data set of arbitrary pixels and labels.
func fixedData() (images, labels []byte) {
	images, labels = make([]byte, examples*28*28), make([]byte, examples)
	state := uint32(1)
	for i := range images {
		state = state*1664525 + 1013904223
		images[i] = byte(state >> 24)
	}
	for i := range labels {
		labels[i] = byte(i % 10)
	}
	return images, labels
}

func (p *pollen) step() error { return p.session.Run(1) }

func (p *pollen) close() error {
	if err := p.session.Close(); err != nil {
		return err
	}
	return p.host.Close()
}
