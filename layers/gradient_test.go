package layers

import (
	"math"
	"reflect"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// TestGradients trains nothing: it compares the gradients of compiled networks with the
// interpreter's and with finite differences of the loss.
func TestGradients(t *testing.T) {
	input := tensor.Shape{3, 7, 5}
	networks := map[string]Sequential{
		"identity shortcut": {
			Conv2D{Filters: 4, Kernel: 3, Padding: 1},
			Residual{Body: Sequential{Conv2D{Filters: 4, Kernel: 3, Padding: 1, NoBias: true}, Conv2D{Filters: 4, Kernel: 1}}},
			Flatten{}, Linear{Outputs: 3, Weight: Glorot{}, Bias: Normal{1}},
		},
		"projected shortcut": {
			Residual{
				Body:     Sequential{Conv2D{Filters: 5, Kernel: 3, Stride: 2, Padding: 1}, ReLU{}, Conv2D{Filters: 5, Kernel: 3, Padding: 1}},
				Shortcut: Sequential{Conv2D{Filters: 5, Kernel: 1, Stride: 2, Weight: Orthogonal{}}},
			},
			ReLU{}, Flatten{}, Linear{Outputs: 3, NoBias: true},
		},
		"normalisations": {
			Conv2D{Filters: 4, Kernel: 3}, GroupNorm{Groups: 2}, FilterResponseNorm{}, SiLU{},
			Conv2D{Filters: 4, Kernel: 3, Padding: 1}, FilterResponseNorm{NoThreshold: true}, Tanh{}, Flatten{}, Linear{Outputs: 3},
		},
		"activations": {
			Conv2D{Filters: 4, Kernel: 3, Dilation: 2}, Tanh{}, AveragePool{Window: 2, Stride: 1, Padding: 1}, ELU{}, MaxPool{Window: 2, Stride: 1},
			Conv2D{Filters: 3, Kernel: 1}, SiLU{}, GlobalAveragePool{},
			Linear{Outputs: 4}, Sigmoid{}, Linear{Outputs: 5}, ELU{Alpha: .3},
			Linear{Outputs: 4}, Softsign{}, Linear{Outputs: 4}, HardSwish{}, GELU{}, Linear{Outputs: 3}, Softplus{},
		},
	}
	for _, k := range layerKinds { // activations and other layers without attributes
		if of := reflect.TypeOf(k.zero); of.Kind() == reflect.Struct && of.NumField() == 0 {
			networks[k.name] = Sequential{Conv2D{Filters: 4, Kernel: 3}, k.zero.(Layer), Flatten{}, Linear{Outputs: 3}}
		}
	}
	for name, network := range networks {
		t.Run(name, func(t *testing.T) { checkGradients(t, network, input) })
	}
}

func checkGradients(t *testing.T, network Layer, input tensor.Shape) {
	b, x, logits := build(graph.Training, network, input)
	loss := b.Apply(op.CrossEntropy{}, logits, b.Data("labels", tensor.Int32, 2))
	parameters := b.Parameters()
	gradients := b.Gradients(loss, parameters...)
	b.Output("loss", loss)
	for i, n := range gradients {
		b.Output("gradient of "+parameters[i].Name(), n)
	}
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	oracle, err := graph.Interpret(b, graph.LoadOptions{Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	host := tensor.NewHost(1)
	defer host.Close()
	session, err := program.Load(host, graph.LoadOptions{Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	pixels, labels := make([]float64, graph.ShapeOf(x).Elements()), []int32{2, 0}
	random.Normals(pixels, 0, random.Address{Seed: 8})
	for name, write := range map[string]error{
		"input": graph.Write(session, "input", 0, 0, pixels), "labels": graph.Write(session, "labels", 0, 0, labels),
	} {
		if write != nil {
			t.Fatal(name, write)
		}
	}
	at, _ := oracle.Input("input")
	copy(at.Data().([]float64), pixels)
	at, _ = oracle.Input("labels")
	copy(at.Data().([]int32), labels)
	if err := oracle.Step(); err != nil {
		t.Fatal(err)
	}
	if err := session.Run(1); err != nil {
		t.Fatal(err)
	}
	for i, n := range gradients {
		name := parameters[i].Name()
		want, err := oracle.Value(n)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float64, len(want))
		if err := graph.Read(session, "gradient of "+name, 0, 0, got); err != nil {
			t.Fatal(err)
		}
		near(t, name+": compiled against interpreted", got, want, 1e-13)
		near(t, name+": against finite differences", got, differences(t, session, name, len(got)), 1e-8)
	}
}

// differences returns the central differences of the loss in each value of a parameter.
func differences(t *testing.T, s *graph.Session, parameter string, elements int) []float64 {
	const step = 1e-5
	values, slopes := make([]float64, elements), make([]float64, elements)
	if err := graph.Read(s, parameter, 0, 0, values); err != nil {
		t.Fatal(err)
	}
	lossAt := func(i int, value float64) float64 {
		loss := []float64{math.NaN()}
		for _, err := range []error{
			graph.Write(s, parameter, 0, i, []float64{value}), s.Run(1), graph.Read(s, "loss", 0, 0, loss),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		return loss[0]
	}
	for i, value := range values {
		slopes[i] = (lossAt(i, value+step) - lossAt(i, value-step)) / (2 * step)
		lossAt(i, value)
	}
	return slopes
}

func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	largest := 0.
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tolerance*(1+math.Abs(want[i]))) {
			t.Fatalf("%s: element %d is %v, want %v", what, i, got[i], want[i])
		}
		largest = max(largest, math.Abs(got[i]))
	}
	if largest == 0 {
		t.Errorf("%s: all zero", what)
	}
}
