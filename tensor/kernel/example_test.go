package kernel_test

import (
	"fmt"

	"github.com/pollen-ml/pollen/tensor/kernel"
)

// A routine is prepared once and run any number of times. Here one thread runs tile after tile; the
// tiles of a phase may also run concurrently.
func Example() {
	plan, err := kernel.Conv2D{
		B: 1, C: 1, H: 3, W: 3, K: 1, R: 2, S: 2,
		StrideH: 1, StrideW: 1, DilationH: 1, DilationW: 1,
		Bias: true,
	}.Forward()
	if err != nil {
		fmt.Println(err)
		return
	}
	operands := kernel.Operands[float32]{
		A:         []float32{1, 2, 3, 4, 5, 6, 7, 8, 9},
		B:         []float32{1, 0, 0, 1},
		Bias:      []float32{100},
		Out:       make([]float32, 4),
		Workspace: make([]float32, plan.Workspace),
		Scratch:   make([]float32, plan.Scratch),
	}
	for phase, tiles := range plan.Phases {
		for tile := range tiles {
			kernel.Run(&plan, phase, tile, operands)
		}
	}
	fmt.Println(operands.Out)
	// Output: [106 108 112 114]
}
