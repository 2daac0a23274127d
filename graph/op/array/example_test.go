package array_test

import (
	"fmt"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

// The increments of a path, and the path again from its increments.
func Example() {
	b := graph.New(tensor.Float64)
	path := b.Data("path", tensor.Float64, 4)
	increments := b.Apply(array.Difference{}, path)
	b.Output("increments", increments)
	b.Output("sums", b.Apply(array.CumulativeSum{}, increments))

	err := b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
		if err := graph.Write(s, "path", 0, 0, []float64{1, 3, 2, 2}); err != nil {
			return err
		}
		if err := s.Evaluate(); err != nil {
			return err
		}
		for _, name := range []string{"increments", "sums"} {
			values := make([]float64, 4)
			if err := graph.Read(s, name, 0, 0, values); err != nil {
				return err
			}
			fmt.Println(name, values)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// increments [1 2 -1 0]
	// sums [1 3 2 2]
}
