package layers

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

func TestOutputShapes(t *testing.T) {
	for _, c := range []struct {
		name          string
		layer         Layer
		input, output tensor.Shape
	}{
		{"conv", Conv2D{Filters: 7, Kernel: 3}, tensor.Shape{3, 9, 8}, tensor.Shape{7, 7, 6}},
		{"conv with stride", Conv2D{Filters: 7, Kernel: 3, Stride: 2, Padding: 1}, tensor.Shape{3, 9, 8}, tensor.Shape{7, 5, 4}},
		{"conv with dilation", Conv2D{Filters: 1, Kernel: 3, Dilation: 3}, tensor.Shape{3, 9, 8}, tensor.Shape{1, 3, 2}},
		{"linear", Linear{Outputs: 31}, tensor.Shape{33}, tensor.Shape{31}},
		{"flatten", Flatten{}, tensor.Shape{3, 9, 8}, tensor.Shape{216}},
		{"flatten of a vector", Flatten{}, tensor.Shape{31}, tensor.Shape{31}},
		{"max pool", MaxPool{Window: 2}, tensor.Shape{3, 9, 8}, tensor.Shape{3, 4, 4}},
		{"max pool with stride", MaxPool{Window: 3, Stride: 2, Padding: 1}, tensor.Shape{3, 9, 8}, tensor.Shape{3, 5, 4}},
		{"average pool", AveragePool{Window: 3}, tensor.Shape{3, 9, 8}, tensor.Shape{3, 3, 2}},
		{"average pool with stride", AveragePool{Window: 3, Stride: 1, Padding: 1}, tensor.Shape{3, 9, 8}, tensor.Shape{3, 9, 8}},
		{"relu", ReLU{}, tensor.Shape{3, 9, 8}, tensor.Shape{3, 9, 8}},
		{"global average pool", GlobalAveragePool{}, tensor.Shape{3, 9, 8}, tensor.Shape{3}},
		{"filter response norm", FilterResponseNorm{}, tensor.Shape{3, 9, 8}, tensor.Shape{3, 9, 8}},
		{"group norm", GroupNorm{Groups: 3}, tensor.Shape{6, 9, 8}, tensor.Shape{6, 9, 8}},
		{"dropout", Dropout{Rate: .3}, tensor.Shape{3, 9, 8}, tensor.Shape{3, 9, 8}},
		{"nothing", Sequential{}, tensor.Shape{3, 9, 8}, tensor.Shape{3, 9, 8}},
		{"identity twice", Residual{}, tensor.Shape{3, 9, 8}, tensor.Shape{3, 9, 8}},
	} {
		b, _, y := build(graph.Training, c.layer, c.input)
		if b.Err() != nil {
			t.Errorf("%s: %v", c.name, b.Err())
		} else if got := graph.ShapeOf(y)[1:]; !got.Equal(c.output) {
			t.Errorf("%s: output has shape %v, want %v", c.name, got, c.output)
		}
	}
}

