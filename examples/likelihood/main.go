// Command likelihood fits one normal, and a mixture of two, to 10 000 draws from N(0, 1) and
// 5 000 from N(3, 1), by gradient descent on the negative log-likelihood.
//
// It shows a saddle of the likelihood. Two components that start equal have equal gradients, so
// they stay equal and end where one normal does, with a gradient of 0, although a mixture with a
// higher likelihood exists. Started 0.02 apart, they find means near 0 and 3 with the weights 2/3
// and 1/3. The program prints the parameters and losses of the three fits, and the change of the
// loss in two directions from the saddle, one down and one up. likelihood.png has the densities. It
// takes a second.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor/random"
)

func main() {
	dir := flag.String("folder", ".", "directory for likelihood.png")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "likelihood: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(os.Stdout, *dir, observations(10000, 5000)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// observations returns low draws from N(0, 1), followed by high draws from N(3, 1).
func observations(low, high int) []float64 {
	x := make([]float64, low+high)
	random.Normals(x, 0, random.Address{Seed: 1})
	for i := range x[low:] {
		x[low+i] += 3
	}
	return x
}

// The initial values of the fits.
var (
	oneNormal = mixture{{std: 1, weight: 1}}
	equal     = mixture{{std: 1, weight: 0.5}, {std: 1, weight: 0.5}}
	apart     = mixture{{mean: -0.01, std: 1, weight: 0.5}, {mean: 0.01, std: 1, weight: 0.5}}
)

func run(out io.Writer, dir string, data []float64) error {
	table := report.NewTable("", report.Column{Title: "mean", Format: "%.4f"}, report.Column{Title: "std", Format: "%.4f"},
		report.Column{Title: "weight", Format: "%.4f"}, report.Column{Title: "-ln likelihood / N", Format: "%.5f"})
	var fits []fit
	for _, start := range []struct {
		name  string
		start mixture
	}{{"one normal", oneNormal}, {"two that start equal", equal}, {"two that start 0.02 apart", apart}} {
		f, err := start.start.descend(data, 400)
		if err != nil {
			return err
		}
		f.name = start.name
		fits = append(fits, f)
		for _, n := range f.mixture {
			if err := table.Add(f.name, n.mean, n.std, n.weight, f.loss); err != nil {
				return err
			}
		}
	}
	mean, std := moments(data)
	if err := table.Add("exact, one normal", mean, std, 1.0, math.Log(std)+0.5*math.Log(2*math.Pi*math.E)); err != nil {
		return err
	}
	if err := table.WriteText(out); err != nil {
		return err
	}
	down, up := fits[1].around(data)
	fmt.Fprintf(out, "\nTwo components that start equal end where the gradient is %.1g. Moving their means 0.2 apart from there changes the loss\n"+
		"by %+.5f if the upper one gets wider, and by %+.5f if the lower one does: a saddle, which equal components never leave.\n",
		fits[1].slope, down, up)
	return draw(filepath.Join(dir, "likelihood.png"), data, fits)
}

// moments returns the maximum likelihood estimates of one normal.
func moments(data []float64) (mean, std float64) {
	n := float64(len(data))
	for _, x := range data {
		mean += x / n
	}
	for _, x := range data {
		std += (x - mean) * (x - mean) / n
	}
	return mean, math.Sqrt(std)
}

// draw saves a figure of the densities and the data's histogram.
func draw(path string, data []float64, fits []fit) error {
	const low, high, bins = -4.0, 7.0, 55
	width := (high - low) / bins
	histogram := report.Curve{Method: "data"}
	counts := make([]float64, bins)
	for _, x := range data {
		if bin := int(math.Floor((x - low) / width)); bin >= 0 && bin < bins {
			counts[bin]++
		}
	}
	for bin, count := range counts {
		histogram.X = append(histogram.X, low+(float64(bin)+0.5)*width)
		histogram.Y = append(histogram.Y, count/width/float64(len(data)))
	}
	curves := []report.Curve{histogram}
	for _, f := range fits[1:] { // without one normal, whose curve equals two equal ones
		curve := report.Curve{Method: f.name, X: histogram.X}
		for _, x := range curve.X {
			curve.Y = append(curve.Y, f.density(x))
		}
		curves = append(curves, curve)
	}
	figure, err := report.Curves(report.Axes{X: "x", Y: "density"}, curves)
	if err != nil {
		return err
	}
	return figure.Save(path)
}
