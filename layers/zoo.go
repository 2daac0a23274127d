package layers

import (
	"math"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/nearest"
)

// zoo has the networks by name, except the families of variable width.
var zoo = []struct {
	name  string
	build func(classes int) Sequential
}{
	{"lenet", func(classes int) Sequential { return leNet(20, 50, 500, classes) }},
	{"lenet-small", func(classes int) Sequential { return leNet(10, 20, 50, classes) }},
	{"mnist-64-64-256", mnist},
	{"cnn", cnn},
	{"resnet20-frn", func(classes int) Sequential { return resNet20(ReLU{}, resNetFilters, classes) }},
	{"resnet20-frn-silu", func(classes int) Sequential { return resNet20(SiLU{}, resNetFilters, classes) }},
}

// mlpPrefix begins the names of multi-layer perceptrons.
const mlpPrefix = "mlp-"

// resNetFamilies has the residual networks of variable width, by the prefix of their names.
var resNetFamilies = []struct {
	prefix     string
	activation Layer
}{
	{"resnet20-frn-x", ReLU{}},
	{"resnet20-frn-silu-x", SiLU{}},
}

// Names returns the names that New accepts. Those with angle brackets stand for families:
// "mlp-<width>-<width>...", "resnet20-frn-x<factor>".
func Names() []string {
	var names []string
	for _, network := range zoo {
		names = append(names, network.name)
	}
	for _, family := range resNetFamilies {
		names = append(names, family.prefix+"<factor>")
	}
	return append(names, mlpPrefix+"<width>-<width>...")
}

// New returns the network called name, from images [B C H W] to logits [B classes]:
//
//   - lenet: two 5x5 convolutions of 20 and 50 filters, each followed by max-pooling and ReLU,
//     then linear layers of 500 and of classes.
//   - lenet-small: the same with 10, 20 and 50.
//   - mnist-64-64-256: two padded 5x5 convolutions of 64 filters, each followed by ReLU and
//     max-pooling, then linear layers of 256 and of classes; 909 770 parameters for images of
//     28x28 and 10 classes.
//   - cnn: for images from 16x16 on; 7.4 million flops for one of 3x32x32, four times that for
//     one of 3x64x64. It standardises each image, then has five padded 3x3 convolutions of 16, 32,
//     64, 64 and 128 filters, the first four followed by max-pooling and ReLU, the last by ReLU
//     and global average pooling, and a linear layer; 139 921 parameters for 3 channels and 43
//     classes, whatever the image's size.
//   - mlp-400-400, or any other widths: a multi-layer perceptron with ReLU.
//   - resnet20-frn: a residual network of depth 20 with filter response normalisation; 274 042
//     parameters for 3 channels and 10 classes.
//   - resnet20-frn-silu: the same with SiLU instead of ReLU: Hamiltonian Monte Carlo needs a smooth
//     potential.
//   - resnet20-frn-x0.5, resnet20-frn-silu-x2, or any other factor: the same with the filters of
//     every layer multiplied by the factor. The first layer has 16 times the factor, which must be
//     an integer.
//
// Weights start as He{}, but in the first three networks and in cnn's linear layer as LeCun{}. The
// maximum of a window is larger than its average value, so that with He{} the logits would be
// several times too large, and the first steps of SGD at usual learning rates would ruin
// mnist-64-64-256 permanently. Biases start as zeros.
func New(name string, classes int) (Sequential, error) {
	if classes < 1 {
		return nil, errors.Errorf("layers: network %q: classes must be at least 1, got %d", name, classes)
	}
	for _, network := range zoo {
		if network.name == name {
			return network.build(classes), nil
		}
	}
	for _, family := range resNetFamilies {
		if text, ok := strings.CutPrefix(name, family.prefix); ok {
			filters, err := firstFilters(text)
			if err != nil {
				return nil, errors.Wrapf(err, "layers: network %q: the form must be %s<factor>, as in %[2]s0.5 or %[2]s2", name, family.prefix)
			}
			return resNet20(family.activation, filters, classes), nil
		}
	}
	if widths, ok := strings.CutPrefix(name, mlpPrefix); ok {
		return mlp(name, strings.Split(widths, "-"), classes)
	}
	return nil, errors.Errorf("layers: no network %q; %s; other networks are read from files, FILE.yaml or FILE.onnx",
		abbreviate(name), nearest.Among(name, Names()))
}