func TestErrors(t *testing.T) {
	image := tensor.Shape{3, 9, 8}
	for _, c := range []struct {
		layer Layer
		input tensor.Shape
		want  []string // of the message
	}{
		{Conv2D{Filters: 7, Kernel: 9}, image, []string{"layers: conv1", "[B 3 9 8]", "9 x 9"}},
		{Conv2D{Filters: 7, Kernel: 3, Stride: -1}, image, []string{"layers: conv1", "Stride must be", "got -1"}},
		{Conv2D{Filters: 7, Kernel: 3, Padding: -1}, image, []string{"layers: conv1", "Padding must be", "got -1"}},
		{Conv2D{Filters: 7, Kernel: 3, Dilation: -1}, image, []string{"layers: conv1", "Dilation must be", "got -1"}},
		{Conv2D{Filters: 0, Kernel: 3}, image, []string{"layers: conv1", "Filters must be", "got 0"}},
		{Conv2D{Name: "first", Filters: 7}, image, []string{"layers: first", "Kernel must be", "got 0"}},
		{Conv2D{Filters: 7, Kernel: 3}, tensor.Shape{31}, []string{"layers: conv1", "[B 31]", "[B C H W]"}},
		{Linear{Outputs: 10}, image, []string{"layers: linear1", "[B 3 9 8]", "Flatten"}},
		{Linear{Outputs: -1}, tensor.Shape{31}, []string{"layers: linear1", "Outputs must be", "got -1"}},
		{MaxPool{}, image, []string{"layers: maxpool1", "Window must be", "got 0"}},
		{MaxPool{Window: 2, Padding: 2}, image, []string{"layers: maxpool1", "Padding must be", "got 2", "below 2"}},
		{Sequential{MaxPool{Window: 2}, MaxPool{Window: 5}}, image, []string{"layers: maxpool2", "[B 3 4 4]", "5 x 5"}},
		{AveragePool{Window: 10}, image, []string{"layers: averagepool1", "[B 3 9 8]", "10 x 10"}},
		{AveragePool{Window: 2}, tensor.Shape{31}, []string{"layers: averagepool1", "[B 31]"}},
		{GlobalAveragePool{}, tensor.Shape{31}, []string{"layers: globalaveragepool1", "[B 31]"}},
		{GroupNorm{Groups: 2}, image, []string{"groupnorm1: group norm", "groups must divide the 3 channels, got 2"}},
		{GroupNorm{}, image, []string{"layers: groupnorm1", "Groups must be", "got 0"}},
		{GroupNorm{Groups: 1, Epsilon: math.NaN()}, image, []string{"layers: groupnorm1", "Epsilon must be", "got NaN"}},
		{FilterResponseNorm{}, tensor.Shape{31}, []string{"layers: frn1", "[B 31]"}},
		{FilterResponseNorm{Epsilon: -1}, image, []string{"layers: frn1", "Epsilon must be", "got -1"}},
		{Dropout{Rate: 1}, image, []string{"layers: dropout1", "Rate must be", "got 1"}},
		{Dropout{Rate: math.NaN()}, image, []string{"layers: dropout1", "Rate must be", "got NaN"}},
		{ELU{Alpha: -1}, image, []string{"layers: elu1", "Alpha must be", "got -1"}},
		{Residual{Body: Sequential{Conv2D{Filters: 1, Kernel: 1}}}, image, []string{"layers: residual1", "[B 3 9 8]", "[B 1 9 8]"}},
		{Residual{Body: Sequential{Conv2D{Kernel: 1}}}, image, []string{"layers: conv1"}},
		{Sequential{Linear{Name: "a", Outputs: 2}, Linear{Name: "a", Outputs: 2}}, tensor.Shape{31}, []string{`"a.weight"`, "taken"}},
		{Sequential{Linear{}, Conv2D{}, Flatten{}, MaxPool{}}, tensor.Shape{31}, []string{"layers: linear1"}},
	} {
		b, _, y := build(graph.Training, c.layer, c.input)
		if b.Err() == nil || y != nil {
			t.Errorf("%#v: got no error", c.layer)
			continue
		}
		for _, part := range c.want {
			if !strings.Contains(b.Err().Error(), part) {
				t.Errorf("%#v: error %q does not say %q", c.layer, b.Err(), part)
			}
		}
		if _, err := Summarize(c.layer, c.input); err == nil {
			t.Errorf("%#v: got a summary", c.layer)
		}
	}
	if _, err := Summarize(ReLU{}, tensor.Shape{3, 0}); err == nil {
		t.Error("empty input: got a summary")
	}
}

func TestNames(t *testing.T) {
	network := Sequential{
		Conv2D{Name: "stem", Filters: 4, Kernel: 3},
		Conv2D{Filters: 4, Kernel: 1, NoBias: true},
		Residual{Body: Sequential{Conv2D{Filters: 4, Kernel: 1}}, Shortcut: Sequential{Conv2D{Filters: 4, Kernel: 1, NoBias: true}}},
		Flatten{},
		Linear{Outputs: 3, NoBias: true},
		Linear{Name: "head", Outputs: 3},
	}
	b, _, _ := build(graph.Training, network, tensor.Shape{1, 5, 5})
	want := []string{
		"stem.weight", "stem.bias", "conv1.weight", "conv2.weight", "conv2.bias", "conv3.weight", "linear1.weight", "head.weight", "head.bias",
	}
	if d := cmp.Diff(want, parameterNames(b)); d != "" || b.Err() != nil {
		t.Errorf("parameters (-want +got): %v\n%s", b.Err(), d)
	}
	for name, shape := range map[string]tensor.Shape{
		"stem.weight": {4, 1, 3, 3}, "stem.bias": {4}, "conv1.weight": {4, 4, 1, 1}, "linear1.weight": {3, 36}, "head.bias": {3},
	} {
		for _, n := range b.Parameters() {
			if n.Name() == name && !graph.ShapeOf(n).Equal(shape) {
				t.Errorf("%s has shape %v, want %v", name, graph.ShapeOf(n), shape)
			}
		}
	}
}

