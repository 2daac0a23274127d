package layers

import (
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

func TestCheck(t *testing.T) {
	for _, name := range []string{"lenet", "mnist-64-64-256", "cnn", "mlp-400", "resnet20-frn-x0.5"} {
		network, err := New(name, 43)
		if err != nil {
			t.Fatal(err)
		}
		for _, input := range []tensor.Shape{{3, 16, 16}, {1, 28, 28}, {3, 32, 32}, {3, 64, 64}} {
			if err := Check(network, input, 43); err != nil {
				t.Errorf("%s on %v: %v", name, input, err)
			}
		}
	}
	for _, c := range []struct {
		network Layer
		input   tensor.Shape
		want    string
	}{
		{Sequential{MaxPool{Window: 2}, ReLU{}, Conv2D{Name: "second", Filters: 8, Kernel: 5}}, tensor.Shape{3, 6, 7},
			"layers: network on inputs [3 6 7]: layers: second: input has shape [B 3 3 3], too small for a window of 5 x 5 with dilation 1 and padding 0"},
		{Sequential{Conv2D{Filters: 8, Kernel: 3, Dilation: 3, Padding: 1}}, tensor.Shape{3, 4, 9},
			"layers: network on inputs [3 4 9]: layers: conv1: input has shape [B 3 4 9], too small for a window of 3 x 3 with dilation 3 and padding 1"},
		{Sequential{MaxPool{Window: 2}, MaxPool{Window: 2}, MaxPool{Window: 2}}, tensor.Shape{3, 7, 32},
			"layers: network on inputs [3 7 32]: layers: maxpool3: input has shape [B 3 1 8], too small for a window of 2 x 2 with dilation 1 and padding 0"},
		{Sequential{Conv2D{Filters: 8, Kernel: 3}, Linear{Outputs: 10}}, tensor.Shape{3, 8, 8},
			"layers: network on inputs [3 8 8]: layers: linear1: input must have shape [B I], which a Flatten makes of images, got [B 8 6 6]"},
		{Sequential{Flatten{}, Linear{Outputs: 5}}, tensor.Shape{3, 8, 8},
			"layers: network on inputs [3 8 8]: output must have shape [B 10], got [B 5]; the last layer is linear1; in a file, its outputs can be the word classes"},
		{Sequential{Conv2D{Filters: 10, Kernel: 3}}, tensor.Shape{3, 8, 8},
			"layers: network on inputs [3 8 8]: output must have shape [B 10], got [B 10 6 6]; the last layer is conv1"},
		{Sequential{}, tensor.Shape{3, 8, 8},
			"layers: network on inputs [3 8 8]: output must have shape [B 10], got [B 3 8 8]; the network has no layers"},
		{Sequential{Residual{Body: Sequential{Conv2D{Filters: 4, Kernel: 3, Stride: 2, Padding: 1}}}}, tensor.Shape{3, 8, 8},
			"layers: network on inputs [3 8 8]: layers: residual1: shortcut must have the body's shape [B 4 4 4], got [B 3 8 8]"},
		{Sequential{Flatten{}, nil}, tensor.Shape{3, 8, 8},
			"layers: network on inputs [3 8 8]: layers: layer 1 of 2 is nil"},
		{Sequential{GroupNorm{Groups: 2}}, tensor.Shape{3, 8, 8},
			"layers: network on inputs [3 8 8]: graph: groupnorm1: group norm: groups must divide the 3 channels, got 2"},
		{Sequential{ReLU{}}, tensor.Shape{3, 0, 8},
			`layers: network on inputs [3 0 8]: graph: input "input": tensor: shape [1 3 0 8]: axis 2 must be at least 1, got 0`},
	} {
		if err := Check(c.network, c.input, 10); err == nil || err.Error() != c.want {
			t.Errorf("%#v on %v:\ngot  %v\nwant %s", c.network, c.input, err, c.want)
		}
	}
}

// TestWindows: a window fits if it spans at most the length of the padded image.
func TestWindows(t *testing.T) {
	for side := 1; side < 7; side++ {
		for kernel := 1; kernel < 6; kernel++ {
			for dilation := 1; dilation < 4; dilation++ {
				for padding := range 3 {
					want := side+2*padding >= 1+(kernel-1)*dilation
					layer := Conv2D{Filters: 1, Kernel: kernel, Dilation: dilation, Padding: padding}
					b, _, _ := build(0, layer, tensor.Shape{1, side, 9})
					if got := b.Err() == nil; got != want {
						t.Errorf("%+v on %d x 9: %v", layer, side, b.Err())
					}
				}
			}
		}
	}
}
