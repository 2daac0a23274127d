// Command logistic shows what the posterior average of a logistic regression adds to its point
// estimate: far from the data it is less certain.
//
// It samples the three parameters of a classifier of 30 points with SGLD and NUTS, finds the most
// probable ones with gradient descent, and prints P(class 1) at six places next to the exact
// average, which a grid over the parameters gives. Near the data all agree. At (-4, 6) the point
// estimate is 0.08 and the averages are about 0.27. logistic.png has lines of equal probability:
// straight ones for the point estimate, and for the average a fan that opens away from the data. It
// takes some seconds.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

var posterior = langevin.Posterior{DataSize: size, Prior: langevin.Gaussian(std)}

func main() {
	dir := flag.String("folder", ".", "directory for logistic.png")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "logistic: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(os.Stdout, *dir, 64, 100); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// model adds the parameters and the mean negative log-likelihood to a graph.
func model(b *graph.Builder) (theta, loss *graph.Node) {
	features, classes := observations()
	theta = b.Parameter("theta", nil, 3, 1)
	logits := b.Apply(op.MatMul{}, b.Table("features", features, size, 3), theta)
	return theta, b.Apply(op.BernoulliLogits{}, logits, b.Table("classes", classes, size, 1))
}

// sgld samples with SGLD, one draw of each chain every 50 steps. At temperature 0 it is gradient
// descent, which ends at the most probable parameters.
func sgld(temperature float64, chains, draws int) (kept [][3]float64, err error) {
	const stepSize, spacing, burnIn = 0.005, 50, 5000
	b := graph.New(tensor.Float64)
	_, loss := model(b)
	steps := burnIn + spacing*draws
	if err := langevin.Attach(b, langevin.SGLD{}, posterior, loss, []float64{stepSize}, []float64{temperature}); err != nil {
		return nil, err
	}
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: chains}, func(session *graph.Session) error {
		plan := langevin.Plan{Steps: steps, BurnIn: burnIn, Thinning: spacing}
		traces, err := plan.Collect(context.Background(), session, []string{"theta"})
		if err != nil {
			return err
		}
		kept, err = vectors(traces)
		return err
	})
	return kept, err
}

// vectors returns the draws of theta of all chains.
func vectors(traces *langevin.Traces) (kept [][3]float64, err error) {
	for i := range 3 {
		values, err := traces.Of("theta", i)
		if err != nil {
			return nil, err
		}
		all := slices.Concat(values...)
		if kept == nil {
			kept = make([][3]float64, len(all))
		}
		for j, v := range all {
			kept[j][i] = v
		}
	}
	return kept, nil
}

// nuts samples with NUTS, which has no discretisation bias.
func nuts(chains, draws int) (kept [][3]float64, err error) {
	b := graph.New(tensor.Float64)
	theta, loss := model(b)
	target := mcmc.Target{Potential: posterior.Potential(b, loss), Temperature: 1, Quantities: []mcmc.Quantity{{Name: "theta", Node: theta}}}
	walk, err := mcmc.NUTS{Warmup: 300}.Attach(b, target)
	if err != nil {
		return nil, err
	}
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: chains}, func(session *graph.Session) error {
		traces, err := walk.Sample(context.Background(), session, draws, 1)
		if err != nil {
			return err
		}
		kept, err = vectors(traces)
		return err
	})
	return kept, err
}

// predictors returns the point estimate, the posterior averages of two samplers, and the exact
// average.
func predictors(chains, draws int) ([]predictor, error) {
	point, err := sgld(0, 1, 1)
	if err != nil {
		return nil, err
	}
	langevinDraws, err := sgld(1, chains, draws)
	if err != nil {
		return nil, err
	}
	nutsDraws, err := nuts(16, draws)
	if err != nil {
		return nil, err
	}
	grid, weights := quadrature()
	averageOf := func(name string, draws [][3]float64, weights []float64) predictor {
		return predictor{name, func(x, y float64) float64 { return average(draws, weights, x, y) }}
	}
	equal := func(n int) []float64 { return slices.Repeat([]float64{1}, n) }
	return []predictor{
		averageOf("point estimate", point, equal(len(point))),
		averageOf("average, SGLD", langevinDraws, equal(len(langevinDraws))),
		averageOf("average, NUTS", nutsDraws, equal(len(nutsDraws))),
		averageOf("average, exact", grid, weights),
	}, nil
}

func run(out io.Writer, dir string, chains, draws int) error {
	all, err := predictors(chains, draws)
	if err != nil {
		return err
	}
	var columns []report.Column
	for _, place := range places {
		columns = append(columns, report.Column{Title: fmt.Sprint("at ", place), Format: "%.3f"})
	}
	table := report.NewTable("P(class 1)", columns...)
	for _, p := range all {
		var cells []any
		for _, place := range places {
			cells = append(cells, p.at(place[0], place[1]))
		}
		if err := table.Add(p.name, cells...); err != nil {
			return err
		}
	}
	if err := table.WriteText(out); err != nil {
		return err
	}
	return draw(filepath.Join(dir, "logistic.png"), all[2], all[0])
}
