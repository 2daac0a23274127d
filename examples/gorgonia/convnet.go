package main

import (
	"time"

	"github.com/pkg/errors"
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/datasets"
)

var dt = tensor.Float32

// sizes are the sizes of the network and its dropout probabilities. Gorgonia's example has 32, 64
// and 128 filters, 625 hidden units, and the probabilities 0.2, 0.2, 0.2 and 0.55.
type sizes struct {
	batch, hidden int
	filters       [3]int
	dropout       [4]float64
}

// convnet is the network of Gorgonia's examples/convnet.
type convnet struct {
	g                  *G.ExprGraph
	x, y               *G.Node
	w0, w1, w2, w3, w4 *G.Node // the weights of each layer
	logits, cost       *G.Node
}

func (m *convnet) learnables() G.Nodes { return G.Nodes{m.w0, m.w1, m.w2, m.w3, m.w4} }

func newConvNet(s sizes) *convnet {
	g := G.NewGraph()
	weights := func(name string, shape ...int) *G.Node {
		return G.NewTensor(g, dt, len(shape), G.WithShape(shape...), G.WithName(name), G.WithInit(G.GlorotN(1.0)))
	}
	m := &convnet{
		g:  g,
		x:  G.NewTensor(g, dt, 4, G.WithShape(s.batch, 1, 28, 28), G.WithName("x")),
		y:  G.NewMatrix(g, dt, G.WithShape(s.batch, 10), G.WithName("y")),
		w0: weights("w0", s.filters[0], 1, 3, 3),
		w1: weights("w1", s.filters[1], s.filters[0], 3, 3),
		w2: weights("w2", s.filters[2], s.filters[1], 3, 3),
		w3: weights("w3", s.filters[2]*3*3, s.hidden),
		w4: weights("w4", s.hidden, 10),
	}
	h := m.x
	for i, w := range []*G.Node{m.w0, m.w1, m.w2} {
		h = G.Must(G.Conv2d(h, w, tensor.Shape{3, 3}, []int{1, 1}, []int{1, 1}, []int{1, 1}))
		h = G.Must(G.Rectify(h))
		h = G.Must(G.MaxPool2D(h, tensor.Shape{2, 2}, []int{0, 0}, []int{2, 2}))
		if i == 2 {
			h = G.Must(G.Reshape(h, tensor.Shape{s.batch, s.filters[2] * 3 * 3}))
		}
		h = dropout(h, s.dropout[i])
	}
	h = G.Must(G.Rectify(G.Must(G.Mul(h, m.w3))))
	m.logits = G.Must(G.Mul(dropout(h, s.dropout[3]), m.w4))
	out := G.Must(G.SoftMax(m.logits))

	// The example uses Log(out * y), which "is used to test the stabilization function": it is
	// infinite where the one-hot label is 0. This is the cost that its comment calls the correct
	// one.
	losses := G.Must(G.HadamardProd(G.Must(G.Neg(G.Must(G.Log(out)))), m.y))
	m.cost = G.Must(G.Mean(losses))
	return m
}

// dropout returns x itself at probability 0, where Gorgonia's Dropout would have a gradient of 0.
func dropout(x *G.Node, probability float64) *G.Node {
	if probability == 0 {
		return x
	}
	return G.Must(G.Dropout(x, probability))
}

// values returns copies of all weights.
func (m *convnet) values() (all []G.Value, err error) {
	for _, w := range m.learnables() {
		v, err := G.CloneValue(w.Value())
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// train makes steps of RMSProp. It returns the cost of each step, and the mean seconds per step
// without the first, which allocates memory.
func (m *convnet) train(vm G.VM, s sizes, data *datasets.Dataset, steps int) (costs []float64, seconds float64, err error) {
	solver := G.NewRMSPropSolver(G.WithBatchSize(float64(s.batch)))
	var start time.Time
	for step := range steps {
		if err := m.let(s, data, step); err != nil {
			return nil, 0, err
		}
		if err := vm.RunAll(); err != nil {
			return nil, 0, errors.Wrapf(err, "step %d", step)
		}
		if err := solver.Step(G.NodesToValueGrads(m.learnables())); err != nil {
			return nil, 0, errors.Wrapf(err, "step %d", step)
		}
		costs = append(costs, float64(m.cost.Value().Data().(float32)))
		vm.Reset()
		if step == 0 {
			start = time.Now()
		}
	}
	return costs, time.Since(start).Seconds() / float64(max(1, steps-1)), nil
}

// let sets x and y to the images and one-hot labels of a step's minibatch.
func (m *convnet) let(s sizes, data *datasets.Dataset, step int) error {
	images, labels := make([]float32, s.batch*28*28), make([]float32, s.batch*10)
	for i := range s.batch {
		example := (step*s.batch + i) % data.Len()
		for j, p := range data.Images[example*28*28 : (example+1)*28*28] {
			images[i*28*28+j] = float32(p) / 255
		}
		labels[i*10+int(data.Labels[example])] = 1
	}
	if err := G.Let(m.x, tensor.New(tensor.WithShape(s.batch, 1, 28, 28), tensor.WithBacking(images))); err != nil {
		return err
	}
	return G.Let(m.y, tensor.New(tensor.WithShape(s.batch, 10), tensor.WithBacking(labels)))
}
