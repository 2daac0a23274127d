package optimizers_test

import (
	"fmt"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// Momentum and a falling learning rate teach a linear classifier the sign of a number.
func Example() {
	const steps = 100
	schedule, err := optimizers.ParseSchedule("cosine:1,0")
	if err != nil {
		fmt.Println(err)
		return
	}
	rates, err := schedule.Rates(steps)
	if err != nil {
		fmt.Println(err)
		return
	}
	b := graph.New(tensor.Float32)
	x, labels := b.Data("x", tensor.Float32, 4, 1), b.Data("labels", tensor.Int32, 4)
	weight, bias := b.Parameter("weight", nil, 1, 2), b.Parameter("bias", nil, 2)
	logits := b.Apply(op.BiasAdd{}, b.Apply(op.MatMul{}, x, weight), bias)
	loss := b.Apply(op.CrossEntropy{}, logits, labels)
	gradients := b.Gradients(loss, b.Parameters()...)
	optimizers.Update(b, optimizers.Momentum{Decay: 0.9}, b.Parameters(), gradients, b.Table("rates", rates))
	b.Record("loss", loss)
	program, err := b.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}

	host := tensor.NewHost(1)
	defer host.Close()
	session, err := program.Load(host, graph.LoadOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	if err := graph.Write(session, "x", 0, 0, []float32{-2, -1, 1, 2}); err != nil {
		fmt.Println(err)
		return
	}
	if err := graph.Write(session, "labels", 0, 0, []int32{0, 0, 1, 1}); err != nil {
		fmt.Println(err)
		return
	}
	if err := session.Run(steps); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("loss %.2f, then %.2f\n", session.Metric(0, "loss", 0), session.Metric(0, "loss", steps-1))
	// Output: loss 0.69, then 0.00
}
