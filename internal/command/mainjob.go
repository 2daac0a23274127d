package command

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/comparison"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

// mainJob is the default command: four methods trained on digits, with letters out of distribution.
type mainJob struct {
	seed    uint64
	device  deviceFlags
	dir     string
	resume  string // directory of a comparison to continue
	dataDir string
	data    string // digits
	letters string
	methods []comparison.Entry
}

// defaultMainJob takes about two minutes on two cores.
func defaultMainJob() *mainJob {
	spec := func(epochs int, m bayes.Method, schedule optimizers.Schedule) bayes.Spec {
		return bayes.Spec{Network: "lenet-small", Batch: 100, Epochs: epochs, Method: m, Schedule: schedule}
	}
	sampler := func(chains, epochs, burnIn, samples int, prior langevin.Prior, m bayes.Method, schedule optimizers.Schedule) bayes.Spec {
		s := spec(epochs, m, schedule)
		s.Chains, s.BurnIn, s.Samples, s.Prior = chains, &burnIn, samples, &prior
		return s
	}
	sgd := spec(4, optimizers.SGD{WeightDecay: 1.67e-4}, optimizers.Cosine{First: 0.1})
	// Without a thermostat, steps must be so small that minibatch noise heats by less than 5 %.
	// Such steps are too small to leave the start in this time. The prior is therefore the
	// distribution of lenet-small's initial weights, under which most weights start in equilibrium.
	sgld := sampler(2, 4, 2, 10, langevin.FanIn(1), langevin.SGLD{}, optimizers.Constant{Rate: 0.035})
	psgld := sampler(2, 4, 2, 10, langevin.FanIn(1), langevin.PSGLD{Alpha: 0.99, Lambda: 1e-5, Gamma: langevin.GammaFrozen},
		optimizers.Constant{Rate: 0.0003})
	sgnht := sampler(3, 14, 6, 10, langevin.FanIn(2), langevin.SGNHT{Friction: 0.1, Splitting: langevin.SplittingBADODAB, Coupling: 1e-3},
		optimizers.Constant{Rate: 0.02})
	return &mainJob{data: "mnist", methods: []comparison.Entry{
		{Title: "SGD", Spec: sgd}, {Title: "SGLD", Spec: sgld}, {Title: "pSGLD", Spec: psgld}, {Title: "SGNHT", Spec: sgnht},
	}}
}

// lettersSets are the data sets of letters.
var lettersSets = []string{"glyphs", "notmnist"}

func (j *mainJob) bind(f *pflag.FlagSet) {
	f.StringVar(&j.letters, "letters", lettersSets[0], "out-of-distribution data: glyphs, which needs no download, or notmnist")
	f.StringVar(&j.dir, "folder", "", "run directory, new or empty (default runs/main-1, runs/main-2, ...)")
	f.Uint64Var(&j.seed, "seed", 1, "random seed")
	config.BindDataDir(f, &j.dataDir)
	f.StringVar(&j.resume, "resume", "", "directory of a comparison to continue; combines only with --device, --threads, --precision and --data-folder")
	j.device.bind(f)
}

// mainData are the training data, the test data and the out-of-distribution data.
type mainData struct{ train, digits, letters *datasets.Dataset }

