package layers

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// parameterNames returns the names of a builder's parameters, in order.
func parameterNames(b *graph.Builder) []string {
	var names []string
	for _, n := range b.Parameters() {
		names = append(names, n.Name())
	}
	return names
}

// build applies a network to a batch of two.
func build(phase graph.Mode, network Layer, input tensor.Shape) (b *graph.Builder, x, y *graph.Node) {
	b = graph.New(tensor.Float64)
	b.Mode = phase
	x = b.Data("input", tensor.Float64, append([]int{2}, input...)...)
	return b, x, network.Apply(b, x)
}

// weights returns the names of the two parameters of each layer.
func weights(layers ...string) []string {
	var names []string
	for _, layer := range layers {
		names = append(names, layer+".weight", layer+".bias")
	}
	return names
}

// resNet20Names are 19 convolutions of 3x3 and 2 of 1x1, each with its normalisation, and the
// linear layer.
func resNet20Names() []string {
	var names []string
	for i := range 21 {
		conv, norm := fmt.Sprint("conv", i+1), fmt.Sprint("frn", i+1)
		names = append(names, weights(conv, norm)...)
		names = append(names, norm+".threshold")
	}
	return append(names, weights("linear1")...)
}

func resNet20Flops(first, channels, side, classes int) int {
	total := side * side * 9 * channels * first
	for _, filters := range []int{first, 2 * first, 4 * first} {
		convolutions := 6
		if filters > first {
			side /= 2
			total += side * side * (9 + 1) * filters / 2 * filters
			convolutions = 5
		}
		total += convolutions * side * side * 9 * filters * filters
	}
	return 2 * (total + 4*first*classes)
}

// resNet20Parameters are weights and biases, and three for each filter of a normalisation.
func resNet20Parameters(first, channels, classes int) int {
	total := (9*channels + 4) * first
	for _, filters := range []int{first, 2 * first, 4 * first} {
		convolutions := 6
		if filters > first {
			total += (9*filters/2 + 4 + filters/2 + 4) * filters
			convolutions = 5
		}
		total += convolutions * (9*filters + 4) * filters
	}
	return total + (4*first+1)*classes
}

func cnnNames() []string {
	return weights("groupnorm1", "conv1", "conv2", "conv3", "conv4", "conv5", "linear1")
}

func cnnFlops(channels, side, classes int) int {
	pixels := side * side
	return 2 * (9*pixels*(channels*16+16*32/4+32*64/16+64*64/64+64*128/256) + 128*classes)
}

