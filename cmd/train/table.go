package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/tensor"
)

// tableMethods are the rows of the table of Li et al. 2016.
var tableMethods = map[string]struct {
	title          string
	preconditioned bool
	optimizer      bool
}{
	"psgld":   {"pSGLD", true, false},
	"sgld":    {"SGLD", false, false},
	"rmsprop": {"RMSprop", true, true},
	"sgd":     {"SGD", false, true},
}

// comparison is the table's flags.
type comparison struct {
	methods, temperatures []string
	widths                []int
	seeds, epochs, jobs   int
	seed                  uint64
	rate, preconditioned  float64
	data, dataFolder      string
	folder                string
	estimate              bool

	train, test *datasets.Dataset
	titles      map[cell]string // of the rows
	order       map[cell]int    // likewise
}

func tableCommand(c *console) *cobra.Command {
	var t comparison
	command := &cobra.Command{
		Use:   "table",
		Short: "compare pSGLD, SGLD, RMSprop and SGD as Li et al. 2016 did",
		Long: `Trains perceptrons 784-h-h-10 on permutation-invariant MNIST by each method and prints test errors with standard errors over
seeds, beside the published ones (Li et al. 2016, Preconditioned stochastic gradient Langevin dynamics, table 1): batch 100, 100
epochs, rates halved every 20, alpha 0.99, lambda 1e-5, prior N(0, 1), a sample per 300 steps. The paper's programs
sample at T = 1/N; the posterior is T = 1. First it prints what the whole will cost, from a few steps of each method. Each
finished cell is a file in the folder: a table that was stopped, or killed, goes on from there when it is run again.`,
		Example: `  train table --estimate
  train table --widths 400 --seeds 5
  train table --methods psgld --temperatures 1 --widths 1200`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return t.run(command.Context(), c) },
	}
	f := command.Flags()
	f.StringSliceVar(&t.methods, "methods", []string{"psgld", "sgld", "rmsprop", "sgd"}, "rows")
	f.StringSliceVar(&t.temperatures, "temperatures", []string{"1/N", "1"}, "temperatures of the samplers: numbers, or 1/N")
	f.IntSliceVar(&t.widths, "widths", []int{400, 800, 1200}, "widths of the hidden layers, h")
	f.IntVar(&t.seeds, "seeds", 5, "runs of each cell, from different initial values and with different noise")
	f.IntVar(&t.epochs, "epochs", 100, "passes over the data")
	f.Float64Var(&t.preconditioned, "preconditioned-rate", 5e-4, "first learning rate of pSGLD and RMSprop, on the mean loss")
	f.Float64Var(&t.rate, "rate", 0.2, "first learning rate of SGLD and SGD, on the mean loss")
	f.Uint64Var(&t.seed, "seed", 1, "seed of everything random")
	f.StringVar(&t.folder, "folder", "runs/table", "folder of the finished cells")
	f.IntVar(&t.jobs, "jobs", 2, "cells at a time, each on one thread")
	f.BoolVar(&t.estimate, "estimate", false, "print what it would cost, and stop")
	f.StringVar(&t.data, "data", "mnist", "data set")
	bindDataFolder(f, &t.dataFolder)
	return command
}

func (t *comparison) run(ctx context.Context, c *console) error {
	if err := t.check(); err != nil {
		return err
	}
	var err error
	if t.train, err = loadData(ctx, t.data, datasets.Train, t.dataFolder, c); err != nil {
		return err
	}
	if t.test, err = loadData(ctx, t.data, datasets.Test, t.dataFolder, c); err != nil {
		return err
	}
	cells, err := t.cells()
	if err != nil {
		return err
	}
	var results []*cellResult
	var missing []cell
	for _, cell := range cells {
		done, err := cell.read(t.folder)
		if err != nil {
			return err
		}
		if done == nil {
			missing = append(missing, cell)
			continue
		}
		results = append(results, done)
	}
	if err := t.announce(ctx, missing, len(cells), c); err != nil || t.estimate {
		return err
	}
	if err := os.MkdirAll(t.folder, 0o755); err != nil {
		return errors.Wrap(err, "train: table")
	}
	made, err := t.makeCells(ctx, missing, c)
	results = append(results, made...)
	if err != nil {
		c.remark("%d of %d cells are in %s. The same command goes on from there.", len(results), len(cells), t.folder)
	}
	if len(results) > 0 {
		if printing := t.print(results, c); err == nil {
			err = printing
		}
	}
	return err
}

// check refuses what can be told without the data.
func (t *comparison) check() error {
	if err := checkData("data", t.data, datasets.Names()); err != nil {
		return err
	}
	for _, method := range t.methods {
		if _, ok := tableMethods[method]; !ok {
			return usage("train: table: no method %q; there are psgld, sgld, rmsprop, sgd", method)
		}
	}
	for _, count := range []struct {
		name  string
		value int
	}{{"seeds", t.seeds}, {"epochs", t.epochs}, {"jobs", t.jobs}, {"widths", slices.Min(append([]int{1}, t.widths...))}} {
		if count.value < 1 {
			return usage("train: table: %s is %d, wants at least 1", count.name, count.value)
		}
	}
	return nil
}

