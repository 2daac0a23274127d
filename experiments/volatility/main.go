// Command volatility finds how volatile the returns of each day were, with a band: the stochastic
// volatility model of Hoffman and Gelman (2014), section 4.2, by NUTS, by pSGLD, and by Bayes by
// Backprop, whose band is far too narrow. The returns are simulated, with known volatility, or come
// from a file of daily closes.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/pollen-ml/pollen/report"
)

func main() {
	dir := flag.String("folder", ".", "where volatility.png goes")
	data := flag.String("data", "", "a file of daily closes, with a heading and lines such as 2008-05-01,1409.34; without it, returns are made")
	flag.Parse()
	s, err := made(250), error(nil)
	if *data != "" {
		s, err = read(*data)
	}
	if err == nil {
		err = run(os.Stdout, *dir, s, full)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// effort is how long the methods run.
type effort struct {
	warmup, draws int // of NUTS
	steps         int // of pSGLD
	fit           fit // of Bayes by Backprop
}

var full = effort{warmup: 300, draws: 700, steps: 30000, fit: fit{replicas: 100, epochs: 1500, burnIn: 500, rate: 0.001}}

func run(out io.Writer, dir string, s series, e effort) error {
	begin := time.Now()
	exact, gradients, err := noUTurn(s.returns, e.warmup, e.draws)
	if err != nil {
		return err
	}
	took := time.Since(begin).Seconds()
	fmt.Fprintf(out, "%d returns. NUTS: %d chains, each of %d draws after a warm-up of %d, %d gradients, in %.0f s.\n",
		len(s.returns), chains, e.draws, e.warmup, gradients, took)
	begin = time.Now()
	langevinDraws, err := preconditioned(s.returns, e.steps)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "pSGLD: %d chains of %d steps in %.0f s.\n", chains, e.steps, time.Since(begin).Seconds())
	begin = time.Now()
	published, err := bayesByBackprop(s.returns, e.fit)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Bayes by Backprop: %d epochs of %d replicas in %.0f s.\n", e.fit.epochs, e.fit.replicas, time.Since(begin).Seconds())
	begin = time.Now()
	best, highest := optimum(s.returns)
	fmt.Fprintf(out, "Bayes by Backprop, best: by coordinate ascent with quadrature, to the bound %.1f, in %.0f s.\n\n", highest, time.Since(begin).Seconds())
	if err := tabulate(out, exact, langevinDraws, published, best.result("Bayes by Backprop, best")); err != nil {
		return err
	}
	fmt.Fprint(out, explanation)
	fmt.Fprintf(out, "The standard deviation of freedom by pSGLD is %.2f times that by NUTS.\n", langevinDraws.freedom.std/exact.freedom.std)
	fmt.Fprintf(out, "The band of Bayes by Backprop is %.2f times as wide as that of NUTS, and its deviation %.1f standard deviations off.\n",
		width(published.bands)/width(exact.bands), (published.std.mean-exact.std.mean)/exact.std.std)
	if s.scales != nil {
		fmt.Fprintf(out, "With the deviation %v and the freedom %v, the true volatility lies in the band of 90 %% of NUTS on %.0f %% of the days, "+
			"in that of Bayes by Backprop on %.0f %%.\n", trueStd, trueFreedom, 100*covered(exact.bands, s.scales), 100*covered(published.bands, s.scales))
	}
	return draw(filepath.Join(dir, "volatility.png"), s, exact, published)
}

// explanation explains the rows of Bayes by Backprop.
const explanation = `
Bayes by Backprop as published (Keng 2023) has a deviation of 0.026 and a freedom of 9.75 for the S&P 500. Its objective leaves out the prior of the walk: its
deviation is how wide the approximation may be before the returns become improbable, not how far the walk goes in a day, and its freedom has hardly
moved from 10, where it starts. The best approximation by independent normals, with all terms, has a deviation that is smaller by far: the returns know
sums of steps far better than steps, which it cannot say, so that it makes the steps small, and lets heavy tails of the returns explain the rest.
`

func tabulate(out io.Writer, results ...result) error {
	table := report.NewTable("", report.Column{Title: "mean", Format: "%.3g"}, report.Column{Title: "standard deviation", Format: "%.2g"},
		report.Column{Title: "5 %", Format: "%.3g"}, report.Column{Title: "95 %", Format: "%.3g"},
		report.Column{Title: "R-hat", Format: "%.3f"}, report.Column{Title: "effective draws", Format: "%.0f"})
	for _, r := range results {
		if err := table.Add("deviation, "+r.method, r.std.cells()...); err != nil {
			return err
		}
	}
	for _, r := range results {
		if err := table.Add("freedom, "+r.method, r.freedom.cells()...); err != nil {
			return err
		}
	}
	return table.WriteText(out)
}

// draw draws the bands, in percent a day, and the truth if it is known.
func draw(path string, s series, results ...result) error {
	var curves []report.Curve
	add := func(name string, value func(day int) float64) {
		curve := report.Curve{Method: name, X: s.times}
		for day := range s.times {
			curve.Y = append(curve.Y, 100*value(day))
		}
		curves = append(curves, curve)
	}
	for _, r := range results {
		add(r.method+", 5 %", func(day int) float64 { return math.Exp(r.bands[day].low) })
		add(r.method+", 95 %", func(day int) float64 { return math.Exp(r.bands[day].high) })
	}
	if s.scales != nil {
		add("truth", func(day int) float64 { return s.scales[day] })
	}
	figure, err := report.Curves(report.Axes{X: s.axis, Y: "scale of the day's return, %", LogY: true}, curves)
	if err != nil {
		return err
	}
	return figure.Save(path)
}
