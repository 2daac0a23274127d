package trial_test

import (
	"fmt"

	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/langevin/trial"
	"github.com/pollen-ml/pollen/tensor"
)

// SGLD samples a Gaussian of variance 1 with a step of 0.1, which makes the variance 1/(1 - 0.1/2).
// The elements of the parameter are independent of each other.
func Example() {
	target := trial.Target{Field: trial.DiagonalGaussian{Smallest: 1, Largest: 1}, DataSize: 100}
	b := graph.New(tensor.Float64)
	loss := target.Loss(b, b.Parameter("w", nil, 100_000))
	if err := langevin.Attach(b, langevin.SGLD{}, langevin.Posterior{DataSize: target.DataSize}, loss, []float64{0.1}, []float64{1}); err != nil {
		fmt.Println(err)
		return
	}
	values, err := end(b)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("variance %.2f, want 1.053 within 0.01\n", stat.Variance(values, nil))
	// Output: variance 1.05, want 1.053 within 0.01
}

// end returns the values of w after 100 steps.
func end(b *graph.Builder) ([]float64, error) {
	values := make([]float64, 100_000)
	err := b.OnHost(graph.LoadOptions{Seed: 3}, func(s *graph.Session) error {
		if err := s.Run(100); err != nil {
			return err
		}
		return graph.Read(s, "w", 0, 0, values)
	})
	return values, err
}
