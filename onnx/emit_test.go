package onnx

import (
	"bytes"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// A convolution with more padding after the end of its axes than before keeps it in the model: for
// a sum over windows of 2 x 2, only the last row and column of outputs see the zeros.
func TestEmitTrailingPadding(t *testing.T) {
	ones := []float64{1, 1, 1, 1, 1, 1, 1, 1}
	for name, o := range map[string]graph.Op{
		"depthwise": op.GroupedConv2D{Stride: op.Square(1), Dilation: op.Square(1), Trailing: op.Square(1), Groups: 2},
		"dense":     op.Conv2D{Stride: op.Square(1), Dilation: op.Square(1), Trailing: op.Square(1)},
	} {
		t.Run(name, func(t *testing.T) {
			channels, filters, factor := 2, 2, 1.0
			if name == "dense" { // the filter also adds the two channels, which are equal
				filters, factor = 1, 2
			}
			b := graph.New(tensor.Float32)
			x := b.Data("images", tensor.Float32, 1, channels, 2, 2)
			w := b.Parameter("w", nil, filters, channels/filters, 2, 2)
			y := b.Apply(o, x, w)
			if b.Err() != nil {
				t.Fatal(b.Err())
			}
			var writer Writer
			e, err := writer.Emit(b, x, writer.Input("x", Float32, -1, channels, 2, 2), [][][]float32{{float32s(ones[:graph.ShapeOf(w).Elements()])}}, "")
			if err != nil {
				t.Fatal(err)
			}
			value, _, err := e.Value(y)
			if err != nil {
				t.Fatal(err)
			}
			writer.Output("y", value, Float32, -1, filters, 2, 2)
			var content bytes.Buffer
			if _, err := writer.WriteTo(&content); err != nil {
				t.Fatal(err)
			}
			m, err := Read(content.Bytes(), nil)
			if err != nil {
				t.Fatal(err)
			}
			got, err := evaluate(m, value, &storedTensor{Type: Float32, Shape: []int{1, channels, 2, 2}, floats: ones})
			if err != nil {
				t.Fatal(err)
			}
			var want []float64
			for range filters {
				want = append(want, 4*factor, 2*factor, 2*factor, factor)
			}
			if err := near(got, &ndarray{[]int{1, filters, 2, 2}, Float32, want}, 0, 0); err != nil {
				t.Error(err)
			}
		})
	}
}
