package graph_test

import (
	"testing"

	"gorgonia.org/gorgonia"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// The compiled program and the interpreter train a network in the same way: 10 steps, each with its
// minibatch, gradients and updates.
func TestProgramEqualsInterpreter(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		m := noisyCNN(dtype)
		oracle := m.interpret(t, graph.LoadOptions{Seed: 4, FirstChain: 1})
		s := m.load(t, newHost(t, 2), graph.LoadOptions{Seed: 4, Chains: 2})
		// Rounding differs where the compiler fuses, and ten steps of training let it grow.
		tol := optest.Tol{Abs: 200 * optest.Epsilon(dtype), Rel: 200 * optest.Epsilon(dtype)}
		for step := range 10 {
			must(t, oracle.Step())
			must(t, s.Run(1))
			loss, err := oracle.Value(m.loss)
			must(t, err)
			if err := optest.Close([]float64{s.Metric(1, "loss", uint64(step))}, loss, tol); err != nil {
				t.Errorf("%v, step %d: loss: %v", dtype, step, err)
			}
		}
		first, last := s.Metric(1, "loss", 0), s.Metric(1, "loss", 9)
		if first == last {
			t.Errorf("%v: the loss stays %v", dtype, first)
		}
		for _, w := range s.Program().Parameters() {
			got := make([]float32, w.Shape.Elements())
			must(t, s.ReadFloats(w.Name, 1, got))
			want, err := oracle.Input(w.Name)
			must(t, err)
			if err := optest.Close(values(got), values(want.Data()), optest.Tol{Abs: 1e-5, Rel: 1e-5}); err != nil {
				t.Errorf("%v: %s: %v", dtype, w.Name, err)
			}
		}
		if n := oracle.Steps(); n != s.Steps() {
			t.Errorf("%v: the interpreter counts %d steps, the session %d", dtype, n, s.Steps())
		}
	}
}

// values returns numbers of either type as float64.
func values(data any) []float64 {
	switch data := data.(type) {
	case []float64:
		return data
	case []float32:
		wide := make([]float64, len(data))
		for i, v := range data {
			wide[i] = float64(v)
		}
		return wide
	}
	return nil
}

// Gorgonia's TapeMachine runs our graphs too, and finds the same loss and gradients.
func TestTapeMachineAgrees(t *testing.T) {
	const batch = 6
	b := graph.New(tensor.Float64)
	x, labels := b.Data("x", tensor.Float64, batch, 2, 9, 9), b.Data("labels", tensor.Int32, batch)
	pixels, classes := make([]float64, batch*cnnPixels), []int32{0, 4, 2, 1, 3, 2}
	random.Normals(pixels, 0, random.Address{Seed: 1, Stream: 9})
	loss := b.Apply(op.CrossEntropy{}, cnnLogits(b, x), labels)
	parameters := b.Parameters()
	gradients := b.Gradients(loss, parameters...)
	b.Record("loss", loss)
	for i, w := range parameters {
		b.Output("gradient of "+w.Name(), gradients[i])
	}
	host := newHost(t, 1)
	s := load(t, b, host, graph.LoadOptions{Seed: 6})
	must(t, graph.Write(s, "x", 0, 0, pixels))
	must(t, graph.Write(s, "labels", 0, 0, classes))
	must(t, s.Run(1))

	let := func(n *graph.Node, values any) {
		t.Helper()
		var err error
		switch v := values.(type) {
		case []float64:
			d, e := tensor.ToDense(graph.ShapeOf(n), v)
			must(t, e)
			err = gorgonia.Let(n, d)
		case []int32:
			d, e := tensor.ToDense(graph.ShapeOf(n), v)
			must(t, e)
			err = gorgonia.Let(n, d)
		}
		must(t, err)
	}
	let(x, pixels)
	let(labels, classes)
	for _, w := range parameters {
		let(w, read(t, s, w.Name(), 0, graph.ShapeOf(w).Elements()))
	}
	var machineLoss gorgonia.Value
	gorgonia.Read(loss, &machineLoss)
	machineGradients := make([]gorgonia.Value, len(gradients))
	for i, g := range gradients {
		gorgonia.Read(g, &machineGradients[i])
	}
	// The header is an input that nothing here reads.
	header, err := tensor.ToDense(tensor.Shape{3}, []uint64{0, 0, 0})
	must(t, err)
	must(t, gorgonia.Let(b.Header(), header))
	machine := gorgonia.NewTapeMachine(b.ExprGraph())
	defer machine.Close()
	must(t, machine.RunAll())

	tol := optest.Tol{Abs: 1e-13, Rel: 1e-12}
	if err := optest.Close([]float64{machineLoss.Data().(float64)}, []float64{s.Metric(0, "loss", 0)}, tol); err != nil {
		t.Error("loss:", err)
	}
	for i, w := range parameters {
		got := values(machineGradients[i].Data())
		if err := optest.Close(got, read(t, s, "gradient of "+w.Name(), 0, len(got)), tol); err != nil {
			t.Errorf("gradient of %s: %v", w.Name(), err)
		}
	}
}

func TestInterpreterErrors(t *testing.T) {
	b := graph.New(tensor.Float64)
	x := b.State("x", nil, 3)
	y := b.Apply(op.ReLU{}, x)
	labels := b.Data("labels", tensor.Int32, 3)
	p, err := graph.Interpret(b, graph.LoadOptions{})
	must(t, err)
	_, err = p.Input("y")
	wantError(t, "an unknown input", err, `"y"`)
	_, err = p.Value(y)
	wantError(t, "a value before the first step", err, "Step was not called")
	must(t, p.Step())
	_, err = p.Value(labels)
	wantError(t, "a value of integers", err, "must hold floats")
	_, err = p.Value(graph.New(tensor.Float64).State("x", nil, 3))
	wantError(t, "a node of another graph", err, "not in this graph")
	got, err := p.Value(y)
	must(t, err)
	sameBits(t, "y", got, []float64{0, 0, 0})
	b.Apply(op.ReLU{}, b.State("later", nil, 3))
	wantError(t, "an input made later", p.Step(), "later")
	b.Apply(op.ReLU{}, nil)
	if _, err := graph.Interpret(b, graph.LoadOptions{}); err == nil || err != b.Err() {
		t.Errorf("interpreter of a graph with an error: got %v, want %v", err, b.Err())
	}
}
