// Command perceptrons compares pSGLD, SGLD, RMSprop and SGD on MNIST as Li, Chen, Carlson and Carin
// did (Preconditioned stochastic gradient Langevin dynamics for deep neural networks, 2016,
// table 1), and prints test errors next to the published ones.
//
// With 400 hidden units per layer the errors are 1.44, 1.65, 1.60 and 1.63 %, published 1.40, 1.64,
// 1.59 and 1.72 %. The paper's programs sample at T = 1/N; the samplers also run at T = 1, the
// posterior, where their errors are larger after the same number of epochs. Two seeds of one width
// take 50 minutes on two cores, all of the table many hours: the program prints its cost first,
// keeps finished cells, and resumes when it is run again.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/interrupt"
)

const about = `Trains perceptrons 784-h-h-10 on permutation-invariant MNIST with each method and prints test errors with standard
errors over seeds, next to the published ones (Li et al. 2016, Preconditioned stochastic gradient Langevin dynamics, table 1):
batch 100, 100 epochs, rates halved every 20, alpha 0.99, lambda 1e-5, prior N(0, 1), a sample every 300 steps. The paper's
programs sample at T = 1/N; the posterior is T = 1. Prints first what this will cost, from a few steps of each method.
Each finished cell is a file in the folder, each unfinished one a run: a table that was stopped or killed is resumed when the
same command is run again.

  perceptrons -estimate
  perceptrons -widths 400 -seeds 5
  perceptrons -methods psgld -temperatures 1 -widths 1200
`

func main() {
	ctx, release := interrupt.Context()
	defer release()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(interrupt.ExitCode(ctx))
	}
}

// study has the flags, the data and the rows of the table.
type study struct {
	methods, temperatures []string
	widths                []int
	seeds, epochs, jobs   int
	seed                  uint64
	rate, preconditioned  float64
	data, dataDir         string
	dir                   string
	estimate              bool

	train, test *datasets.Dataset
	titles      map[cell]string // of the rows
	order       map[cell]int    // of the rows
	progress    io.Writer
	now         func() time.Time
}

func run(ctx context.Context, arguments []string, out, progress io.Writer) error {
	t := &study{progress: progress, now: time.Now}
	if err := t.parse(arguments, progress); err != nil {
		return err
	}
	if err := t.load(ctx); err != nil {
		return err
	}
	cells, err := t.cells()
	if err != nil {
		return err
	}
	var results []*result
	var missing []cell
	for _, c := range cells {
		done, err := c.read(t.dir)
		if err != nil {
			return err
		}
		if done == nil {
			missing = append(missing, c)
			continue
		}
		results = append(results, done)
	}
	if err := t.announce(ctx, missing, len(cells)); err != nil || t.estimate {
		return err
	}
	made, err := t.makeCells(ctx, missing)
	results = append(results, made...)
	if err != nil {
		fmt.Fprintf(progress, "%d of %d cells are in %s. The same command resumes from there.\n", len(results), len(cells), t.dir)
	}
	if len(results) > 0 {
		err = cmp.Or(err, t.print(results, out))
	}
	return err
}

