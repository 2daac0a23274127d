package layers_test

import (
	"math"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// Ten steps of lenet-small, compiled, fused and with memory reused, give what the interpreter gives
// node by node.
func TestTrainingEqualsInterpreter(t *testing.T) {
	const batch, examples, steps = 10, 40, 10
	network, err := layers.New("lenet-small", 10)
	if err != nil {
		t.Fatal(err)
	}
	b := graph.New(tensor.Float64)
	x, labels := op.Minibatch(b, op.Batch{Size: batch, Order: op.Shuffled}, tensor.Shape{examples, 1, 28, 28}, []float64{0.5}, []float64{0.3})
	loss := b.Apply(op.CrossEntropy{}, network.Apply(b, x), labels)
	parameters := b.Parameters()
	optimizers.Update(b, optimizers.Momentum{Decay: 0.9}, parameters, b.Gradients(loss, parameters...), b.Table("rates", []float64{0.05, 0.02}))
	b.Record("loss", loss)
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	host := tensor.NewHost(2)
	defer host.Close()
	session, err := program.Load(host, graph.LoadOptions{Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	oracle, err := graph.Interpret(b, graph.LoadOptions{Seed: 5})
	if err != nil {
		t.Fatal(err)
	}
	pixels, classes := pattern(examples*28*28), make([]int32, examples)
	for i, v := range pattern(examples) {
		classes[i] = int32(v % 10)
	}
	if err := graph.Write(session, "images", 0, 0, pixels); err != nil {
		t.Fatal(err)
	}
	if err := graph.Write(session, "labels", 0, 0, classes); err != nil {
		t.Fatal(err)
	}
	in, err := oracle.Input("images")
	if err != nil {
		t.Fatal(err)
	}
	copy(in.Data().([]byte), pixels)
	if in, err = oracle.Input("labels"); err != nil {
		t.Fatal(err)
	}
	copy(in.Data().([]int32), classes)
	if err := session.Run(steps); err != nil {
		t.Fatal(err)
	}
	for range steps {
		if err := oracle.Step(); err != nil {
			t.Fatal(err)
		}
	}
	for _, parameter := range program.Parameters() {
		got := make([]float64, parameter.Shape.Elements())
		if err := graph.Read(session, parameter.Name, 0, 0, got); err != nil {
			t.Fatal(err)
		}
		in, err := oracle.Input(parameter.Name)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range in.Data().([]float64) {
			if math.Abs(got[i]-want) > 1e-12*max(1, math.Abs(want)) || math.IsNaN(got[i]) {
				t.Fatalf("%s[%d] is %v after %d steps, the interpreter has %v", parameter.Name, i, got[i], steps, want)
			}
		}
	}
	if n := testing.AllocsPerRun(5, func() {
		if err := session.Run(1); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("a step allocates %v times", n)
	}
}

// pattern is pseudo-random bytes.
func pattern(n int) []byte {
	bytes := make([]byte, n)
	state := uint32(1)
	for i := range bytes {
		state = state*1664525 + 1013904223
		bytes[i] = byte(state >> 24)
	}
	return bytes
}
