package stock_test

import (
	"fmt"

	"gorgonia.org/gorgonia"

	"github.com/pollen-ml/pollen/graph/stock"
)

// A program for Gorgonia: only the line with NewMachine was changed, from gorgonia.NewTapeMachine.
func ExampleMachine() {
	g := gorgonia.NewGraph()
	x := gorgonia.NewScalar(g, gorgonia.Float64, gorgonia.WithName("x"), gorgonia.WithValue(3.0))
	loss := gorgonia.Must(gorgonia.Square(x))
	if _, err := gorgonia.Grad(loss, x); err != nil {
		fmt.Println(err)
		return
	}
	vm := stock.NewMachine(g, stock.Options{}, gorgonia.BindDualValues(x))
	defer vm.Close()
	solver := gorgonia.NewVanillaSolver(gorgonia.WithLearnRate(0.25))
	for range 3 {
		err := vm.RunAll()
		if err == nil {
			fmt.Println("loss", loss.Value())
			err = solver.Step(gorgonia.NodesToValueGrads(gorgonia.Nodes{x}))
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	// Output:
	// loss 9
	// loss 2.25
	// loss 0.5625
}