func TestZoo(t *testing.T) {
	for _, c := range []struct {
		name       string
		input      tensor.Shape
		classes    int
		parameters int
		flops      int
		names      []string
	}{
		{"mnist-64-64-256", tensor.Shape{1, 28, 28}, 10, 909770,
			2 * (28*28*64*25 + 14*14*64*64*25 + 3136*256 + 2560), weights("conv1", "conv2", "linear1", "linear2")},
		{"lenet", tensor.Shape{1, 28, 28}, 10, 431080,
			2 * (24*24*20*25 + 8*8*50*20*25 + 800*500 + 5000), weights("conv1", "conv2", "linear1", "linear2")},
		{"lenet-small", tensor.Shape{1, 28, 28}, 10, 21840,
			2 * (24*24*10*25 + 8*8*20*10*25 + 320*50 + 500), weights("conv1", "conv2", "linear1", "linear2")},
		{"lenet-small", tensor.Shape{3, 32, 32}, 7, 10*75 + 10 + 20*250 + 20 + 500*50 + 50 + 7*51,
			2 * (28*28*10*75 + 10*10*20*10*25 + 500*50 + 350), weights("conv1", "conv2", "linear1", "linear2")},
		{"mlp-400-400", tensor.Shape{1, 28, 28}, 10, 785*400 + 401*400 + 401*10,
			2 * (784*400 + 400*400 + 4000), weights("linear1", "linear2", "linear3")},
		{"mlp-3", tensor.Shape{5}, 2, 6*3 + 4*2, 2 * (15 + 6), weights("linear1", "linear2")},
		{"resnet20-frn", tensor.Shape{3, 32, 32}, 10, 274042, resNet20Flops(16, 3, 32, 10), resNet20Names()},
		{"resnet20-frn-silu", tensor.Shape{3, 32, 32}, 10, 274042, resNet20Flops(16, 3, 32, 10), resNet20Names()},
		{"resnet20-frn", tensor.Shape{1, 28, 28}, 10, 274042 - 2*16*9, resNet20Flops(16, 1, 28, 10), resNet20Names()},
		{"resnet20-frn-x1", tensor.Shape{3, 32, 32}, 10, 274042, resNet20Flops(16, 3, 32, 10), resNet20Names()},
		{"resnet20-frn-x0.5", tensor.Shape{3, 32, 32}, 10, resNet20Parameters(8, 3, 10), resNet20Flops(8, 3, 32, 10), resNet20Names()},
		{"resnet20-frn-silu-x2", tensor.Shape{3, 64, 64}, 43, resNet20Parameters(32, 3, 43), resNet20Flops(32, 3, 64, 43), resNet20Names()},
		{"cnn", tensor.Shape{3, 32, 32}, 43, 139921, cnnFlops(3, 32, 43), cnnNames()},
		{"cnn", tensor.Shape{3, 64, 64}, 43, 139921, cnnFlops(3, 64, 43), cnnNames()},
		{"cnn", tensor.Shape{1, 16, 16}, 10, 139921 - 2*2 - 2*9*16 - 33*129, cnnFlops(1, 16, 10), cnnNames()},
	} {
		t.Run(c.name, func(t *testing.T) {
			network, err := New(c.name, c.classes)
			if err != nil {
				t.Fatal(err)
			}
			b, _, y := build(graph.Training, network, c.input)
			if b.Err() != nil {
				t.Fatal(b.Err())
			}
			if got, want := graph.ShapeOf(y), (tensor.Shape{2, c.classes}); !got.Equal(want) {
				t.Errorf("output has shape %v, want %v", got, want)
			}
			if d := cmp.Diff(c.names, parameterNames(b)); d != "" {
				t.Errorf("parameters (-want +got):\n%s", d)
			}
			total := 0
			for _, n := range b.Parameters() {
				total += graph.ShapeOf(n).Elements()
			}
			if total != c.parameters {
				t.Errorf("%d parameters, want %d", total, c.parameters)
			}
			s, err := Summarize(network, c.input)
			if err != nil {
				t.Fatal(err)
			}
			if s.Parameters != c.parameters || s.Flops != c.flops {
				t.Errorf("summary: %d parameters and %d flops, want %d and %d", s.Parameters, s.Flops, c.parameters, c.flops)
			}
		})
	}
}

func TestZooErrors(t *testing.T) {
	for _, name := range []string{"", "mlp", "mlp-", "mlp-400-", "mlp-0", "mlp--3", "mlp-+3", "mlp-03", "mlp-x", "LeNet", "lenet-small ",
		"resnet20-frn-", "resnet20-frn-x", "resnet20-frn-x0", "resnet20-frn-x-1", "resnet20-frn-x0.3", "resnet20-frn-x0.50", "resnet20-frn-x2.0",
		"resnet20-frn-xNaN", "resnet20-frn-xInf", "resnet20-frn-x+2", "resnet20-frn-x1e1", "resnet20-frn-x02", "resnet20-frn-x100000", "resnet20-frn-x2-silu",
	} {
		network, err := New(name, 10)
		if err == nil || network != nil {
			t.Errorf("%q: got %v, want an error", name, network)
			continue
		}
		if !strings.Contains(err.Error(), "layers: ") {
			t.Errorf("%q: error %q does not name the package", name, err)
		}
	}
	_, err := New("alexnet", 10)
	for _, name := range Names() {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v does not list %s", err, name)
		}
	}
	_, err = New("resnet20-frn-silu-x0.3", 10)
	want := `layers: network "resnet20-frn-silu-x0.3": the form must be resnet20-frn-silu-x<factor>, ` +
		"as in resnet20-frn-silu-x0.5 or resnet20-frn-silu-x2: factor times 16 filters must be an integer from 1 to 65536, got 4.8 for factor 0.3"
	if err == nil || err.Error() != want {
		t.Errorf("a factor without a meaning: got %v, want %s", err, want)
	}
	if _, err := New("lenet", 0); err == nil {
		t.Error("no classes: want an error")
	}
}

