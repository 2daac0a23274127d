// Command volatility finds, by NUTS, how volatile the returns of each day were, with an honest band: the stochastic volatility model of Hoffman
// and Gelman (2014), section 4.2, on made returns whose volatility is known.
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
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

func main() {
	folder := flag.String("folder", ".", "where volatility.png goes")
	flag.Parse()
	if err := run(os.Stdout, *folder, 250, 300); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// sample draws with four chains, after a warm-up of as many draws.
func sample(returns []float64, draws int) (*langevin.Traces, error) {
	b := graph.New(tensor.Float64)
	walk, err := langevin.NUTS{StepSize: 0.01, Warmup: draws, MaxDepth: 8}.Attach(b, target(b, returns))
	if err != nil {
		return nil, err
	}
	program, err := b.Compile()
	if err != nil {
		return nil, err
	}
	host := tensor.NewHost(0)
	defer host.Close()
	session, err := program.Load(host, graph.LoadOptions{Seed: 1, Chains: 4})
	if err != nil {
		return nil, err
	}
	defer session.Close()
	return walk.Draw(context.Background(), session, draws, 1)
}

// interval is a posterior's mean with the ends of its middle 90 %.
type interval struct{ mean, low, high float64 }

func intervalOf(chains [][]float64) interval {
	values := slices.Concat(chains...)
	slices.Sort(values)
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	n := len(values)
	return interval{sum / float64(n), values[n/20], values[n-1-n/20]}
}

// volatilities are the intervals of each day's scale.
func volatilities(traces *langevin.Traces, days int) ([]interval, error) {
	all := make([]interval, days)
	for day := range all {
		chains, err := traces.Of("scale", day)
		if err != nil {
			return nil, err
		}
		all[day] = intervalOf(chains)
	}
	return all, nil
}

// covered is the share of truths within their intervals.
func covered(intervals []interval, truth []float64) float64 {
	inside := 0
	for i, want := range truth {
		if intervals[i].low <= want && want <= intervals[i].high {
			inside++
		}
	}
	return float64(inside) / float64(len(truth))
}

func run(out io.Writer, folder string, days, draws int) error {
	returns, truth := observations(days)
	traces, err := sample(returns, draws)
	if err != nil {
		return err
	}
	table := report.NewTable("", report.Column{Title: "truth", Format: "%.3g"}, report.Column{Title: "mean", Format: "%.3g"},
		report.Column{Title: "5 %", Format: "%.3g"}, report.Column{Title: "95 %", Format: "%.3g"},
		report.Column{Title: "R-hat", Format: "%.3f"}, report.Column{Title: "effective draws", Format: "%.0f"})
	for _, row := range []struct {
		name string
		want float64
	}{{"deviation", trueDeviation}, {"freedom", trueFreedom}} {
		chains, err := traces.Of(row.name, 0)
		if err != nil {
			return err
		}
		rHat, err := langevin.SplitRHat(chains)
		if err != nil {
			return err
		}
		effective, _, err := langevin.EffectiveSampleSize(chains)
		if err != nil {
			return err
		}
		got := intervalOf(chains)
		if err := table.Add(row.name, row.want, got.mean, got.low, got.high, rHat, effective); err != nil {
			return err
		}
	}
	if err := table.WriteText(out); err != nil {
		return err
	}
	bands, err := volatilities(traces, days)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "The true volatility lies in the band of 90 %% on %.0f %% of the days.\n", 100*covered(bands, truth))
	return draw(filepath.Join(folder, "volatility.png"), bands, truth)
}

// draw draws the band, in percent a day, and the truth.
func draw(path string, bands []interval, truth []float64) error {
	curves := []report.Curve{{Method: "mean"}, {Method: "truth"}, {Method: "5 %"}, {Method: "95 %"}}
	for day, band := range bands {
		for i, value := range []float64{band.mean, truth[day], band.low, band.high} {
			curves[i].X, curves[i].Y = append(curves[i].X, float64(day)), append(curves[i].Y, 100*value)
		}
	}
	figure, err := report.Curves(report.Axes{X: "day", Y: "scale of the day's return, %"}, curves)
	if err != nil {
		return err
	}
	return figure.Save(path)
}
