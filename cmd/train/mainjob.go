package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/tensor"
)

// mainJob is what train does without a command: three methods on one network, digits against letters.
type mainJob struct {
	seed       uint64
	device     string
	threads    int
	precision  string
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
	common := Config{Model: smallModel, Data: "mnist", Batch: 100, Epochs: 8, Chains: 1}
	// The weight decay 1/(N s^2) is the samplers' prior, N(0, 0.316^2), so that SGD finds the maximum of the posterior they sample.
	sgd := common
	sgd.Sampler, sgd.Schedule = "sgd:1.67e-4", "cosine:0.1,0"
	sampler := common
	sampler.Chains, sampler.BurnIn, sampler.Samples = 2, new(3), new(10)
	sgld, psgld := sampler, sampler
	sgld.Sampler, sgld.Schedule = "sgld", "constant:0.2"
	psgld.Sampler, psgld.Schedule = "psgld", "constant:0.002"
	return &mainJob{methods: []method{{"SGD", sgd}, {"SGLD", sgld}, {"pSGLD", psgld}}}
}

// lettersSets are the data sets of letters.
var lettersSets = []string{"glyphs", "notmnist"}

func (j *mainJob) bindFlags(f *pflag.FlagSet) {
	f.StringVar(&j.letters, "letters", lettersSets[0], "data set of letters: glyphs, which needs no download, or notmnist")
	f.StringVar(&j.folder, "folder", "", "run folder, new or empty (default runs/main-1, -2, ...)")
	f.Uint64Var(&j.seed, "seed", 1, "seed of everything random")
	bindDataFolder(f, &j.dataFolder)
	bindDevice(f, &j.device, &j.threads, &j.precision)
}

// outcome is one method's run and how it does.
type outcome struct {
	method     method
	result     result
	assessment *assessment
}

// shows are the data that the networks learn from, are tested on, and have never seen.
type shows struct{ train, digits, letters *datasets.Dataset }

func (j *mainJob) run(ctx context.Context, c *console) error {
	if err := j.prepare(); err != nil {
		return err
	}
	device, err := openDevice(j.device, j.threads, j.precision, c)
	if err != nil {
		return err
	}
	defer device.Close()
	data, err := j.load(ctx, c)
	if err != nil {
		return err
	}
	if err := printSummary(j.methods[0].config, data.train, c); err != nil {
		return err
	}
	var outcomes []outcome
	for _, m := range j.methods {
		o, err := j.try(ctx, m, data, device, c)
		if err != nil {
			remarkKept(o.result, err, c)
			if len(outcomes) > 0 {
				if reporting := j.report(outcomes, data, c); reporting != nil {
					c.remark("%v", reporting)
				}
			}
			return err
		}
		outcomes = append(outcomes, o)
	}
	return j.report(outcomes, data, c)
}

// prepare refuses what is wrong before any work is done.
func (j *mainJob) prepare() error {
	if err := checkData("letters", j.letters, lettersSets); err != nil {
		return err
	}
	if err := checkDevice(j.device, j.threads, j.precision); err != nil {
		return err
	}
	if j.folder == "" {
		var err error
		if j.folder, err = newRunFolder("main"); err != nil {
			return err
		}
	}
	return checkEmpty(j.folder)
}

func (j *mainJob) load(ctx context.Context, c *console) (shows, error) {
	var s shows
	var err error
	kind := j.methods[0].config.Data
	if s.train, err = loadData(ctx, kind, datasets.Train, j.dataFolder, c); err != nil {
		return s, err
	}
	if s.digits, err = loadData(ctx, kind, datasets.Test, j.dataFolder, c); err != nil {
		return s, err
	}
	s.letters, err = loadData(ctx, j.letters, datasets.Test, j.dataFolder, c)
	return s, err
}

// try trains with one method and scores it.
func (j *mainJob) try(ctx context.Context, m method, data shows, device tensor.Device, c *console) (outcome, error) {
	m.config.Seed, m.config.Device, m.config.Threads, m.config.Precision = j.seed, j.device, j.threads, j.precision
	m.config.DataFolder = j.dataFolder
	o := outcome{method: m}
	folder := filepath.Join(j.folder, strings.ToLower(m.title))
	var err error
	if o.result, err = fit(ctx, m.config, m.title, folder, false, data.train, device, c); err != nil {
		return o, err
	}
	o.assessment, err = assess(ctx, folder, data.digits, data.letters, device, c)
	return o, err
}

// report writes the figures, the page and the tables of the methods that are done.
func (j *mainJob) report(outcomes []outcome, data shows, c *console) error {
	table := newScoreTable("digits", "letters")
	var titles []string
	var results []result
	for _, o := range outcomes {
		if err := addScores(table, o.method.title, o.assessment); err != nil {
			return err
		}
		titles, results = append(titles, o.method.title), append(results, o.result)
	}
	var markdown strings.Builder
	if err := table.WriteMarkdown(&markdown); err != nil {
		return err
	}
	if err := file.Write(filepath.Join(j.folder, "table.md"), []byte(markdown.String())); err != nil {
		return errors.Wrap(err, "train: table")
	}
	if err := table.WriteText(c.out); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s\n\n", detectionNote)
	if err := printRuns(titles, results, c); err != nil {
		return err
	}
	if err := writePage(j.folder, outcomes, data.digits, data.letters); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "\nRun folder: %s (open report.html there)\n", j.folder)
	return nil
}
