package mcmc_test

import (
	"context"
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/distributions"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/tensor"
)

// A density of two coordinates that is given by a formula, a curved ridge:
//
//	log p(x0, x1) = -x0^2/2 - 2 (x1 - x0^2/2)^2 + constant
//
// The exact means are 0 and 1/2. Chains start apart, so that R-hat would notice if they did not
// meet, and no trajectory diverged.
func ExampleNUTS() {
	b := graph.New(tensor.Float64)
	x := b.Parameter("x", layers.Normal{Std: 1}.Fill, 2)
	x0, x1 := b.Apply(array.Element{Index: 0}, x), b.Apply(array.Element{Index: 1}, x)
	half := b.Apply(op.Scale{Factor: 0.5}, b.Apply(op.Squared{}, x0))
	distance := b.Apply(op.Squared{}, b.Apply(op.Subtract{}, x1, half))
	potential := distributions.Total(b, half, b.Apply(op.Scale{Factor: 2}, distance))

	chains, err := mcmc.NUTS{Warmup: 500, TargetAcceptance: 0.95}.Attach(b, mcmc.Target{
		Potential: potential, Temperature: 1, Quantities: []mcmc.Quantity{{Name: "x", Node: x}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var traces *langevin.Traces
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: 4}, func(s *graph.Session) (err error) {
		traces, err = chains.Sample(context.Background(), s, 2000, 1)
		return err
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	table, err := diagnostics.SummarizeTraces(traces, "x", mcmc.TraceDiverged)
	if err != nil {
		fmt.Println(err)
		return
	}
	for i, exact := range []float64{0, 0.5} {
		row := table[i]
		fmt.Printf("x%d: within 4 standard errors: %v\n", row.Element, math.Abs(row.Mean-exact) < 4*row.StandardError)
	}
	fmt.Println("R-hat below 1.01:", table.MaxRHat() < 1.01, "diverged:", table[2].Mean)
	// Output:
	// x0: within 4 standard errors: true
	// x1: within 4 standard errors: true
	// R-hat below 1.01: true diverged: 0
}
