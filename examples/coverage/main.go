// Command coverage checks two guarantees of a calibrated run: that conformal prediction sets
// contain the true class, and that data like the training data are reported as in distribution,
// each with the requested probability.
//
// For each of 20 seeds it splits all 70 000 digits of MNIST at random: 10 000 train a perceptron
// by SGHMC, 2000 calibrate it, 4000 are fresh. It prints the fraction of fresh digits for which
// each guarantee holds, with the standard error of its mean, its standard deviation over the
// splits, and the standard deviation that chance predicts: about 0.95 ± 0.006 at 95 %. The
// guarantees are marginal, averages over calibration sets, so a single split may lie a little
// below. The sets may be empty here. Sets that always have the most probable class contain the
// true class at least as often as the most probable one is right, which can exceed the requested
// probability. It draws the fractions of all seeds in coverage.png.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/interrupt"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/report"
)

// division has the numbers of digits that train a network, calibrate it, and are fresh.
type division struct{ train, heldOut, fresh int }

func main() {
	seeds := flag.Int("seeds", 20, "random divisions")
	dir := flag.String("folder", ".", "directory for coverage.png")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "coverage: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, release := interrupt.Context()
	defer release()
	if err := run(ctx, os.Stdout, *dir, *seeds, division{10000, 2000, 4000}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// promises are the guarantees of a calibrated run, each with its rate and a function that reports
// whether an answer keeps it.
var promises = []struct {
	title string
	rate  float64
	kept  func(a bayes.Answer, label string) bool
}{
	{"sets of 90 % have the label", 0.90, inSet},
	{"sets of 95 % have the label", 0.95, inSet},
	{"in distribution at 90 %", 0.90, inDistribution},
	{"in distribution at 95 %", 0.95, inDistribution},
}

func inSet(a bayes.Answer, label string) bool      { return slices.Contains(a.PredictionSet, label) }
func inDistribution(a bayes.Answer, _ string) bool { return *a.InDistribution }

func run(ctx context.Context, out io.Writer, dir string, seeds int, sizes division) error {
	if seeds < 2 {
		return errors.Errorf("coverage: there must be at least 2 seeds for a standard error, got %d", seeds)
	}
	digits, err := allDigits()
	if err != nil {
		return err
	}
	shares := make([][]float64, len(promises))
	for seed := range seeds {
		one, err := keptShares(ctx, digits, uint64(seed+1), sizes)
		if err != nil {
			return err
		}
		for i, share := range one {
			shares[i] = append(shares[i], share)
		}
	}
	table := report.NewTable("fresh digits", report.Column{Title: "fraction"}, report.Column{Title: "over seeds"}, report.Column{Title: "by chance"})
	for i, p := range promises {
		mean, std := stat.MeanStdDev(shares[i], nil)
		// The fraction varies with the fresh digits and with the calibration digits: given n of the
		// latter, the coverage is Beta distributed with a variance of about rate (1 - rate)/(n +
		// 2).
		chance := math.Sqrt(p.rate * (1 - p.rate) * (1/float64(sizes.fresh) + 1/float64(sizes.heldOut+2)))
		if err := table.Add(p.title, fmt.Sprintf("%.4f ± %.4f", mean, std/math.Sqrt(float64(seeds))),
			fmt.Sprintf("± %.4f", std), fmt.Sprintf("± %.4f", chance)); err != nil {
			return err
		}
	}
	if err := table.WriteText(out); err != nil {
		return err
	}
	return draw(filepath.Join(dir, "coverage.png"), shares)
}

// draw draws the fractions of each promise by seed.
func draw(path string, shares [][]float64) error {
	var curves []report.Curve
	for i, p := range promises {
		c := report.Curve{Method: p.title, Y: shares[i]}
		for seed := range shares[i] {
			c.X = append(c.X, float64(seed+1))
		}
		curves = append(curves, c)
	}
	figure, err := report.Curves(report.Axes{X: "seed", Y: "fraction of fresh digits"}, curves)
	if err != nil {
		return err
	}
	return figure.Save(path)
}

// allDigits returns MNIST's training and test digits as one data set.
func allDigits() (*datasets.Dataset, error) {
	mnist, err := datasets.Open("mnist", datasets.Options{})
	if err != nil {
		return nil, err
	}
	images := slices.Concat(mnist.Train.Images, mnist.Test.Images)
	labels := slices.Concat(mnist.Train.Labels, mnist.Test.Labels)
	return datasets.New("mnist", images, labels, 1, 28, 28, mnist.Train.ClassNames)
}

// keptShares trains a perceptron on a part of the digits, calibrates it on another, and returns for
// each promise the fraction of its answers for a third part that keep it.
func keptShares(ctx context.Context, digits *datasets.Dataset, seed uint64, sizes division) ([]float64, error) {
	order := rand.New(rand.NewPCG(seed, 0)).Perm(digits.Len())
	next := func(n int) (*datasets.Dataset, error) {
		chosen := order[:n]
		order = order[n:]
		var images []byte
		var labels []int32
		for _, i := range chosen {
			images, labels = append(images, digits.Image(i)...), append(labels, digits.Labels[i])
		}
		return datasets.New("mnist", images, labels, 1, 28, 28, digits.ClassNames)
	}
	var parts []*datasets.Dataset
	for _, n := range []int{sizes.train, sizes.heldOut, sizes.fresh} {
		part, err := next(n)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	dir, err := os.MkdirTemp("", "coverage")
	if err != nil {
		return nil, errors.Wrap(err, "coverage")
	}
	defer os.RemoveAll(dir)
	spec := bayes.Spec{Network: "mlp-100", Method: langevin.SGHMC{Friction: 0.1}, Epochs: 5, Seed: seed}
	trained, err := bayes.Fit(ctx, spec, &datasets.Splits{Train: parts[0], Validation: parts[1]}, filepath.Join(dir, "run"))
	if err != nil {
		return nil, err
	}
	shares := make([]float64, len(promises))
	for i, p := range promises {
		answers, err := trained.With(bayes.WithLevel(p.rate), bayes.WithInDistributionRate(p.rate),
			bayes.WithSetRule(evaluate.SetRule{AllowEmpty: true})).Predict(ctx, parts[2])
		if err != nil {
			return nil, err
		}
		for j, a := range answers {
			if p.kept(a, digits.ClassNames[parts[2].Labels[j]]) {
				shares[i] += 1 / float64(len(answers))
			}
		}
	}
	return shares, nil
}
