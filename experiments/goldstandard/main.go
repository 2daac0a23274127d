// Command goldstandard compares the predictions of samplers on minibatches, and of approximations
// of the posterior, with Hamiltonian Monte Carlo on all data. The model is a perceptron on 160
// handwritten digits, or with -digits 1000 a convolutional network on 1000.
//
// For each method it prints the agreement of its predicted classes with HMC's on 1000 test
// images, the total variation between the predicted probabilities, accuracy and NLL, and for
// samplers the temperature of the directions that predictions depend on and split R-hat of
// predictions. The first row compares two seeds of HMC: 0.92 and 0.06. Samplers with momentum
// come as close, a deep ensemble has 0.86 and 0.16, SGD 0.81 and 0.19. It takes 3 to 4 minutes on
// two cores, and half an hour for 1000 digits, whose reference comes with the program. With
// -folder the same command resumes stopped runs.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/interrupt"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

func main() {
	digits := flag.Int("digits", perceptron.examples, "number of digits, 160 or 1000")
	effort := flag.Float64("effort", 1, "length of all chains, relative to the default, which takes minutes for 160 digits and half an hour for 1000")
	dir := flag.String("folder", "", "directory for the runs, in which the same command resumes (default: a temporary one)")
	file := flag.String("reference", "", "sample the reference again and write it to this file")
	flag.Parse()
	ctx, release := interrupt.Context()
	defer release()
	p, ok := posteriors[*digits]
	if !ok {
		fmt.Fprintf(os.Stderr, "goldstandard: -digits must be 160 or 1000, got %d\n", *digits)
		os.Exit(2)
	}
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "goldstandard: takes flags only, got %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := p.compare(ctx, os.Stdout, os.Stderr, "mnist", *effort, *dir, *file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(interrupt.ExitCode(ctx))
	}
}

// maxEffort bounds the lengths of chains, which are integers.
const maxEffort = 1000

// newStudy takes the first images of both splits, and begins or resumes the runs in dir.
func (p *posterior) newStudy(ctx context.Context, data string, effort float64, dir string) (*study, error) {
	if !(effort > 0 && effort <= maxEffort) {
		return nil, errors.Errorf("goldstandard: effort must be above 0 and at most %d, got %v", maxEffort, effort)
	}
	s := &study{posterior: p, ctx: ctx, effort: effort}
	splits, err := datasets.Open(data, datasets.Options{Context: ctx, Validation: -1})
	if err != nil {
		return nil, err
	}
	if s.data.Train, err = splits.Train.Slice(0, p.examples); err != nil {
		return nil, err
	}
	if s.data.Test, err = splits.Test.Slice(0, testSize); err != nil {
		return nil, err
	}
	if err := s.begin(dir); err != nil {
		return nil, err
	}
	s.device = tensor.NewHost(0)
	return s, nil
}

// begin begins or resumes the runs in dir. An empty dir is a temporary directory, which close
// removes.
func (s *study) begin(dir string) (err error) {
	if s.dir, s.temporary = dir, dir == ""; s.temporary {
		if s.dir, err = os.MkdirTemp("", "goldstandard"); err != nil {
			return errors.Wrap(err, "goldstandard")
		}
	}
	var entries []comparison.Entry
	for i := range seeds {
		entries = append(entries, s.hmcEntry(i+1))
	}
	for _, m := range s.methods {
		entries = append(entries, comparison.Entry{Title: m.name, Spec: m.spec(s)})
	}
	s.runs, err = comparison.Begin(s.dir, entries, nil)
	return err
}

func (s *study) close() error {
	err := cmp.Or(s.device.Close(), s.runs.Close())
	if s.temporary {
		err = cmp.Or(err, errors.Wrap(os.RemoveAll(s.dir), "goldstandard"))
	}
	return err
}

// compare prints all rows. With a file, the reference is sampled again and written there.
func (p *posterior) compare(ctx context.Context, out, progress io.Writer, data string, effort float64, dir, file string) (err error) {
	if err := config.CheckParent("reference", file); err != nil {
		return err
	}
	s, err := p.newStudy(ctx, data, effort, dir)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, s.close()) }()
	reference, err := s.reference(file, progress)
	if err != nil {
		return err
	}
	reference.print(out)
	table := report.NewTable("against HMC", report.Column{Title: "agreement", Format: "%.3f"}, report.Column{Title: "total variation", Format: "%.3f"},
		report.Column{Title: "accuracy", Format: "%.3f"}, report.Column{Title: "NLL", Format: "%.3f"}, report.Column{Title: "T of predictions", Format: "%s"},
		report.Column{Title: "R-hat", Format: "%s"})
	first, second := reference.Halves[0], reference.Halves[1]
	if err := s.add(table, first.Mean, row{"HMC, seed 2 against seed 1", second.Mean, second.Temperature, nil}); err != nil {
		return err
	}
	mean := reference.mean()
	if err := s.add(table, mean, row{"HMC, both seeds", mean, reference.temperature(), nil}); err != nil {
		return err
	}
	for _, m := range s.methods {
		fmt.Fprintf(progress, "%s\n", m.name)
		r, err := s.predict(m)
		if err != nil {
			return errors.WithMessage(err, m.name)
		}
		if err := s.add(table, mean, r); err != nil {
			return err
		}
	}
	return table.WriteText(out)
}

// add adds a row: how close predictions are to the reference's, and how good they are.
func (s *study) add(table *report.Table, reference []float64, r row) error {
	predictions, err := evaluate.NewPredictions(s.data.Test.Name, r.mean, s.data.Test.Labels, classes)
	if err != nil {
		return err
	}
	scores, err := evaluate.Assess(evaluate.Case{In: predictions})
	if err != nil {
		return err
	}
	near, err := evaluate.Compare(r.mean, reference, classes)
	if err != nil {
		return err
	}
	temperature, rHat := "-", "-"
	if r.temperature != nil {
		temperature = r.temperature.String()
	}
	if r.mixing != nil {
		rHat = fmt.Sprintf("%.3f", float64(r.mixing.RHat))
	}
	return table.Add(r.name, near.Agreement, near.TotalVariation, scores.Values["accuracy"], scores.Values["nll"], temperature, rHat)
}

// posteriors has the posteriors by their number of digits.
var posteriors = map[int]*posterior{perceptron.examples: &perceptron, convolutional.examples: &convolutional}
