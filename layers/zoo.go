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
	{"resnet20-frn", func(classes int) Sequential { return resNet20(ReLU{}, classes) }},
	{"resnet20-frn-silu", func(classes int) Sequential { return resNet20(SiLU{}, classes) }},
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
//   - resnet20-frn: a residual network of depth 20 with filter response normalisation; 274 042 parameters for 3 channels and 10 classes.
//   - resnet20-frn-silu: the same with SiLU in place of ReLU, whose smoothness Hamiltonian Monte Carlo likes.
//
// Weights start as He{}, those of the networks with max-pooling as LeCun{}: maxima are larger than what they are taken of, so that with He{} the
// logits would be several times too large, and the first steps of SGD at usual rates would end mnist-64-64-256 for good. Biases start as zeros.
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
		Conv2D{Filters: first, Kernel: 5, Weight: LeCun{}}, MaxPool{Window: 2}, ReLU{},
		Conv2D{Filters: second, Kernel: 5, Weight: LeCun{}}, MaxPool{Window: 2}, ReLU{},
		Flatten{},
		Linear{Outputs: hidden, Weight: LeCun{}}, ReLU{},
		Linear{Outputs: classes, Weight: LeCun{}},
	}
}

func mnist(classes int) Sequential {
	return Sequential{
		Conv2D{Filters: 64, Kernel: 5, Padding: 2, Weight: LeCun{}}, ReLU{}, MaxPool{Window: 2},
		Conv2D{Filters: 64, Kernel: 5, Padding: 2, Weight: LeCun{}}, ReLU{}, MaxPool{Window: 2},
		Flatten{},
		Linear{Outputs: 256, Weight: LeCun{}}, ReLU{},
		Linear{Outputs: classes, Weight: LeCun{}},
	}
}

// resNet20 is the residual network for small images of He et al., Deep residual learning for image recognition (2016), section 4.2,
// as Izmailov et al., What are Bayesian neural network posteriors really like? (2021), sample it: filter response
// normalisation in place of batch normalisation, and projections, not zeros, on the shortcuts that change the shape. The
// normalisation takes no mean away, so that the convolutions keep their biases.
func resNet20(activation Layer, classes int) Sequential {
	network := Sequential{Conv2D{Filters: 16, Kernel: 3, Padding: 1}, FilterResponseNorm{}, activation}
	for stage, filters := range []int{16, 32, 64} {
		for block := range 3 {
			stride, shortcut := 1, Sequential(nil)
			if stage > 0 && block == 0 {
				stride, shortcut = 2, Sequential{Conv2D{Filters: filters, Kernel: 1, Stride: 2}, FilterResponseNorm{}}
			}
			body := Sequential{
				Conv2D{Filters: filters, Kernel: 3, Stride: stride, Padding: 1}, FilterResponseNorm{}, activation,
				Conv2D{Filters: filters, Kernel: 3, Padding: 1}, FilterResponseNorm{},
			}
			network = append(network, Residual{Body: body, Shortcut: shortcut}, activation)
		}
	}
	return append(network, GlobalAveragePool{}, Linear{Outputs: classes})
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
