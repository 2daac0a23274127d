package op_test

import (
	"fmt"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// A loss and its gradient by the logits: softmax minus the one-hot labels, divided by the batch.
func Example() {
	b := graph.New(tensor.Float64)
	logits := b.Data("logits", tensor.Float64, 2, 3)
	labels := b.Data("labels", tensor.Int32, 2)
	loss := b.Apply(op.CrossEntropy{}, logits, labels)
	b.Output("gradient", b.Gradients(loss, logits)[0])
	b.Record("loss", loss)

	gradient := make([]float64, 6)
	err := b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
		if err := graph.Write(s, "logits", 0, 0, []float64{2, 0, 0, 1, 1, 1}); err != nil {
			return err
		}
		if err := graph.Write(s, "labels", 0, 0, []int32{0, 2}); err != nil {
			return err
		}
		if err := s.Run(1); err != nil {
			return err
		}
		fmt.Printf("loss %.3f\n", s.Metric(0, "loss", 0))
		return graph.Read(s, "gradient", 0, 0, gradient)
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.3f\n", gradient[:3])
	fmt.Printf("%.3f\n", gradient[3:])
	// Output:
	// loss 0.669
	// [-0.107 0.053 0.053]
	// [0.167 0.167 -0.333]
}

// The errors of shapes and attributes name the layer and the op.
func ExampleConv2D() {
	b := graph.New(tensor.Float32)
	x := b.Data("x", tensor.Float32, 100, 3, 32, 32)
	w := b.Parameter("w", nil, 16, 3, 5, 5)
	conv := op.Conv2D{Stride: op.Square(2), Padding: op.Square(2), Dilation: op.Square(1)}
	fmt.Println(graph.ShapeOf(b.Apply(conv, x, w)))

	defer b.Scope("conv2")()
	b.Apply(conv, x, b.Parameter("w2", nil, 16, 1, 5, 5))
	fmt.Println(b.Err())
	// Output:
	// [100 16 16 16]
	// graph: conv2: conv2d: input must have the filter's 1 channels, got 3
}
