package distributions_test

import (
	"fmt"

	"github.com/pollen-ml/pollen/distributions"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// The posterior of a mean and a standard deviation, given three observations: the deviation is
// positive: the exponential of an unconstrained parameter.
func Example() {
	b := graph.New(tensor.Float64)
	mean := b.Parameter("mean", nil)
	logStd := b.Parameter("log deviation", nil)
	std, logJacobian := distributions.Constrained(b, logStd, distributions.Exp{})

	likelihood := distributions.Normal{Mean: distributions.Node(mean), Std: distributions.Node(std)}
	logPosterior := distributions.Total(b,
		likelihood.LogProb(b, b.Table("observations", []float64{1, 2, 6})),
		distributions.Normal{Std: distributions.Number(10)}.LogProb(b, mean),
		distributions.Exponential{Rate: distributions.Number(0.5)}.LogProb(b, std),
		logJacobian)
	gradients := b.Gradients(logPosterior, mean, logStd)
	b.Output("log posterior", logPosterior)
	b.Output("by mean", gradients[0])
	b.Output("by log deviation", gradients[1])

	// Both parameters start at 0.
	err := b.OnHost(graph.LoadOptions{}, func(s *graph.Session) error {
		if err := s.Run(1); err != nil {
			return err
		}
		for _, name := range []string{"log posterior", "by mean", "by log deviation"} {
			var value [1]float64
			if err := graph.Read(s, name, 0, 0, value[:]); err != nil {
				return err
			}
			fmt.Printf("%s: %.4f\n", name, value[0])
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// log posterior: -27.6715
	// by mean: 9.0000
	// by log deviation: 38.5000
}
