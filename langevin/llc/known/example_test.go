package known_test

import (
	"fmt"

	"github.com/pollen-ml/pollen/langevin/llc/known"
)

// A network of 4, 3 and 4 units has 24 weights. A regular model with 24 weights has the coefficient
// 12; the network's depends on the rank of the map that it has learned.
func ExampleCoefficient() {
	for rank := range 4 {
		lambda, _, err := known.Coefficient(rank, 4, 3, 4)
		if err != nil {
			panic(err)
		}
		fmt.Println("rank", rank, "coefficient", lambda)
	}
	// Output:
	// rank 0 coefficient 5
	// rank 1 coefficient 6
	// rank 2 coefficient 7
	// rank 3 coefficient 7.5
}
