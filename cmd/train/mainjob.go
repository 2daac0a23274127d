package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

// mainJob is what train does without a command: four methods, digits against letters.
type mainJob struct {
	seed       uint64
	device     deviceFlags
	folder     string
	dataFolder string
	data       string // digits
	letters    string
	methods    []entry
}

// entry is one of the ways to train that the main job compares.
type entry struct {
	title string
	spec  pollen.Spec
}

// defaultMainJob is sized for two cores and two minutes.
func defaultMainJob() *mainJob {
	spec := func(epochs int, m pollen.Method, schedule optimizers.Schedule) pollen.Spec {
		return pollen.Spec{Network: "lenet-small", Batch: 100, Epochs: epochs, Method: m, Schedule: schedule}
	}
	sampler := func(chains, epochs, burnIn, samples int, prior langevin.Prior, m pollen.Method, schedule optimizers.Schedule) pollen.Spec {
		s := spec(epochs, m, schedule)
		s.Chains, s.BurnIn, s.Samples, s.Prior = chains, &burnIn, samples, &prior
		return s
	}
	sgd := spec(4, optimizers.SGD{WeightDecay: 1.67e-4}, optimizers.Cosine{First: 0.1})
	// Without a thermostat steps must end so small that minibatches heat by less than 5 %, and then
	// are too small to leave the start: under the prior from which lenet-small's weights are drawn
	// at first, most have little way to go.
	sgld := sampler(2, 4, 2, 10, langevin.FanIn(1), langevin.SGLD{}, optimizers.Polynomial{First: 0.2, Last: 0.03, Exponent: 0.55})
	psgld := sampler(2, 4, 2, 10, langevin.FanIn(1), langevin.PSGLD{Alpha: 0.99, Lambda: 1e-5, Gamma: langevin.GammaFrozen},
		optimizers.Polynomial{First: 0.002, Last: 0.0002, Exponent: 0.55})
	sgnht := sampler(3, 12, 6, 10, langevin.FanIn(2), langevin.SGNHT{Friction: 0.07, Splitting: langevin.SplittingBADODAB, Coupling: 1e-3},
		optimizers.Constant{Rate: 0.02})
	return &mainJob{data: "mnist", methods: []entry{{"SGD", sgd}, {"SGLD", sgld}, {"pSGLD", psgld}, {"SGNHT", sgnht}}}
}

// lettersSets are the data sets of letters.
var lettersSets = []string{"glyphs", "notmnist"}

func (j *mainJob) bind(f *pflag.FlagSet) {
	f.StringVar(&j.letters, "letters", lettersSets[0], "data set of letters: glyphs, which needs no download, or notmnist")
	f.StringVar(&j.folder, "folder", "", "run folder, new or empty (default runs/main-1, -2, ...)")
	f.Uint64Var(&j.seed, "seed", 1, "seed of everything random")
	bindDataFolder(f, &j.dataFolder)
	j.device.bind(f)
}

// shows are the data that the networks learn from, are tested on, and have never seen.
type shows struct{ train, digits, letters *datasets.Dataset }

func (j *mainJob) run(ctx context.Context, c *console) error {
	if err := j.prepare(); err != nil {
		return err
	}
	device, err := j.device.open(c)
	if err != nil {
		return err
	}
	defer device.Close()
	data, err := j.load(ctx, c)
	if err != nil {
		return err
	}
	if err := printSummary(j.methods[0].spec, &datasets.Splits{Train: data.train, Test: data.digits}, c); err != nil {
		return err
	}
	var runs []comparison
	for _, m := range j.methods {
		run, err := j.try(ctx, m, data, device, c)
		if err != nil {
			remarkKept(err, c)
			if len(runs) > 0 {
				if reporting := j.report(runs, data, c); reporting != nil {
					c.remark("%v", reporting)
				}
			}
			return err
		}
		runs = append(runs, run)
	}
	return j.report(runs, data, c)
}

// prepare refuses mistakes before any work is done.
func (j *mainJob) prepare() error {
	if j.letters != lettersSets[0] && j.letters != lettersSets[1] {
		return usage("train: letters: no data set %q; there are %s", j.letters, strings.Join(lettersSets, ", "))
	}
	if err := wrapUsage(j.device.Validate()); err != nil {
		return err
	}
	var err error
	j.folder, err = freshFolder(j.folder, "main")
	return err
}

func (j *mainJob) load(ctx context.Context, c *console) (s shows, err error) {
	data := dataFlags{name: j.data, folder: j.dataFolder}
	splits, err := data.open(ctx, c)
	if err != nil {
		return s, err
	}
	data.name = j.letters
	o, err := data.options(ctx, c)
	if err != nil {
		return s, err
	}
	letters, err := datasets.Load(j.letters, datasets.Test, o)
	if err != nil {
		return s, err
	}
	c.skipped(letters)
	return shows{splits.Train, splits.Test, letters}, nil
}

// try trains with one method and scores it.
func (j *mainJob) try(ctx context.Context, m entry, data shows, device tensor.Device, c *console) (comparison, error) {
	m.spec.Seed = j.seed
	notes := map[string]string{"data": j.data, "device": j.device.Name}
	if j.dataFolder != "" {
		notes["data-folder"] = j.dataFolder
	}
	if j.device.Precision != "" {
		notes["precision"] = j.device.Precision
	}
	defer c.endProgress()
	run, err := pollen.Fit(ctx, m.spec, &datasets.Splits{Train: data.train, Test: data.digits}, filepath.Join(j.folder, strings.ToLower(m.title)),
		pollen.WithDevice(device), pollen.WithObserver(c.observer(m.title)), pollen.WithNotes(notes))
	if err != nil {
		return comparison{}, err
	}
	compared := []comparison{{name: m.title, run: run}}
	err = assess(ctx, compared, data.digits, data.letters, c)
	return compared[0], err
}

// report writes the figures, the page and the tables of the finished methods.
func (j *mainJob) report(runs []comparison, data shows, c *console) error {
	if err := printScores(runs, c); err != nil {
		return err
	}
	table, err := report.ScoreTable(subjectsOf(runs, nil, nil))
	if err != nil {
		return err
	}
	var markdown strings.Builder
	if err := table.WriteMarkdown(&markdown); err != nil {
		return err
	}
	if err := file.Write(filepath.Join(j.folder, "table.md"), []byte(markdown.String())); err != nil {
		return errors.Wrap(err, "train: table")
	}
	fmt.Fprintln(c.out)
	if err := printChains(runs, c); err != nil {
		return err
	}
	if _, err := writePage(j.folder, runs, data.digits, data.letters); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "\nRun folder: %s (open report.html there)\n", j.folder)
	return nil
}