// leNet is the network of LeCun et al., Gradient-based learning applied to document recognition
// (1998), in the form of Caffe's tutorial: maximum pooling and ReLU.
func leNet(first, second, hidden, classes int) Sequential {
	return Sequential{
		Conv2D{Filters: first, Kernel: 5, Weight: LeCun{}}, MaxPool{Window: 2}, ReLU{},
		Conv2D{Filters: second, Kernel: 5, Weight: LeCun{}}, MaxPool{Window: 2}, ReLU{},
		Flatten{},
		Linear{Outputs: hidden, Weight: LeCun{}}, ReLU{},
		Linear{Outputs: classes, Weight: LeCun{}},
	}
}

// cnn accepts images of any size from 16x16 on, because it ends in global average pooling. The
// padding of the last convolution, whose input is 2x2 for images of 32x32, makes the corners of an
// image distinguishable.
func cnn(classes int) Sequential {
	network := Sequential{GroupNorm{Groups: 1}}
	for _, filters := range []int{16, 32, 64, 64} {
		network = append(network, Conv2D{Filters: filters, Kernel: 3, Padding: 1}, MaxPool{Window: 2}, ReLU{})
	}
	return append(network,
		Conv2D{Filters: 128, Kernel: 3, Padding: 1}, ReLU{},
		GlobalAveragePool{},
		Linear{Outputs: classes, Weight: LeCun{}},
	)
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

// resNet20 is the residual network for small images of He et al., Deep residual learning for image
// recognition (2016), section 4.2, as Izmailov et al., What are Bayesian neural network posteriors
// really like? (2021), sample it: filter response normalisation instead of batch normalisation, and
// projections, not zeros, on the shortcuts that change the shape. The normalisation does not
// subtract the mean, so the convolutions keep their biases.
func resNet20(activation Layer, first, classes int) Sequential {
	network := Sequential{Conv2D{Filters: first, Kernel: 3, Padding: 1}, FilterResponseNorm{}, activation}
	for stage, filters := range []int{first, 2 * first, 4 * first} {
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

// resNetFilters is the number of filters of a residual network's first layer at factor 1.
const resNetFilters = 16

// firstFilters returns the number of filters of the first layer for a factor. Each factor has only
// one accepted spelling, so that a network has only one name.
func firstFilters(factor string) (int, error) {
	const most = 1 << 16
	x, err := strconv.ParseFloat(factor, 64)
	if err != nil || strconv.FormatFloat(x, 'f', -1, 64) != factor {
		return 0, errors.Errorf("factor must be a decimal number without needless digits, got %q", factor)
	}
	filters := x * resNetFilters
	if !(filters >= 1 && filters <= most) || filters != math.Trunc(filters) {
		return 0, errors.Errorf("factor times %d filters must be an integer from 1 to %d, got %v for factor %s", resNetFilters, most, filters, factor)
	}
	return int(filters), nil
}

func mlp(name string, widths []string, classes int) (Sequential, error) {
	network := Sequential{Flatten{}}
	for _, text := range widths {
		width, err := strconv.Atoi(text)
		if err != nil || width < 1 || strconv.Itoa(width) != text {
			return nil, errors.Errorf("layers: network %q: a width must be an integer of at least 1, as in mlp-400-400, got %q", name, text)
		}
		network = append(network, Linear{Outputs: width}, ReLU{})
	}
	return append(network, Linear{Outputs: classes}), nil
}
