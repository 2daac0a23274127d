package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/langevin"
)

// mainJob is what train does without a command: three methods on one network, digits against letters.
type mainJob struct {
	seed       uint64
	device     string
	threads    int
	folder     string
	dataFolder string
	letters    string
	methods    []method
}

// method is one of the ways to train that the main job compares.
type method struct {
	title  string
	config Config
}

// defaultMainJob is sized for two cores and a few minutes.
func defaultMainJob() *mainJob {
	common := Config{Model: "lenet-small", Data: "mnist", Batch: 100, Chains: 1}
	sgd, sgld, psgld := common, common, common
	sgd.Sampler, sgd.Schedule, sgd.Epochs = "sgd", "constant:0.1", 5
	sgld.Sampler, sgld.Schedule, sgld.Epochs = "sgld", "constant:0.2", 8
	sgld.BurnIn, sgld.Samples = orElse[int](nil, 3), orElse[int](nil, 10)
	psgld.Sampler, psgld.Schedule, psgld.Epochs = "psgld", "constant:0.002", 8
	psgld.BurnIn, psgld.Samples = orElse[int](nil, 3), orElse[int](nil, 10)
	return &mainJob{methods: []method{{"SGD", sgd}, {"SGLD", sgld}, {"pSGLD", psgld}}}
}

func (j *mainJob) bindFlags(f *pflag.FlagSet) {
	f.Uint64Var(&j.seed, "seed", 1, "seed of everything random")
	f.StringVar(&j.device, "device", "auto", "device: auto or cpu")
	f.IntVar(&j.threads, "threads", 0, "threads of the cpu device, 0 for all")
	f.StringVar(&j.folder, "folder", "", "run folder, new or empty (default runs/main-1, -2, ...)")
	f.StringVar(&j.dataFolder, "data-folder", "", "folder with data sets, looked into first")
	f.StringVar(&j.letters, "letters", "glyphs", "data set of letters: glyphs, which needs no download, or notmnist")
}

// outcome is one method's run and how it does.
type outcome struct {
	method     method
	result     result
	assessment *assessment
}

func (j *mainJob) run(ctx context.Context, c *console) error {
	train, err := loadData(ctx, "mnist", datasets.Train, j.dataFolder, c)
	if err != nil {
		return err
	}
	digits, err := loadData(ctx, "mnist", datasets.Test, j.dataFolder, c)
	if err != nil {
		return err
	}
	letters, err := loadData(ctx, j.letters, datasets.Test, j.dataFolder, c)
	if err != nil {
		return err
	}
	device, err := openDevice(j.device, j.threads, c)
	if err != nil {
		return err
	}
	defer device.Close()
	if j.folder == "" {
		if j.folder, err = newRunFolder("main"); err != nil {
			return err
		}
	}
	if err := makeFolder(j.folder); err != nil {
		return err
	}
	if err := printSummary(j.methods[0].config, train, c); err != nil {
		return err
	}
	var outcomes []outcome
	for _, m := range j.methods {
		m.config.Seed, m.config.Device, m.config.Threads, m.config.DataFolder = j.seed, j.device, j.threads, j.dataFolder
		folder := filepath.Join(j.folder, strings.ToLower(m.title))
		r, err := fit(ctx, m.config, m.title, folder, false, train, device, c)
		if err != nil {
			c.remark("%s: %d samples in %s", m.title, r.samples, folder)
			return err
		}
		a, err := assess(folder, digits, letters, device)
		if err != nil {
			return err
		}
		outcomes = append(outcomes, outcome{m, r, a})
	}
	return j.report(outcomes, digits, letters, c)
}

// report writes the figures, the page and the tables.
func (j *mainJob) report(outcomes []outcome, digits, letters *datasets.Dataset, c *console) error {
	table := newScoreTable("digits", "letters")
	for _, o := range outcomes {
		if err := addScores(table, o.method.title, o.assessment); err != nil {
			return err
		}
	}
	if err := writePage(j.folder, outcomes, table, digits, letters); err != nil {
		return err
	}
	var markdown strings.Builder
	if err := table.WriteMarkdown(&markdown); err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(j.folder, "table.md"), []byte(markdown.String()), 0o644); err != nil {
		return errors.Wrap(err, "train: table")
	}
	fmt.Fprintln(c.out)
	if err := table.WriteText(c.out); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s\n\n", detectionNote)
	for _, o := range outcomes {
		printRun(o.result, c)
	}
	fmt.Fprintf(c.out, "\nRun folder: %s (open report.html there)\n", j.folder)
	return nil
}

// equilibriumTolerance is how far the measured temperature may be from the requested one before a run says that it has not
// equilibrated; mixedRHat likewise for split R-hat.
const (
	equilibriumTolerance = 0.05
	mixedRHat            = 1.01
)

// printRun tells what a run's chains did: temperature, mixing, time.
func printRun(r result, c *console) { writeRun(c.out, r) }

func writeRun(w io.Writer, r result) {
	fmt.Fprintf(w, "%-6s %d samples, %.0f s. ", r.config.Sampler, r.samples, r.seconds)
	if !r.config.isSampler() {
		fmt.Fprintf(w, "Temperature measured over the last epoch %.3g; an optimizer asks for none.\n", r.temperature)
		return
	}
	requested := *r.config.Temperature
	fmt.Fprintf(w, "Temperature requested %g, measured %.3g", requested, r.temperature)
	var layers []string
	for _, l := range r.layers {
		layers = append(layers, fmt.Sprintf("%s %.3g", l.name, l.temperature))
	}
	fmt.Fprintf(w, " (%s).", strings.Join(layers, ", "))
	if math.Abs(r.temperature-requested) > equilibriumTolerance*requested {
		fmt.Fprint(w, " Not in equilibrium yet: a longer run, or a larger step, would come closer.")
	}
	for _, quantity := range []struct {
		name   string
		chains [][]float64
	}{{"loss", r.lossTrace}, {r.watched, r.weightTrace}} {
		rHat, err := langevin.SplitRHat(quantity.chains)
		if err != nil {
			continue // fewer than four steps: nothing to split
		}
		fmt.Fprintf(w, " Split R-hat of %s %.3f", quantity.name, rHat)
		if rHat > mixedRHat {
			fmt.Fprint(w, " (not mixed)")
		}
		fmt.Fprint(w, ".")
	}
	fmt.Fprintln(w)
}

// traceWindow is the length, in steps, of the windows of the weight's densities.
func traceWindow(length int) int { return max(2, length/6) }
