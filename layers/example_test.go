package layers_test

import (
	"fmt"

	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/tensor"
)

func Example() {
	network := layers.Sequential{
		layers.Conv2D{Filters: 8, Kernel: 3, Padding: 1}, layers.ReLU{}, layers.MaxPool{Window: 2},
		layers.Flatten{},
		layers.Linear{Outputs: 10, Weight: layers.Orthogonal{}},
	}
	summary, err := layers.Summarize(network, tensor.Shape{1, 28, 28})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(summary)
	// Output:
	// layer     kind           output     parameters    flops
	// conv1     conv2d + bias  [8 28 28]          80  112 896
	// relu1     relu           [8 28 28]           0        0
	// maxpool1  max pool       [8 14 14]           0        0
	// flatten1  view           [1568]              0        0
	// linear1   matmul + bias  [10]           15 690   31 360
	// total                                   15 770  144 256
}

func ExampleParse() {
	network, err := layers.Parse([]byte(`
- conv2d: {filters: 16, kernel: 3, padding: 1, weight: he}
- relu
- residual:
    body:
      - conv2d: {filters: 16, kernel: 3, padding: 1, weight: {normal: {std: 0.1}}}
      - frn
- globalaveragepool
- linear: {outputs: classes}
`), 43)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(network[4] == layers.Linear{Outputs: 43}, layers.Check(network, tensor.Shape{3, 32, 32}, 43))

	_, err = layers.Parse([]byte("- relu\n- maxpool: {size: 2}"), 43)
	fmt.Println(err)
	// Output:
	// true <nil>
	// layers: network file: layer 2 (maxpool): no attribute "size"; there are window, stride, padding
	//    2 | - maxpool: {size: 2}
	//                    ^
}