// parse reads the flags and checks all that can be checked without the data.
func (t *study) parse(arguments []string, help io.Writer) error {
	f := flag.NewFlagSet("perceptrons", flag.ContinueOnError)
	f.SetOutput(help)
	f.Usage = func() {
		fmt.Fprint(help, about, "\n")
		f.PrintDefaults()
	}
	methods := f.String("methods", "psgld,sgld,rmsprop,sgd", "methods, the rows of the table")
	temperatures := f.String("temperatures", "1/N,1", "temperatures of the samplers: numbers, or 1/N")
	widths := f.String("widths", "400,800,1200", "widths of the hidden layers, h")
	f.IntVar(&t.seeds, "seeds", 5, "runs of each cell, from different initial values and with different noise")
	f.IntVar(&t.epochs, "epochs", 100, "passes over the data")
	f.Float64Var(&t.preconditioned, "preconditioned-rate", 5e-4, "first learning rate of pSGLD and RMSprop, on the mean loss")
	f.Float64Var(&t.rate, "rate", 0.2, "first learning rate of SGLD and SGD, on the mean loss")
	f.Uint64Var(&t.seed, "seed", 1, "seed of everything random")
	f.StringVar(&t.dir, "folder", "runs/table", "directory of the cells")
	f.IntVar(&t.jobs, "jobs", 2, "number of cells at a time, each on one thread")
	f.BoolVar(&t.estimate, "estimate", false, "print the cost and stop")
	f.StringVar(&t.data, "data", "mnist", "data set")
	f.StringVar(&t.dataDir, "data-folder", "", "directory of data files that do not come with the program")
	if err := f.Parse(arguments); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return errors.Errorf("perceptrons: takes flags only, got %q", f.Arg(0))
	}
	t.methods, t.temperatures = strings.Split(*methods, ","), strings.Split(*temperatures, ",")
	for _, name := range t.methods {
		if _, ok := methodOf[name]; !ok {
			return errors.Errorf("perceptrons: no method %q; there are psgld, sgld, rmsprop, sgd", name)
		}
	}
	for _, text := range strings.Split(*widths, ",") {
		width, err := strconv.Atoi(text)
		if err != nil {
			return errors.Errorf("perceptrons: widths: %q is not an integer", text)
		}
		t.widths = append(t.widths, width)
	}
	for _, count := range []struct {
		name  string
		value int
	}{{"seeds", t.seeds}, {"epochs", t.epochs}, {"jobs", t.jobs}, {"widths", slices.Min(t.widths)}} {
		if count.value < 1 {
			return errors.Errorf("perceptrons: %s must be at least 1, got %d", count.name, count.value)
		}
	}
	return nil
}

func (t *study) load(ctx context.Context) error {
	data, err := datasets.Open(t.data, datasets.Options{Dir: t.dataDir, Context: ctx, Validation: -1})
	if err != nil {
		return err
	}
	if data.Test == nil {
		return errors.Errorf("perceptrons: %s has no test images", t.data)
	}
	t.train, t.test = data.Train, data.Test
	return nil
}

// cells returns all cells of the table, seed after seed, so that every row soon has a value.
func (t *study) cells() ([]cell, error) {
	t.titles, t.order = map[cell]string{}, map[cell]int{}
	var cells []cell
	names := map[string]bool{}
	for chain := range t.seeds {
		for _, width := range t.widths {
			for _, name := range t.methods {
				temperatures := t.temperatures
				if methodOf[name].optimizer {
					temperatures = []string{"0"}
				}
				for _, text := range temperatures {
					next, err := t.cell(name, text, width, chain)
					if err != nil {
						return nil, err
					}
					if name := next.String(); names[name] {
						return nil, errors.Errorf("perceptrons: two cells are called %s: methods, temperatures and widths must differ", name)
					} else {
						names[name] = true
					}
					if _, ok := t.order[next.row()]; !ok {
						t.order[next.row()] = len(t.order)
						t.titles[next.row()] = methodOf[name].title
						if !methodOf[name].optimizer {
							t.titles[next.row()] += ", T = " + text
						}
					}
					cells = append(cells, next)
				}
			}
		}
	}
	return cells, nil
}

func (t *study) cell(name, temperature string, width, chain int) (cell, error) {
	method := methodOf[name]
	c := cell{
		Method: name, Data: t.train.Name, DataSize: t.train.Len(), Width: width, Epochs: t.epochs, Rate: t.rate, Seed: t.seed, Chain: chain,
	}
	if method.preconditioned {
		c.Rate = t.preconditioned
	}
	if temperature == "1/N" {
		c.Temperature = 1 / float64(t.train.Len())
		return c, nil
	}
	var err error
	if c.Temperature, err = strconv.ParseFloat(temperature, 64); err != nil || !(c.Temperature >= 0 && c.Temperature <= 1e6) {
		return c, errors.Errorf("perceptrons: the temperature must be 1/N or a number from 0 to 1e6, got %q", temperature)
	}
	if c.Temperature == 0 && !method.optimizer {
		return c, errors.Errorf("perceptrons: %s at temperature 0 is an optimizer, see -methods", name)
	}
	return c, nil
}
