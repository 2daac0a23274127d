package random_test

import (
	"fmt"

	"github.com/pollen-ml/pollen/tensor/random"
)

// The value of an element does not depend on where the drawn range starts.
func ExampleNormals() {
	a := random.Address{Seed: 1, Chain: 0, Step: 100, Stream: 2}
	var all [8]float32
	random.Normals(all[:], 0, a)
	var part [2]float32
	random.Normals(part[:], 5, a)
	fmt.Println(part[0] == all[5], part[1] == all[6])
	// Output: true true
}

// The order of an epoch is computed element by element.
func ExampleOrder() {
	order := random.NewOrder(6, 1, 0, 0)
	seen := map[uint64]bool{}
	for i := range uint64(6) {
		seen[order.At(i)] = true
	}
	fmt.Println(len(seen))
	// Output: 6
}