func (j *mainJob) run(ctx context.Context, given *pflag.FlagSet, c *console) (err error) {
	all, err := j.prepare(given)
	defer func() {
		if all != nil {
			err = cmp.Or(err, all.Close())
		}
	}()
	if err != nil {
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
	if err := printSummary(j.methods[0].Spec, &datasets.Splits{Train: data.train, Test: data.digits}, c); err != nil {
		return err
	}
	if all == nil {
		if all, err = j.create(); err != nil {
			return err
		}
	}
	if remark := all.Remark(); remark != "" {
		c.remark("%s", remark)
	}
	var runs []scoredRun
	for _, m := range j.methods {
		run, err := j.fit(ctx, all, m, data, device, c)
		if err != nil {
			err = remarkKept(err, c)
			c.remark("Continue the comparison with: %s --resume %s", program(os.Executable()), config.Quoted(j.dir))
			if len(runs) > 0 {
				if _, reporting := j.report(runs, data, c); reporting != nil {
					c.remark("%v", reporting)
				}
			}
			return err
		}
		runs = append(runs, run)
	}
	notInEquilibrium, err := j.report(runs, data, c)
	if err != nil || len(notInEquilibrium) == 0 {
		return err
	}
	return j.suggestEquilibrium(ctx, notInEquilibrium, data.train, device, c)
}

// prepare checks the flags before any work is done, and opens the comparison of --resume, if given.
func (j *mainJob) prepare(given *pflag.FlagSet) (*comparison.Comparison, error) {
	if j.letters != lettersSets[0] && j.letters != lettersSets[1] {
		return nil, usage("pollen: --letters must be one of %[2]s, got %[1]q", j.letters, strings.Join(lettersSets, ", "))
	}
	err := config.AsUsageError(j.device.Validate())
	if err == nil && j.resume != "" {
		return j.openResumed(given)
	}
	if err == nil {
		j.dir, err = newRunDir(j.dir, "main")
	}
	return nil, err
}

// create starts a comparison.
func (j *mainJob) create() (*comparison.Comparison, error) {
	for i := range j.methods {
		j.methods[i].Spec.Seed = j.seed
	}
	notes := map[string]string{
		"data": j.data, "letters": j.letters, "data-folder": config.Absolute(j.dataDir),
		"device": j.device.Name, "precision": j.device.Precision,
	}
	return comparison.Create(j.dir, j.methods, notes)
}

// openResumed opens the comparison of --resume. Flags that may be combined with it override its
// notes.
func (j *mainJob) openResumed(given *pflag.FlagSet) (*comparison.Comparison, error) {
	if err := checkResumeFlags(given, "comparison", ""); err != nil {
		return nil, err
	}
	all, err := comparison.Open(j.resume)
	if err != nil {
		return nil, err
	}
	notes := all.Notes
	j.dir, j.methods, j.data, j.letters = j.resume, all.Entries, notes["data"], notes["letters"]
	j.device.asNoted(notes, given)
	if !given.Changed("data-folder") {
		j.dataDir = notes["data-folder"]
	}
	return all, nil
}

func (j *mainJob) load(ctx context.Context, c *console) (s mainData, err error) {
	data := config.Data{Name: j.data, Dir: j.dataDir}
	splits, err := openData(ctx, data, c)
	if err != nil {
		return s, err
	}
	data.Name = j.letters
	o, err := c.options(ctx, data)
	if err != nil {
		return s, err
	}
	letters, err := datasets.Load(j.letters, datasets.Test, o)
	if err != nil {
		return s, err
	}
	return mainData{splits.Train, splits.Test, letters}, nil
}

// fit trains with one method, or continues its run, and scores it.
func (j *mainJob) fit(ctx context.Context, all *comparison.Comparison, m comparison.Entry, data mainData, device tensor.Device, c *console) (scoredRun, error) {
	notes := map[string]string{"data": j.data, "device": j.device.Name, "data-folder": config.Absolute(j.dataDir), "precision": j.device.Precision}
	maps.DeleteFunc(notes, emptyNote)
	defer c.endProgress()
	run, err := all.Fit(ctx, m, &datasets.Splits{Train: data.train, Test: data.digits},
		bayes.WithDevice(device), bayes.WithObserver(c.observer(m.Title)), bayes.WithNotes(notes))
	if err != nil {
		return scoredRun{}, err
	}
	scored := []scoredRun{{name: m.Title, run: run}}
	if err = assess(ctx, scored, data.digits, data.letters, c); err == nil {
		err = run.RecordTest(scored[0].assessment.In)
	}
	return scored[0], err
}

// report writes the figures, the page and the tables of the finished methods. It returns the names
// of samplers that are not in equilibrium.
func (j *mainJob) report(runs []scoredRun, data mainData, c *console) (notInEquilibrium []string, err error) {
	if err := printScores(runs, subjectsOf(runs, nil, nil), "", false, c); err != nil {
		return nil, err
	}
	table, err := report.ScoreTable(subjectsOf(runs, nil, nil))
	if err != nil {
		return nil, err
	}
	var markdown strings.Builder
	if err := table.WriteMarkdown(&markdown); err != nil {
		return nil, err
	}
	if err := file.Write(filepath.Join(j.dir, "table.md"), []byte(markdown.String())); err != nil {
		return nil, errors.Wrap(err, "pollen: table")
	}
	fmt.Fprintln(c.out)
	notInEquilibrium, err = printChains(runs, false, c)
	if err != nil {
		return nil, err
	}
	// A run that was stopped also has its page.
	if _, err := writePage(context.Background(), j.dir, runs, data.digits, data.letters); err != nil {
		return nil, err
	}
	fmt.Fprintf(c.out, "\nRun directory: %s (open report.html there)\n", j.dir)
	return notInEquilibrium, nil
}
