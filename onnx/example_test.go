package onnx_test

import (
	"bytes"
	"fmt"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/onnx"
	"github.com/pollen-ml/pollen/tensor"
)

// Write a small classifier, read it back, and cut it before its last layer, to train a new one on
// its features. The weights are frozen, so that the graph has no parameters.
func Example() {
	var w onnx.Writer
	x := w.Input("image", onnx.Float32, -1, 4)
	hidden := w.Node("Relu", nil, w.Node("Gemm", nil, x, w.Floats("first", make([]float32, 4*3), 4, 3)))
	w.Output("logits", w.Node("Gemm", nil, hidden, w.Floats("last", make([]float32, 3*2), 3, 2)), onnx.Float32, -1, 2)
	var file bytes.Buffer
	_, err := w.WriteTo(&file)
	check(err)

	model, err := onnx.Read(file.Bytes(), nil)
	check(err)
	fmt.Println(model.Inputs[0].Name, model.Inputs[0].Shape, "to", model.Outputs[0].Name, model.Outputs[0].Shape)
	features, err := model.Features()
	check(err)
	frozen := func(weight string) bool { return true }
	network, err := model.Network(onnx.Options{Output: features, Frozen: frozen})
	check(err)
	fmt.Println(len(network.Weights()), "weight before the last layer")

	b := graph.New(tensor.Float32)
	y := network.Apply(b, b.Data("images", tensor.Float32, 10, 4))
	check(b.Err())
	fmt.Println("features", graph.ShapeOf(y), "with", len(b.Parameters()), "parameters")
	// Output:
	// image [-1 4] to logits [-1 2]
	// 1 weight before the last layer
	// features [10 3] with 0 parameters
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
