package mcmc_test

import (
	"context"
	"fmt"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/distributions"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
)

// The mean and the standard deviation of a normal, given five observations, by HMC. With mcmc.NUTS
// instead of Metropolis nothing else changes.
func ExampleMetropolis() {
	b := graph.New(tensor.Float64)
	mean := b.Parameter("mean", nil)
	std, jacobian := distributions.Constrained(b, b.Parameter("log std", nil), distributions.Exp{})
	likelihood := distributions.Normal{Mean: distributions.Node(mean), Std: distributions.Node(std)}
	posterior := distributions.Total(b,
		distributions.Normal{Std: distributions.Number(10)}.LogProb(b, mean),
		distributions.Exponential{Rate: distributions.Number(1)}.LogProb(b, std), jacobian,
		likelihood.LogProb(b, b.Table("data", []float64{4.3, 5.3, 4.7, 5.7, 5.0})))

	sampler := mcmc.Metropolis{Proposal: mcmc.HMC{LeapfrogSteps: 8, Jitter: 0.2}, StepSize: 0.1, Warmup: 300, TargetAcceptance: 0.8}
	chains, err := sampler.Attach(b, mcmc.Target{
		Potential: b.Apply(op.Negate{}, posterior), Temperature: 1,
		Quantities: []mcmc.Quantity{{Name: "mean", Node: mean}, {Name: "std", Node: std}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var traces *langevin.Traces
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: 4}, func(s *graph.Session) (err error) {
		traces, err = chains.Sample(context.Background(), s, 1000, 1)
		return err
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"mean", "std"} {
		draws, err := traces.Of(name, 0)
		if err != nil {
			fmt.Println(err)
			return
		}
		summary, err := diagnostics.Summarize(draws)
		fmt.Printf("%s %.1f, R-hat below 1.02: %v, %v\n", name, summary.Mean, summary.RHat < 1.02, err)
	}
	// Output:
	// mean 5.0, R-hat below 1.02: true, <nil>
	// std 0.7, R-hat below 1.02: true, <nil>
}
