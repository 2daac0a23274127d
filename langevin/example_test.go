package langevin_test

import (
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// Bayesian linear regression, y = slope x + N(0, 1) with slope ~ N(0, 1): its posterior is known,
// N(1.9, 1/15).
func Example() {
	mean, sigma, err := sampleSlope()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("slope %.1f +- %.2f\n", mean, sigma)
	// Output: slope 1.9 +- 0.26
}

func sampleSlope() (mean, sigma float64, err error) {
	b := graph.New(tensor.Float32)
	x, y := b.Table("x", []float64{1, 2, 3}, 3, 1), b.Table("y", []float64{2.1, 3.9, 6.2}, 3, 1)
	prediction := b.Apply(op.MatMul{}, x, b.Parameter("slope", nil, 1, 1))
	loss := b.Apply(op.SquaredError{}, prediction, y)

	posterior := langevin.Posterior{DataSize: 3, Prior: langevin.Gaussian(1)}
	err = langevin.Attach(b, langevin.SGLD{}, posterior, loss, []float64{0.005}, []float64{1})
	if err != nil {
		return 0, 0, err
	}
	var traces *langevin.Traces
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: 20}, func(s *graph.Session) (err error) {
		plan := langevin.Plan{Steps: 5100, BurnIn: 100, Thinning: 10}
		traces, err = plan.Collect(context.Background(), s, []string{"slope"})
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	chains, err := traces.Of("slope", 0)
	mean, sigma = stat.MeanStdDev(slices.Concat(chains...), nil)
	return mean, sigma, err
}