func TestChainsStartApart(t *testing.T) {
	load := func(seed uint64, chains int) [][]float32 {
		b, _, y := build(graph.Training, Sequential{Conv2D{Filters: 2, Kernel: 3}, Conv2D{Filters: 2, Kernel: 3}}, tensor.Shape{2, 5, 5})
		b.Output("y", y)
		program, err := b.Compile()
		if err != nil {
			t.Fatal(err)
		}
		host := tensor.NewHost(1)
		defer host.Close()
		session, err := program.Load(host, graph.LoadOptions{Seed: seed, Chains: chains})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		var list [][]float32
		for chain := range chains {
			for _, name := range []string{"conv1.weight", "conv2.weight"} {
				values := make([]float32, 36)
				if err := session.ReadFloats(name, chain, values); err != nil {
					t.Fatal(err)
				}
				list = append(list, values)
			}
		}
		return list
	}
	three := load(1, 3)
	if d := cmp.Diff(three[:2], load(1, 1)); d != "" {
		t.Errorf("only chain 0: values differ:\n%s", d)
	}
	all := append(three, load(2, 1)...)
	for i := range all {
		for j := range i {
			if all[i][0] == all[j][0] {
				t.Errorf("parameters %d and %d start alike", j, i)
			}
		}
	}
}

func TestDropout(t *testing.T) {
	for _, c := range []struct {
		phase graph.Mode
		layer Dropout
		drops bool
	}{
		{graph.Training, Dropout{Rate: .5}, true},
		{graph.Training, Dropout{Rate: .5, AlsoPredicting: true}, true},
		{graph.Prediction, Dropout{Rate: .5}, false},
		{graph.Prediction, Dropout{Rate: .5, AlsoPredicting: true}, true},
	} {
		b, x, y := build(c.phase, c.layer, tensor.Shape{100})
		if b.Err() != nil || (x != y) != c.drops {
			t.Errorf("phase %v, %+v: drops %v, want %v; %v", c.phase, c.layer, x != y, c.drops, b.Err())
		}
	}
	b, _, _ := build(graph.Prediction, Dropout{Rate: 2}, tensor.Shape{100})
	if b.Err() == nil {
		t.Error("prediction: a rate of 2 is no error")
	}
}

// TestPhasesStartAlike compares the initial values of a training graph and a prediction graph; only
// one drops elements.
func TestPhasesStartAlike(t *testing.T) {
	var first []float64
	for _, phase := range []graph.Mode{graph.Training, graph.Prediction} {
		b, _, _ := build(phase, Sequential{Linear{Outputs: 5}, Dropout{Rate: .5}, Linear{Outputs: 7}}, tensor.Shape{3})
		oracle, err := graph.Interpret(b, graph.LoadOptions{Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		weight, err := oracle.Input("linear2.weight")
		if err != nil {
			t.Fatal(err)
		}
		if values := weight.Data().([]float64); first == nil {
			first = values
		} else if d := cmp.Diff(first, values); d != "" {
			t.Errorf("linear2.weight differs:\n%s", d)
		}
	}
}

func TestLayersAreComparable(t *testing.T) {
	for _, pair := range [][2]Layer{
		{Conv2D{Filters: 3, Kernel: 2, Weight: Orthogonal{2}}, Conv2D{Filters: 3, Kernel: 2, Weight: Orthogonal{2}}},
		{Linear{Outputs: 3, Bias: Constant{1}}, Linear{Outputs: 3, Bias: Constant{1}}},
		{MaxPool{Window: 2}, MaxPool{Window: 2}},
		{FilterResponseNorm{Name: "a"}, FilterResponseNorm{Name: "a"}},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%#v is not itself", pair[0])
		}
	}
}

// TestReLUBehindThreshold: raising the threshold to 0 has the values and the gradients of a ReLU
// behind it, whatever the threshold's sign.
func TestReLUBehindThreshold(t *testing.T) {
	of := func(rectify func(b *graph.Builder, y *graph.Node) *graph.Node) (all []float64) {
		b := graph.New(tensor.Float64)
		x := b.Parameter("x", Normal{1}.Fill, 5, 3, 4, 4)
		tau := b.Parameter("tau", func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) {
			copy(values, []float64{-0.5, 0, 0.5})
		}, 3)
		y := rectify(b, b.Apply(op.Threshold{}, x, tau))
		nodes := append(b.Gradients(b.Apply(op.Sum{}, b.Apply(op.Multiply{}, y, y)), x, tau), y)
		for i, n := range nodes {
			b.Output(fmt.Sprint(i), n)
		}
		program, err := b.Compile()
		if err != nil {
			t.Fatal(err)
		}
		device := tensor.NewHost(1)
		defer device.Close()
		s, err := program.Load(device, graph.LoadOptions{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if err := s.Run(1); err != nil {
			t.Fatal(err)
		}
		for i, n := range nodes {
			values := make([]float64, graph.ShapeOf(n).Elements())
			if err := graph.Read(s, fmt.Sprint(i), 0, 0, values); err != nil {
				t.Fatal(err)
			}
			all = append(all, values...)
		}
		return all
	}
	want := of(func(b *graph.Builder, y *graph.Node) *graph.Node { return b.Apply(op.ReLU{}, y) })
	if d := cmp.Diff(want, of(ReLU{}.Apply)); d != "" {
		t.Errorf("ReLU, and a threshold of at least 0:\n%s", d)
	}
}
