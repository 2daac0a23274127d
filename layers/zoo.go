package layers

import (
	"strconv"
	"strings"

	"github.com/pkg/errors"
)

// zoo is the networks by name, but for the family of multi-layer perceptrons.
var zoo = []struct {
	name  string
	build func(classes int) Sequential
}{
	{"lenet", func(classes int) Sequential { return leNet(20, 50, 500, classes) }},
	{"lenet-small", func(classes int) Sequential { return leNet(10, 20, 50, classes) }},
	{"mnist-64-64-256", mnist},
}

// perceptron begins the names of multi-layer perceptrons.
const perceptron = "mlp-"

// Names are the names that New knows; "mlp-<width>-<width>..." stands for a family.
func Names() []string {
	var names []string
	for _, network := range zoo {
		names = append(names, network.name)
	}
	return append(names, perceptron+"<width>-<width>...")
}

// New is the network of that name, from images [B C H W] to logits [B classes]:
//
//   - lenet: two 5x5 convolutions of 20 and 50 filters, each followed by max-pooling and ReLU, then linear layers of 500 and of classes.
//   - lenet-small: the same with 10, 20 and 50.
//   - mnist-64-64-256: two padded 5x5 convolutions of 64 filters, each followed by ReLU and max-pooling, then linear layers of 256 and of
//     classes; 909 770 parameters for images of 28x28 and 10 classes.
//   - mlp-400-400, or any other widths: a multi-layer perceptron with ReLU.
//
// All weights start as He{}, all biases as zeros.
func New(name string, classes int) (Sequential, error) {
	if classes < 1 {
		return nil, errors.Errorf("layers: network %q: %d classes, wants at least 1", name, classes)
	}
	for _, network := range zoo {
		if network.name == name {
			return network.build(classes), nil
		}
	}
	if widths, ok := strings.CutPrefix(name, perceptron); ok {
		return mlp(name, strings.Split(widths, "-"), classes)
	}
	return nil, errors.Errorf("layers: no network %q; there are %s", name, strings.Join(Names(), ", "))
}

// leNet is the network of LeCun et al., Gradient-based learning applied to document recognition (1998), in the form that Caffe's
// tutorial gave it: maximum pooling and ReLU.
func leNet(first, second, hidden, classes int) Sequential {
	return Sequential{
		Conv2D{Filters: first, Kernel: 5}, MaxPool{Window: 2}, ReLU{},
		Conv2D{Filters: second, Kernel: 5}, MaxPool{Window: 2}, ReLU{},
		Flatten{},
		Linear{Outputs: hidden}, ReLU{},
		Linear{Outputs: classes},
	}
}

func mnist(classes int) Sequential {
	return Sequential{
		Conv2D{Filters: 64, Kernel: 5, Padding: 2}, ReLU{}, MaxPool{Window: 2},
		Conv2D{Filters: 64, Kernel: 5, Padding: 2}, ReLU{}, MaxPool{Window: 2},
		Flatten{},
		Linear{Outputs: 256}, ReLU{},
		Linear{Outputs: classes},
	}
}

func mlp(name string, widths []string, classes int) (Sequential, error) {
	network := Sequential{Flatten{}}
	for _, text := range widths {
		width, err := strconv.Atoi(text)
		if err != nil || width < 1 {
			return nil, errors.Errorf("layers: network %q: width %q, wants a number of at least 1, as in mlp-400-400", name, text)
		}
		network = append(network, Linear{Outputs: width}, ReLU{})
	}
	return append(network, Linear{Outputs: classes}), nil
}
