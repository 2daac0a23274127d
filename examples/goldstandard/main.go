// Command goldstandard samples the posterior of a small network on 160 handwritten digits by
// Hamiltonian Monte Carlo on all of them, and prints how near the predictions of samplers on
// minibatches, and of approximations, come to it.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/comparison"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/interrupt"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

// The posterior: the data, network and prior that all methods share.
const (
	dataSize = 160
	testSize = 1000
	classes  = 10
	model    = "mlp-20-20"

	priorDeviation = 0.2
)

var prior = langevin.Gaussian(priorDeviation)

func main() {
	effort := flag.Float64("effort", 1, "how long all chains are, relative to what takes some minutes")
	folder := flag.String("folder", "", "folder that keeps the runs: the same command goes on there (default: a temporary one)")
	flag.Parse()
	ctx, release := interrupt.Context()
	defer release()
	if err := run(ctx, os.Stdout, os.Stderr, "mnist", *effort, *folder); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if stop := interrupt.Of(ctx); stop != nil {
			os.Exit(stop.ExitCode())
		}
		os.Exit(1)
	}
}

// study is what all methods share.
type study struct {
	ctx    context.Context
	data   datasets.Splits // for training and for testing
	device tensor.Device
	effort float64
	runs   *comparison.Comparison
	folder string // of the runs, if it is to be removed
}

// scaled scales a number of epochs or draws by the effort.
func (s *study) scaled(n int) int { return max(1, int(s.effort*float64(n))) }

// newStudy takes the first images of both splits, and begins in a folder.
func newStudy(ctx context.Context, data string, effort float64, folder string) (*study, error) {
	s := &study{ctx: ctx, effort: effort}
	splits, err := datasets.Open(data, datasets.Options{Context: ctx})
	if err != nil {
		return nil, err
	}
	if s.data.Train, err = splits.Train.Slice(0, dataSize); err != nil {
		return nil, err
	}
	if s.data.Test, err = splits.Test.Slice(0, testSize); err != nil {
		return nil, err
	}
	if err := s.begin(folder); err != nil {
		return nil, err
	}
	s.device = tensor.NewHost(0)
	return s, nil
}

// begin goes on with the runs of a folder, or begins them; "" is a temporary folder, which close
// removes.
func (s *study) begin(folder string) (err error) {
	if folder == "" {
		if s.folder, err = os.MkdirTemp("", "goldstandard"); err != nil {
			return errors.Wrap(err, "goldstandard")
		}
		folder = s.folder
	}
	var entries []comparison.Entry
	for seed := range uint64(seeds) {
		entries = append(entries, s.hmcEntry(seed+1))
	}
	for _, m := range methods {
		entries = append(entries, comparison.Entry{Title: m.name, Spec: m.spec(s)})
	}
	s.runs, err = comparison.Begin(folder, entries, nil)
	return err
}

func (s *study) close() error {
	err := s.device.Close()
	if closing := s.runs.Close(); err == nil {
		err = closing
	}
	if s.folder != "" {
		if removing := os.RemoveAll(s.folder); err == nil {
			err = errors.Wrap(removing, "goldstandard")
		}
	}
	return err
}

// seeds is how many runs of HMC are made.
const seeds = 2

func run(ctx context.Context, out, progress io.Writer, data string, effort float64, folder string) (err error) {
	s, err := newStudy(ctx, data, effort, folder)
	if err != nil {
		return err
	}
	defer func() {
		if closing := s.close(); err == nil {
			err = closing
		}
	}()
	var found [seeds]*reference
	for i := range found {
		fmt.Fprintf(progress, "HMC, seed %d\n", i+1)
		if found[i], err = s.hmc(uint64(i + 1)); err != nil {
			return err
		}
	}
	first, second := found[0], found[1]
	reference := pool(first.mean, second.mean)
	printConvergence(out, first, second)
	table := report.NewTable("against HMC", report.Column{Title: "agreement", Format: "%.3f"}, report.Column{Title: "total variation", Format: "%.3f"},
		report.Column{Title: "accuracy", Format: "%.3f"}, report.Column{Title: "NLL", Format: "%.3f"}, report.Column{Title: "T of predictions", Format: "%s"})
	if err := s.add(table, "HMC, seed 2 against seed 1", first.mean, second.mean, text(second.temperature)); err != nil {
		return err
	}
	if err := s.add(table, "HMC, both seeds", reference, reference, text(both(first.temperature, second.temperature))); err != nil {
		return err
	}
	for _, m := range methods {
		fmt.Fprintf(progress, "%s\n", m.name)
		mean, temperature, err := s.predict(m)
		if err != nil {
			return errors.WithMessage(err, m.name)
		}
		if err := s.add(table, m.name, reference, mean, temperature); err != nil {
			return err
		}
	}
	return table.WriteText(out)
}

// add adds a row: how near predictions are to the reference's, how good they are, and at which
// temperature what they depend on was sampled.
func (s *study) add(table *report.Table, name string, reference, mean []float64, temperature string) error {
	predictions, err := evaluate.NewPredictions(s.data.Test.Name, mean, s.data.Test.Labels, classes)
	if err != nil {
		return err
	}
	scores, err := evaluate.Assess(evaluate.Case{In: predictions})
	if err != nil {
		return err
	}
	near, err := evaluate.Compare(mean, reference, classes)
	if err != nil {
		return err
	}
	return table.Add(name, near.Agreement, near.TotalVariation, scores.Values["accuracy"], scores.Values["nll"], temperature)
}

// text is a measurement, or "-" where there is none.
func text(m *pollen.Measured) string {
	if m == nil {
		return "-"
	}
	return m.String()
}

// both is the mean of two measurements; nil if one is.
func both(a, b *pollen.Measured) *pollen.Measured {
	if a == nil || b == nil {
		return nil
	}
	return &pollen.Measured{Value: (a.Value + b.Value) / 2, StandardError: pollen.Number(math.Hypot(float64(a.StandardError), float64(b.StandardError)) / 2)}
}

// pool is the mean of two means of as many samples each.
func pool(p, q []float64) []float64 {
	mean := make([]float64, len(p))
	for i := range p {
		mean[i] = (p[i] + q[i]) / 2
	}
	return mean
}
