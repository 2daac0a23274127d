package main

import (
	"cmp"
	"strconv"

	"github.com/pkg/errors"
	"gorgonia.org/gorgonia"
	dense "gorgonia.org/tensor"

	"github.com/pollen-ml/pollen/graph/stock"
	"github.com/pollen-ml/pollen/tensor"
)

// tape is the same network from Gorgonia's own ops, trained by its VanillaSolver, on its
// TapeMachine or on Pollen's machine.
type tape struct {
	machine    gorgonia.VM
	host       *tensor.Host // of Pollen's machine; nil with the TapeMachine, whose threads cannot be set
	solver     gorgonia.Solver
	parameters []gorgonia.ValueGrad
}

// plans are the networks: convolutions (filters, padding; 5x5 each, followed by ReLU and pooling)
// and the hidden widths.
var plans = map[string]struct {
	filters []int
	padding int
	hidden  []int
}{
	"lenet-small":     {[]int{10, 20}, 0, []int{50}},
	"lenet":           {[]int{20, 50}, 0, []int{500}},
	"mnist-64-64-256": {[]int{64, 64}, 2, []int{256}},
	"mlp-400-400":     {nil, 0, []int{400, 400}},
}

// tapeBuilder makes nodes and keeps the first error.
type tapeBuilder struct {
	graph      *gorgonia.ExprGraph
	parameters gorgonia.Nodes
	err        error
}

func (t *tapeBuilder) parameter(name string, shape ...int) *gorgonia.Node {
	n := gorgonia.NewTensor(t.graph, dense.Float32, len(shape), gorgonia.WithShape(shape...), gorgonia.WithName(name),
		gorgonia.WithInit(gorgonia.GlorotN(1)))
	t.parameters = append(t.parameters, n)
	return n
}

func (t *tapeBuilder) keep(n *gorgonia.Node, err error) *gorgonia.Node {
	if t.err == nil {
		t.err = err
	}
	if t.err != nil {
		return gorgonia.NewConstant(float32(0))
	}
	return n
}

// newTape returns the side whose machine open makes.
func newTape(w training, open func(g *gorgonia.ExprGraph, parameters gorgonia.Nodes) gorgonia.VM) (*tape, error) {
	plan, ok := plans[w.network]
	if !ok || w.sampler != "sgd" {
		return nil, absent{errors.Errorf("Gorgonia: no %s of %s here, only SGD", w.sampler, w.network)}
	}
	t := &tapeBuilder{graph: gorgonia.NewGraph()}
	batch := w.batch
	images, labels := w.fixedData(batch)
	pixels, targets := make([]float32, batch*28*28), make([]float32, batch*10)
	for i := range pixels {
		pixels[i] = (float32(images[i])/255 - 0.1307) / 0.3081
	}
	for i := range batch {
		targets[i*10+int(labels[i])] = 1
	}
	x := gorgonia.NewTensor(t.graph, dense.Float32, 4, gorgonia.WithShape(batch, 1, 28, 28), gorgonia.WithName("x"),
		gorgonia.WithValue(dense.New(dense.WithShape(batch, 1, 28, 28), dense.WithBacking(pixels))))
	y := gorgonia.NewMatrix(t.graph, dense.Float32, gorgonia.WithShape(batch, 10), gorgonia.WithName("y"),
		gorgonia.WithValue(dense.New(dense.WithShape(batch, 10), dense.WithBacking(targets))))
	h, channels, side := x, 1, 28
	for i, filters := range plan.filters {
		h = t.convolution(h, i, channels, filters, plan.padding)
		channels, side = filters, (side+2*plan.padding-4)/2
	}
	width := channels * side * side
	h = t.keep(gorgonia.Reshape(h, dense.Shape{batch, width}))
	for i, hidden := range plan.hidden {
		h = t.keep(gorgonia.Rectify(t.linear(h, "hidden"+strconv.Itoa(i), width, hidden)))
		width = hidden
	}
	logits := t.linear(h, "output", width, 10)
	loss := t.keep(gorgonia.LogSoftMax(logits))
	loss = t.keep(gorgonia.HadamardProd(loss, y))
	loss = t.keep(gorgonia.Neg(t.keep(gorgonia.Sum(loss))))
	loss = t.keep(gorgonia.Div(loss, gorgonia.NewConstant(float32(batch))))
	if t.err != nil {
		return nil, errors.Wrap(t.err, "benchmarks: Gorgonia")
	}
	if _, err := gorgonia.Grad(loss, t.parameters...); err != nil {
		return nil, errors.Wrap(err, "benchmarks: Gorgonia")
	}
	return &tape{
		machine:    open(t.graph, t.parameters),
		solver:     gorgonia.NewVanillaSolver(gorgonia.WithLearnRate(rate)),
		parameters: gorgonia.NodesToValueGrads(t.parameters),
	}, nil
}

func newTapeMachine(w training) (contestant, error) {
	t, err := newTape(w, func(g *gorgonia.ExprGraph, parameters gorgonia.Nodes) gorgonia.VM {
		return gorgonia.NewTapeMachine(g, gorgonia.BindDualValues(parameters...))
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

func newDropIn(w training, threads int) (contestant, error) {
	host := tensor.NewHost(threads)
	t, err := newTape(w, func(g *gorgonia.ExprGraph, parameters gorgonia.Nodes) gorgonia.VM {
		return stock.NewMachine(g, stock.Options{Device: host}, gorgonia.BindDualValues(parameters...))
	})
	if err != nil {
		host.Close()
		return nil, err
	}
	t.host = host
	return t, nil
}

// convolution is convolution, bias, ReLU and pooling.
func (t *tapeBuilder) convolution(x *gorgonia.Node, i, channels, filters, padding int) *gorgonia.Node {
	name := [...]string{"conv1", "conv2"}[i]
	w := t.parameter(name+".weight", filters, channels, 5, 5)
	bias := t.parameter(name+".bias", 1, filters, 1, 1)
	h := t.keep(gorgonia.Conv2d(x, w, dense.Shape{5, 5}, []int{padding, padding}, []int{1, 1}, []int{1, 1}))
	h = t.keep(gorgonia.BroadcastAdd(h, bias, nil, []byte{0, 2, 3}))
	h = t.keep(gorgonia.Rectify(h))
	return t.keep(gorgonia.MaxPool2D(h, dense.Shape{2, 2}, []int{0, 0}, []int{2, 2}))
}

func (t *tapeBuilder) linear(x *gorgonia.Node, name string, inputs, outputs int) *gorgonia.Node {
	h := t.keep(gorgonia.Mul(x, t.parameter(name+".weight", inputs, outputs)))
	return t.keep(gorgonia.BroadcastAdd(h, t.parameter(name+".bias", 1, outputs), nil, []byte{0}))
}

func (t *tape) run(steps int) (float64, error) {
	return timed(func() error {
		for range steps {
			if err := t.step(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (t *tape) step() error {
	if err := t.machine.RunAll(); err != nil {
		return errors.Wrap(err, "benchmarks: Gorgonia")
	}
	if err := t.solver.Step(t.parameters); err != nil {
		return errors.Wrap(err, "benchmarks: Gorgonia")
	}
	t.machine.Reset()
	return nil
}

func (t *tape) close() error {
	err := t.machine.Close()
	if t.host != nil {
		err = cmp.Or(err, t.host.Close())
	}
	return err
}
