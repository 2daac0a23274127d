package mcmc_test

import (
	"context"
	"fmt"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/distributions"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
)

// The eight schools of Rubin (1981): the effects of coaching in eight schools, each estimated with a
// standard error, vary around a common mean with a standard deviation that is unknown, too. The
// parameters z, which the effects are computed from, are independent in the prior: NUTS samples
// them well, and the effects themselves badly. The chains start apart, so that R-hat would notice
// if they did not meet.
func Example() {
	b := graph.New(tensor.Float64)
	apart := layers.Normal{Std: 1}.Fill
	mean, z := b.Parameter("mean", apart), b.Parameter("z", apart, 8)
	spread, logJacobian := distributions.Constrained(b, b.Parameter("log spread", apart), distributions.Exp{})
	effects := b.Apply(op.Add{}, b.Apply(op.Multiply{}, z, spread), mean)
	errors := b.Table("standard errors", []float64{15, 10, 16, 11, 9, 11, 10, 18})
	likelihood := distributions.Normal{Mean: distributions.Node(effects), Std: distributions.Node(errors)}
	logPosterior := distributions.Total(b,
		likelihood.LogProb(b, b.Table("estimates", []float64{28, 8, -3, 7, -1, 1, 18, 12})),
		distributions.Normal{Std: distributions.Number(1)}.LogProb(b, z),
		distributions.Normal{Std: distributions.Number(5)}.LogProb(b, mean),
		distributions.HalfStudentT{DoF: distributions.Number(1), Scale: distributions.Number(5)}.LogProb(b, spread), logJacobian)

	chains, err := mcmc.NUTS{Warmup: 500}.Attach(b, mcmc.Target{
		Potential: b.Apply(op.Negate{}, logPosterior), Temperature: 1,
		Quantities: []mcmc.Quantity{{Name: "mean", Node: mean}, {Name: "effects", Node: effects}},
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
	table, err := diagnostics.SummarizeTraces(traces, "mean", "effects") // fmt.Print shows all of it
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, row := range table[:3] {
		fmt.Printf("%s %d: %.0f, standard deviation %.0f\n", row.Name, row.Element, row.Mean, row.Std)
	}
	fmt.Println("R-hat below 1.01:", table.MaxRHat() < 1.01)
	// Output:
	// mean 0: 4, standard deviation 3
	// effects 0: 6, standard deviation 6
	// effects 1: 5, standard deviation 5
	// R-hat below 1.01: true
}
