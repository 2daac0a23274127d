// Command volatility estimates how volatile the returns of each day were, with a 90 % band: the
// stochastic volatility model of Hoffman and Gelman (2014), section 4.2, by NUTS, by pSGLD, and by
// Bayes by Backprop as published by Keng (2023). The returns are simulated with known volatility,
// or come from a file of daily closes.
//
// It prints the estimates of two parameters by each method: deviation, the standard deviation of a
// day's step of the log scale, and freedom, the degrees of freedom of the returns. NUTS and pSGLD
// agree. Bayes by Backprop does not, and its band, half as wide, contains the simulated volatility
// on 19 % of the days instead of NUTS' 91 %. volatility.png has the bands and the truth. It takes
// about half a minute.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/report"
)

func main() {
	dir := flag.String("folder", ".", "directory for volatility.png")
	data := flag.String("data", "", "file of daily closes, with a heading and lines such as 2008-05-01,1409.34 (default: simulated returns)")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "volatility: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
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

// effort has the lengths of the runs.
type effort struct {
	warmup, draws int // of NUTS
	steps         int // of pSGLD
	fit           fit // of Bayes by Backprop
}

var full = effort{warmup: 300, draws: 700, steps: 30000, fit: fit{replicas: 100, epochs: 1500, burnIn: 500, rate: 0.001}}

func run(out io.Writer, dir string, s series, e effort) error {
	path := filepath.Join(dir, "volatility.png")
	if err := config.CheckParent("folder", path); err != nil {
		return err
	}
	begin := time.Now()
	exact, gradients, err := noUTurn(s.returns, e.warmup, e.draws)
	if err != nil {
		return err
	}
	took := time.Since(begin).Seconds()
	fmt.Fprintf(out, "%d returns. NUTS: %d chains of %d draws after a warm-up of %d, %d gradients each, in %.0f s.\n",
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
	fmt.Fprintf(out, "Best Bayes by Backprop: coordinate ascent with quadrature, to the evidence lower bound %.1f, in %.0f s.\n\n",
		highest, time.Since(begin).Seconds())
	if err := tabulate(out, exact, langevinDraws, published, best.result("Bayes by Backprop, best")); err != nil {
		return err
	}
	fmt.Fprint(out, explanation)
	fmt.Fprintf(out, "The standard deviation of freedom by pSGLD is %.2f times that by NUTS.\n", langevinDraws.freedom.std/exact.freedom.std)
	fmt.Fprintf(out, "The band of Bayes by Backprop is %.2f times as wide as that of NUTS, and its deviation is off by %.1f standard deviations.\n",
		width(published.bands)/width(exact.bands), (published.std.mean-exact.std.mean)/exact.std.std)
	if s.scales != nil {
		fmt.Fprintf(out, "True values: deviation %v, freedom %v. The true volatility lies in the 90 %% band of NUTS on %.0f %% of the days, "+
			"in that of Bayes by Backprop on %.0f %%.\n", trueStd, trueFreedom, 100*covered(exact.bands, s.scales), 100*covered(published.bands, s.scales))
	}
	return draw(path, s, exact, published)
}

// explanation explains the rows of Bayes by Backprop.
const explanation = `
Bayes by Backprop as published (Keng 2023) has a deviation of 0.026 and a freedom of 9.75 for the S&P 500. Its objective leaves out the prior of the walk:
its deviation is how wide the approximation can be before the returns become improbable, not how far the walk moves in a day, and its freedom has hardly
moved from its initial value 10. The best approximation by independent normals, with all terms, has a far smaller deviation: the returns determine sums
of steps much better than single steps, which independent normals cannot express. So it makes the steps small, and explains the rest by heavy tails.
`

// tabulate prints the estimates of all methods.
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

// draw saves a figure of the bands, in percent per day, and of the truth if it is known.
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
