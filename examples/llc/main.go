// Command llc estimates local learning coefficients of four models whose exact values are known.
//
// A linear regression is regular: its coefficient is half the number of its weights. Deep linear
// networks are singular: weights of neighbouring layers can change together without changing the
// map, and the coefficient, which Aoyagi's theorems give, is smaller. For one of them it prints the
// rows of all step sizes, from those that are too hot to those that do not get away from the centre
// in time, and draws how the loss rises from the centre in llc.png. It takes two minutes;
// -steps 2000 is quicker, and leaves some estimates imprecise.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pollen-ml/pollen/langevin/llc"
	"github.com/pollen-ml/pollen/langevin/llc/known"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

func main() {
	dir := flag.String("folder", ".", "directory for llc.png")
	steps := flag.Int("steps", 16000, "steps of each chain")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "llc: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(os.Stdout, *dir, *steps); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options sets an inverse temperature at which 60 examples weigh as much as 11 000 at the usual
// 1/log N: the theorems are about the limit of many examples. Without noise in the labels, 60
// suffice to define the same loss.
func options(steps int) llc.Options {
	return llc.Options{Localization: 1, InverseTemperature: 20, Steps: steps, Seed: 1}
}

// network is a deep linear network with its numbers of units, learning a map of a rank.
type network struct {
	name   string
	rank   int
	widths []int
}

var networks = []network{
	{"4-3-4, rank 1", 1, []int{4, 3, 4}},
	{"4-2-5, rank 1", 1, []int{4, 2, 5}},
	{"3-3-4-3, rank 1", 1, []int{3, 3, 4, 3}},
}

func run(out io.Writer, dir string, steps int) error {
	if steps < 1 {
		return fmt.Errorf("llc: steps must be at least 1, got %d", steps)
	}
	host := tensor.NewHost(0)
	defer host.Close()
	table := report.NewTable("model", report.Column{Title: "weights", Format: "%.0f"}, report.Column{Title: "half of them", Format: "%.1f"},
		report.Column{Title: "exact", Format: "%.1f"}, report.Column{Title: "estimate", Format: "%.2f"}, report.Column{Title: "95 % interval"},
		report.Column{Title: "accepted"})
	estimate := func(name string, m llc.Model, exact float64) (*llc.Estimation, error) {
		e, err := llc.Estimate(context.Background(), host, m, options(steps))
		if err != nil {
			return nil, err
		}
		v := e.Verdict()
		low, high := v.Lambda.Interval()
		accepted := "no"
		if v.Accepted {
			accepted = "yes"
		}
		return e, table.Add(name, float64(e.Weights), float64(e.Weights)/2, exact, float64(v.Lambda.Value), fmt.Sprintf("%.2f to %.2f", low, high), accepted)
	}
	if _, err := estimate("linear regression", known.LinearRegression(60, 10), 5); err != nil {
		return err
	}
	var first *llc.Estimation
	for _, n := range networks {
		exact, _, err := known.Coefficient(n.rank, n.widths...)
		if err != nil {
			return err
		}
		e, err := estimate(n.name, known.DeepLinear(60, n.rank, n.widths...), exact)
		if err != nil {
			return err
		}
		if first == nil {
			first = e
		}
	}
	if err := table.WriteText(out); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s, by step size:\n\n", networks[0].name)
	if err := printRows(out, first); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%s\n", first.Verdict().Text)
	return draw(filepath.Join(dir, "llc.png"), first)
}

// printRows prints a row for each step size.
func printRows(out io.Writer, e *llc.Estimation) error {
	table := report.NewTable("step size", report.Column{Title: "lambda", Format: "%.2f"}, report.Column{Title: "raw", Format: "%.2f"},
		report.Column{Title: "T loss", Format: "%.3f"}, report.Column{Title: "T", Format: "%.2f"}, report.Column{Title: "R-hat", Format: "%.2f"},
		report.Column{Title: "trend", Format: "%+.2f"}, report.Column{Title: "verdict"})
	problems := e.Problems()
	for i, r := range e.Rows {
		if r.Diverged {
			continue
		}
		err := table.Add(fmt.Sprintf("%.2g", r.StepSize), float64(r.Lambda.Value), float64(r.Raw.Value), r.LossTemperature(),
			float64(r.Temperature.Value), float64(r.RHat), float64(r.Trend.Value), string(problems[i]))
		if err != nil {
			return err
		}
	}
	return table.WriteText(out)
}

// draw draws N beta (L(w) - L(w*)), averaged over chains, against the step.
func draw(path string, e *llc.Estimation) error {
	var curves []report.Curve
	for i, r := range e.Rows {
		if steps, values := e.MeanTrace(i); steps != nil {
			curves = append(curves, report.Curve{Method: fmt.Sprintf("step size %.2g", r.StepSize), X: steps, Y: values})
		}
	}
	exact, _, err := known.Coefficient(networks[0].rank, networks[0].widths...)
	if err != nil {
		return err
	}
	figure, err := report.Curves(report.Axes{X: "step", Y: "N beta (L(w) - L(w*))", Target: exact, TargetName: "exact"}, curves)
	if err != nil {
		return err
	}
	content, err := figure.PNG()
	if err != nil {
		return err
	}
	return os.WriteFile(path, content, 0o644)
}