// cells are all of the table, the first seed's first, so that every row has a figure early.
func (t *comparison) cells() ([]cell, error) {
	t.titles, t.order = map[cell]string{}, map[cell]int{}
	var cells []cell
	for chain := range t.seeds {
		for _, width := range t.widths {
			for _, name := range t.methods {
				method := tableMethods[name]
				temperatures := t.temperatures
				if method.optimizer {
					temperatures = []string{"0"}
				}
				for _, text := range temperatures {
					temperature, err := t.temperature(text)
					if err != nil {
						return nil, err
					}
					if temperature == 0 && !method.optimizer {
						return nil, usage("train: table: %s at temperature 0 is an optimizer: see --methods", name)
					}
					next := cell{
						Method: name, Data: t.train.Name, DataSize: t.train.Len(), Width: width, Temperature: temperature,
						Epochs: t.epochs, Rate: t.rate, Seed: t.seed, Chain: chain,
					}
					if method.preconditioned {
						next.Rate = t.preconditioned
					}
					if err := next.plan().Validate(); err != nil {
						return nil, wrapUsage(err)
					}
					if _, ok := t.order[next.row()]; !ok {
						t.order[next.row()] = len(t.order)
					}
					t.titles[next.row()] = method.title
					if !method.optimizer {
						t.titles[next.row()] += ", T = " + text
					}
					cells = append(cells, next)
				}
			}
		}
	}
	return cells, nil
}

// row is what the cells of a row have in common.
func (c cell) row() cell {
	c.Width, c.Chain = 0, 0
	return c
}

func (t *comparison) temperature(text string) (float64, error) {
	if text == "1/N" {
		return 1 / float64(t.train.Len()), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= 1e6) {
		return 0, usage("train: table: temperature %q, wants 1/N or a number of at least 0", text)
	}
	return v, nil
}

// announce says what the missing cells will cost, by a few steps of each kind.
func (t *comparison) announce(ctx context.Context, missing []cell, all int, c *console) error {
	if len(missing) == 0 {
		c.remark("all %d cells are in %s", all, t.folder)
		return nil
	}
	device := tensor.NewHost(1)
	defer device.Close()
	costs := map[cell]time.Duration{}
	var total time.Duration
	for _, cell := range missing {
		kind := cell
		kind.Chain = 0
		cost, ok := costs[kind]
		if !ok {
			var err error
			if cost, err = t.measure(ctx, kind, device, c); err != nil {
				return err
			}
			costs[kind] = cost
		}
		total += cost
	}
	each := total / time.Duration(min(t.jobs, len(missing)))
	c.remark("%d of %d cells are to be made, about %s with %d at a time", len(missing), all, each.Round(time.Second), t.jobs)
	return nil
}

// measure is how long a cell takes, from the time of some steps and of one prediction.
func (t *comparison) measure(ctx context.Context, cell cell, device tensor.Device, c *console) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, errors.Wrap(err, "train: table")
	}
	r, err := cell.begin(t.train, t.test, device)
	if err != nil {
		return 0, err
	}
	defer r.close()
	const warm, timed = 3, 20
	plan := cell.plan()
	if err := r.session.Run(min(warm, plan.Steps)); err != nil {
		return 0, err
	}
	start := c.now()
	if err := r.session.Run(timed); err != nil {
		return 0, err
	}
	step := c.now().Sub(start) / timed
	start = c.now()
	if err := r.sample(); err != nil {
		return 0, err
	}
	prediction := c.now().Sub(start)
	cost := step*time.Duration(plan.Steps) + prediction*time.Duration(plan.Samples())
	c.remark("%-18s %d steps of %.2f ms, %s of %.0f ms: %s", strings.TrimSuffix(cell.String(), "-chain0"), plan.Steps, milliseconds(step),
		counted(plan.Samples(), "prediction"), milliseconds(prediction), cost.Round(time.Second))
	return cost, nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// makeCells runs cells, some at a time, and writes each when it is done. It returns those that were done when the first failed.
func (t *comparison) makeCells(ctx context.Context, cells []cell, c *console) ([]*cellResult, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	total := 0
	for _, cell := range cells {
		total += cell.plan().Steps
	}
	if total == 0 {
		return nil, nil
	}
	var mu sync.Mutex
	var results []*cellResult
	var failed error
	steps := 0
	shown := c.progress("table", 0, total)
	defer shown.end()
	show := func() {
		if steps < total || len(results) == len(cells) { // its last step is not yet a cell
			shown.update(steps, fmt.Sprintf("%d of %d cells", len(results), len(cells)))
		}
	}
	work := func(next cell, device tensor.Device) error {
		result, err := next.run(ctx, t.train, t.test, device, c.now, func(made int) {
			mu.Lock()
			defer mu.Unlock()
			steps += made
			show()
		})
		if err == nil {
			err = result.write(t.folder)
		}
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			results = append(results, result)
			show()
		} else if failed == nil {
			failed = err
			cancel()
		}
		return err
	}
	queue := make(chan cell, len(cells))
	for _, cell := range cells {
		queue <- cell
	}
	close(queue)
	var workers sync.WaitGroup
	for range min(t.jobs, len(cells)) {
		workers.Go(func() {
			device := tensor.NewHost(1)
			defer device.Close()
			for next := range queue {
				if work(next, device) != nil {
					return
				}
			}
		})
	}
	workers.Wait()
	return results, failed
}