func TestNamesDoNotDependOnTheGraph(t *testing.T) {
	for _, name := range Names() {
		name = strings.NewReplacer("<factor>", "0.25", "<width>-<width>...", "4-3-2").Replace(name)
		network, err := New(name, 10)
		if err != nil {
			t.Fatal(err)
		}
		training, _, _ := build(graph.Training, network, tensor.Shape{1, 28, 28})
		prediction, _, _ := build(graph.Prediction, network, tensor.Shape{1, 28, 28})
		if d := cmp.Diff(parameterNames(training), parameterNames(prediction)); d != "" || training.Err() != nil {
			t.Errorf("%s: parameters differ: %s %v", name, d, training.Err())
		}
	}
}

// TestZooStartsSanely runs every network on noise: initial values neither blow the logits up, which
// would ruin a network with max-pooling in the first steps of SGD, nor let them vanish.
func TestZooStartsSanely(t *testing.T) {
	host := tensor.NewHost(2)
	defer host.Close()
	for _, name := range []string{"lenet", "lenet-small", "mnist-64-64-256", "mlp-33-31-17", "resnet20-frn", "resnet20-frn-silu",
		"resnet20-frn-x0.5", "resnet20-frn-silu-x0.25", "cnn"} {
		network, err := New(name, 10)
		if err != nil {
			t.Fatal(err)
		}
		b := graph.New(tensor.Float32)
		b.Output("logits", network.Apply(b, b.Data("input", tensor.Float32, 31, 1, 28, 28)))
		program, err := b.Compile()
		if err != nil {
			t.Fatal(err)
		}
		session, err := program.Load(host, graph.LoadOptions{Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		pixels, logits := make([]float32, 31*28*28), make([]float32, 31*10)
		random.Normals(pixels, 0, random.Address{Seed: 2})
		for _, err := range []error{
			graph.Write(session, "input", 0, 0, pixels), session.Run(1), graph.Read(session, "logits", 0, 0, logits),
		} {
			if err != nil {
				t.Fatal(name, err)
			}
		}
		square := 0.
		for _, v := range logits {
			square += float64(v) * float64(v) / float64(len(logits))
		}
		if root := math.Sqrt(square); !(root > .3 && root < 3.5) {
			t.Errorf("%s: root mean square of the logits is %v, want .3 to 3.5", name, root)
		} else {
			t.Logf("%s: root mean square of the logits %.2f", name, root)
		}
	}
}

// TestTooWide: a network with matrices that no kernel can multiply is an error naming the layer.
func TestTooWide(t *testing.T) {
	network, err := New("mlp-60000-60000", 10)
	if err != nil {
		t.Fatal(err)
	}
	err = Check(network, tensor.Shape{1, 28, 28}, 10)
	if err == nil || !strings.Contains(err.Error(), "linear2: matmul: kernel: gemm: a matrix must have at most 2147483647 elements, got 60000 x 60000") {
		t.Error(err)
	}
}

func TestCheckNil(t *testing.T) {
	if err := Check(nil, tensor.Shape{1, 28, 28}, 10); err == nil || !strings.Contains(err.Error(), "the network must not be nil") {
		t.Error(err)
	}
}
