package metropolis_test

import (
	"context"
	"fmt"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/distributions"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/metropolis"
	"github.com/pollen-ml/pollen/tensor"
)

// The mean and the deviation of a normal, given five observations, by HMC. With metropolis.NUTS in
// place of Metropolis nothing else changes.
func ExampleMetropolis() {
	b := graph.New(tensor.Float64)
	mean := b.Parameter("mean", nil)
	deviation, jacobian := distributions.Constrained(b, b.Parameter("log deviation", nil), distributions.Exp{})
	likelihood := distributions.Normal{Mean: distributions.Node(mean), Deviation: distributions.Node(deviation)}
	posterior := distributions.Total(b,
		distributions.Normal{Deviation: distributions.Number(10)}.LogProb(b, mean),
		distributions.Exponential{Rate: distributions.Number(1)}.LogProb(b, deviation), jacobian,
		likelihood.LogProb(b, b.Table("data", []float64{4.3, 5.3, 4.7, 5.7, 5.0})))

	sampler := metropolis.Metropolis{Proposal: metropolis.HMC{Leaps: 8, Jitter: 0.2}, StepSize: 0.1, Warmup: 300, AcceptanceRate: 0.8}
	walk, err := sampler.Attach(b, metropolis.Target{
		Potential: b.Apply(op.Negate{}, posterior), Temperature: 1,
		Quantities: []metropolis.Quantity{{Name: "mean", Node: mean}, {Name: "deviation", Node: deviation}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	program, err := b.Compile()
	if err != nil {
		fmt.Println(err)
		return
	}
	host := tensor.NewHost(0)
	defer host.Close()
	session, err := program.Load(host, graph.LoadOptions{Seed: 1, Chains: 4})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	traces, err := walk.Draw(context.Background(), session, 1000, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"mean", "deviation"} {
		chains, _ := traces.Of(name, 0)
		convergence, _ := diagnostics.SplitRHat(chains)
		fmt.Printf("%s %.1f, R-hat below 1.02: %v\n", name, meanOf(chains), convergence < 1.02)
	}
	// Output:
	// mean 5.0, R-hat below 1.02: true
	// deviation 0.7, R-hat below 1.02: true
}
