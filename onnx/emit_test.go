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
			var want []float64
			for range filters {
				want = append(want, 4*factor, 2*factor, 2*factor, factor)
			}
			weights := float32s(ones[:graph.ShapeOf(w).Elements()])
			checkEmitted(t, b, x, y, [][]float32{weights}, &ndarray{[]int{1, channels, 2, 2}, Float32, ones}, &ndarray{[]int{1, filters, 2, 2}, Float32, want})
		})
	}
}

// The elementwise ops with attributes, of which hard sigmoids and GELU are made.
func TestEmitAttributes(t *testing.T) {
	for name, c := range map[string]struct {
		op   graph.Op
		want []float64
	}{
		"factor":            {op.Scale{Factor: 2}, []float64{-4, 0, 2, 6}},
		"offset":            {op.Scale{Factor: 1, Offset: 0.5}, []float64{-1.5, 0.5, 1.5, 3.5}},
		"factor and offset": {op.Scale{Factor: -2, Offset: 0.5}, []float64{4.5, 0.5, -1.5, -5.5}},
		"clip":              {op.Clip{Low: -1, High: 2}, []float64{-1, 0, 1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			b := graph.New(tensor.Float32)
			x := b.Data("images", tensor.Float32, 1, 1, 2, 2)
			y := b.Apply(c.op, x)
			if b.Err() != nil {
				t.Fatal(b.Err())
			}
			image := []int{1, 1, 2, 2}
			checkEmitted(t, b, x, y, nil, &ndarray{image, Float32, []float64{-2, 0, 1, 3}}, &ndarray{image, Float32, c.want})
		})
	}
}

// checkEmitted compares what the file of a graph computes for an image with what is wanted. The
// weights are the parameters of one sample.
func checkEmitted(t *testing.T, b *graph.Builder, x, y *graph.Node, weights [][]float32, image, want *ndarray) {
	t.Helper()
	open := func(shape []int) []int { return append([]int{-1}, shape[1:]...) } // any number of images
	var writer Writer
	e, err := writer.Emit(b, x, writer.Input("x", Float32, open(image.shape)...), [][][]float32{weights}, "")
	if err != nil {
		t.Fatal(err)
	}
	value, _, err := e.Value(y)
	if err != nil {
		t.Fatal(err)
	}
	writer.Output("y", value, Float32, open(want.shape)...)
	var content bytes.Buffer
	if _, err := writer.WriteTo(&content); err != nil {
		t.Fatal(err)
	}
	m, err := Read(content.Bytes(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := evaluate(m, value, &storedTensor{Type: image.kind, Shape: image.shape, floats: image.values})
	if err != nil {
		t.Fatal(err)
	}
	if err := near(got, want, 0, 0); err != nil {
		t.Error(err)
	}
}
