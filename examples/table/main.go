// Command table fits a linear regression to a table, with normal noise and with Student's t. One
// row of twenty has an error of measurement.
//
// It shows a model of your own: data that are not images, a likelihood from package distributions,
// and a scale that must be positive. NUTS samples with all rows at each step, and SGLD with
// minibatches of them. The program prints means and standard deviations next to the true
// coefficients: normal noise lets the wrong rows move the line and widen it, Student's t does not.
// NUTS and SGLD agree. At the end it prints a summary of one coefficient. It takes some seconds.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/distributions"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/mcmc"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

func main() {
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "table: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(os.Stdout, 1000, 100_000); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const chains = 4

// posterior has the prior of all parameters: coefficients, intercept and log scale.
var posterior = langevin.Posterior{DataSize: rows, Prior: langevin.Gaussian(5)}

// noise returns the distribution of a target with the given location and scale.
type noise func(location, scale *graph.Node) distributions.Distribution

func normal(location, scale *graph.Node) distributions.Distribution {
	return distributions.Normal{Mean: distributions.Node(location), Std: distributions.Node(scale)}
}

func studentT(location, scale *graph.Node) distributions.Distribution {
	return distributions.StudentT{DoF: distributions.Number(3), Location: distributions.Node(location), Scale: distributions.Node(scale)}
}

// model adds the parameters and the mean negative log-likelihood of the rows in features [n 3] and
// targets [n 1] to a graph. The parameter of the scale is its logarithm: any value of it is valid.
func model(b *graph.Builder, features, targets *graph.Node, of noise) (loss *graph.Node) {
	slopes, intercept, logScale := b.Parameter("slopes", nil, columns, 1), b.Parameter("intercept", nil, 1), b.Parameter("log scale", nil, 1)
	location := b.Apply(op.Add{}, b.Apply(op.MatMul{}, features, slopes), intercept)
	likelihood := of(location, b.Apply(op.Exp{}, logScale)).LogProb(b, targets)
	return b.Apply(op.Negate{}, b.Apply(op.Mean{}, likelihood))
}

// parameters are the names of the traces.
var parameters = []string{"slopes", "intercept", "log scale"}

// nuts samples with all rows at each step.
func nuts(of noise, draws int) (traces *langevin.Traces, err error) {
	b := graph.New(tensor.Float64)
	features, targets := observations()
	loss := model(b, b.Table("features", features, rows, columns), b.Table("targets", targets, rows, 1), of)
	target := mcmc.Target{Potential: posterior.Potential(b, loss), Temperature: 1}
	for _, p := range b.Parameters() {
		target.Quantities = append(target.Quantities, mcmc.Quantity{Name: p.Name(), Node: p})
	}
	walk, err := mcmc.NUTS{Warmup: 500}.Attach(b, target)
	if err != nil {
		return nil, err
	}
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: chains}, func(s *graph.Session) (err error) {
		traces, err = walk.Sample(context.Background(), s, draws, 1)
		return err
	})
	return traces, err
}

// sgld samples with a minibatch of rows at each step. A step moves by the step size times the
// gradient of the potential, estimated from the minibatch.
func sgld(of noise, steps int) (traces *langevin.Traces, err error) {
	const stepSize, batchSize = 5e-6, 50
	b := graph.New(tensor.Float64)
	features, targets := observations()
	gather := op.GatherRows{Batch: op.Batch{Size: batchSize}}
	batch := func(name string, values []float64, width int) *graph.Node {
		all := b.Table(name, values, rows, width)
		return b.Apply(gather, all, b.Header())
	}
	loss := model(b, batch("features", features, columns), batch("targets", targets, 1), of)
	if err := langevin.Attach(b, langevin.SGLD{}, posterior, loss, []float64{stepSize}, []float64{1}); err != nil {
		return nil, err
	}
	err = b.OnHost(graph.LoadOptions{Seed: 1, Chains: chains}, func(s *graph.Session) (err error) {
		plan := langevin.Plan{Steps: steps, BurnIn: steps / 5, Thinning: 20}
		traces, err = plan.Collect(context.Background(), s, parameters)
		return err
	})
	return traces, err
}

// summary summarizes one of the coefficients: the slopes, then the intercept.
func summary(traces *langevin.Traces, i int) (diagnostics.Summary, error) {
	name, element := "slopes", i
	if i == columns {
		name, element = "intercept", 0
	}
	values, err := traces.Of(name, element)
	if err != nil {
		return diagnostics.Summary{}, err
	}
	return diagnostics.Summarize(values)
}

// fit is a column of the table.
type fit struct {
	title  string
	traces *langevin.Traces
}

// fitAll samples the posteriors.
func fitAll(draws, steps int) ([]fit, error) {
	ofNormal, err := nuts(normal, draws)
	if err != nil {
		return nil, err
	}
	robust, err := nuts(studentT, draws)
	if err != nil {
		return nil, err
	}
	minibatches, err := sgld(studentT, steps)
	return []fit{{"normal, NUTS", ofNormal}, {"Student's t, NUTS", robust}, {"Student's t, SGLD", minibatches}}, err
}

func run(out io.Writer, draws, steps int) error {
	fits, err := fitAll(draws, steps)
	if err != nil {
		return err
	}
	header := []report.Column{{Title: "true", Format: "%.2f"}}
	for _, f := range fits {
		header = append(header, report.Column{Title: f.title, Format: "%s"})
	}
	table := report.NewTable("coefficient", header...)
	for i, want := range coefficients {
		cells := []any{want}
		for _, f := range fits {
			s, err := summary(f.traces, i)
			if err != nil {
				return err
			}
			cells = append(cells, fmt.Sprintf("%.2f +- %.2f", s.Mean, s.Std))
		}
		if err := table.Add(names[i], cells...); err != nil {
			return err
		}
	}
	if err := table.WriteText(out); err != nil {
		return err
	}
	last, err := summary(fits[2].traces, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\n%s, %s: %v\n", names[0], fits[2].title, last)
	return err
}
