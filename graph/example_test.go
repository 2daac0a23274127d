package graph_test

import (
	"fmt"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// A linear classifier, its gradient, and three steps of three chains that begin at different
// places.
func Example() {
	b := graph.New(tensor.Float64)
	x, labels := b.Data("x", tensor.Float64, 2, 3), b.Data("labels", tensor.Int32, 2)
	w := b.Parameter("w", layers.Normal{Std: 0.1}.Fill, 2, 3)
	loss := b.Apply(op.CrossEntropy{}, b.Apply(op.MatMul{TransposeB: true}, x, w), labels)
	dw := b.Gradients(loss, w)
	optimizers.Update(b, optimizers.SGD{}, []*graph.Node{w}, dw, b.Table("rates", []float64{1}))
	b.Record("loss", loss)
	program, err := b.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}

	host := tensor.NewHost(2)
	defer host.Close()
	session, err := program.Load(host, graph.LoadOptions{Seed: 1, Chains: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	err = graph.Write(session, "x", 0, 0, []float64{1, 0, 2, 0, 1, -1})
	if err == nil {
		err = graph.Write(session, "labels", 0, 0, []int32{0, 1})
	}
	if err == nil {
		err = session.Run(3)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	for chain := range session.Chains() {
		fmt.Printf("chain %d: loss %.2f, then %.2f\n", chain, session.Metric(chain, "loss", 0), session.Metric(chain, "loss", 2))
	}
	// Output:
	// chain 0: loss 0.56, then 0.06
	// chain 1: loss 0.73, then 0.06
	// chain 2: loss 0.85, then 0.06
}
