package approximate_test

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/approximate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

// The same regression by Bayes by Backprop. One weight has no correlations, so that q ends at the
// posterior itself, N(1.9, 1/15).
func ExampleBayesByBackprop() {
	mean, std, err := fitSlope()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("slope %.1f +- %.2f\n", mean, std)
	// Output: slope 1.9 +- 0.26
}

func fitSlope() (mean, std float64, err error) {
	b := graph.New(tensor.Float32)
	x, y := b.Table("x", []float64{1, 2, 3}, 3, 1), b.Table("y", []float64{2.1, 3.9, 6.2}, 3, 1)
	v := approximate.BayesByBackprop{
		Posterior:  langevin.Posterior{DataSize: 3, Prior: langevin.Gaussian(1)},
		InitialStd: 0.1, ClosedForm: true, LocalReparameterization: true,
	}
	prediction, q := v.Apply(b, func(b *graph.Builder, x *graph.Node) *graph.Node {
		return b.Apply(op.MatMul{}, x, b.Parameter("slope", nil, 1, 1))
	}, x)
	// SquaredError is the mean over the batch, as Loss takes it.
	loss, divergence := v.Loss(b, q, b.Apply(op.SquaredError{}, prediction, y))
	parameters := b.Parameters()
	adam := optimizers.Adam{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}
	rates, err := optimizers.Step{Initial: 0.03, Factor: 0.3, Every: 1000}.Rates(4000)
	if err != nil {
		return 0, 0, err
	}
	optimizers.Update(b, adam, parameters, b.Gradients(loss, parameters...), b.Table("rates", rates))
	b.Record("KL(q || prior)", divergence)
	err = b.OnHost(graph.LoadOptions{Seed: 1}, func(s *graph.Session) error {
		for range 40 {
			if err := s.Run(100); err != nil {
				return err
			}
		}
		mean, std, err = moments(s, q)
		return err
	})
	return mean, std, err
}

// moments returns the mean and the standard deviation of draws from q.
func moments(s *graph.Session, q *approximate.MeanField) (mean, std float64, err error) {
	const draws = 4000
	var sum, squares float64
	for draw := range draws {
		sample, err := q.Draw(s, 0, draw)
		if err != nil {
			return 0, 0, err
		}
		slope := float64(sample.Parameters[0].Values[0])
		sum, squares = sum+slope/draws, squares+slope*slope/draws
	}
	return sum, math.Sqrt(squares - sum*sum), nil
}
