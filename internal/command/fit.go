package command

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/export"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
)

// fitFlags are the flags of fit.
type fitFlags struct {
	settings                       config.Settings
	dir, file, resume, tensorBoard string
	task                           taskFlags
	estimate, withoutDamaged       bool
}

func fitCommand(c *console) *cobra.Command {
	var f fitFlags
	command := &cobra.Command{
		Use:   "fit",
		Short: "Train a network and keep its posterior samples",
		Long: "Trains a network, keeps samples of its weights in a run directory, and scores the posterior predictive, which is their\n" +
			"averaged probability, on the test data.\n" +
			config.Listing("Models", append(layers.Names(), "a network file FILE.yaml")...) +
			config.Listing("Data", append(datasets.Names(), "a directory with a directory of images for each class, optionally below train, val and test",
				"Parquet files of images, as on the Hugging Face Hub", "files of arrays (NPZ, IDX, CIFAR, CSV)")...) +
			config.Listing("Methods", bayes.MethodNames()...) +
			config.Listing("", append([]string{"with attributes, by name or in order"}, bayes.MethodForms()...)...) +
			config.Listing("Schedules", optimizers.ScheduleForms()...),
		Example: `  pollen fit --method psgld --chains 4 --folder runs/four
  pollen fit --data flowers --model cnn --method sghmc --epochs 20
  pollen fit --method momentum:decay=0.9,weight-decay=1e-4 --schedule cosine:0.02,0 --epochs 5
  pollen fit --model mlp-400-400 --prior laplace:0.1 --temperature 0.5
  pollen fit --config run.yaml --seed 2            # a file's settings with another seed
  pollen fit --config runs/four/manifest.json      # repeat a run
  pollen fit --resume runs/four                    # continue after Ctrl-C, a crash, a reboot`,
		Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error { return f.run(command.Context(), command.Flags(), c) },
	}
	flags := command.Flags()
	f.settings.Bind(flags)
	flags.StringVar(&f.file, "config", "", "YAML file whose keys are the flags above, or a run's "+config.ManifestFile+"; flags override it")
	flags.StringVar(&f.dir, "folder", "", "run directory, new or empty (default runs/fit-1, runs/fit-2, ...)")
	f.task.bind(flags)
	flags.BoolVar(&f.estimate, "estimate", false, "time a few steps, print the estimated time, disk space and memory of the run, and exit")
	flags.StringVar(&f.resume, "resume", "",
		"directory of a run to continue; combines only with --device, --threads, --precision, --data-folder,\n--without-damaged and --tensorboard")
	bindWithoutDamaged(flags, &f.withoutDamaged)
	flags.StringVar(&f.tensorBoard, "tensorboard", "", "directory in which TensorBoard's event files are written during the run (default: none)")
	return command
}

func (f *fitFlags) run(ctx context.Context, given *pflag.FlagSet, c *console) (err error) {
	if f.tensorBoard != "" && !f.estimate {
		live, failed := export.NewLive(f.tensorBoard, c.now)
		if failed != nil {
			return failed
		}
		c.also = live.Observe
		defer func() { err = cmp.Or(err, live.Close()) }()
	}
	if f.resume != "" {
		return f.continueRun(ctx, given, c)
	}
	if f.withoutDamaged && f.task.number == "" && !f.task.orStart {
		return usage("pollen: --without-damaged applies to --resume, --resume-or-start and --task")
	}
	s, err := config.Layered(given, f.file)
	if err != nil {
		return err
	}
	dir := f.dir
	switch tasks := s.Plan.Tasks(); {
	case f.task.number == "" && tasks != 1:
		return usage("pollen: the configuration has %d tasks: choose one with --task, or run all with pollen submit", tasks)
	case f.task.number != "":
		if dir, err = s.ForTask(f.task.number, dir); err != nil {
			return err
		}
	}
	if f.estimate {
		return runEstimate(ctx, s, c)
	}
	if f.task.orStart || f.task.number != "" {
		return resumeOrStart(ctx, s, dir, withoutDamagedIf(f.withoutDamaged), c)
	}
	return runFit(ctx, s, dir, c)
}

// continueRun continues the run of --resume, on the given device or else the one that the run used.
func (f *fitFlags) continueRun(ctx context.Context, given *pflag.FlagSet, c *console) error {
	m, err := bayes.ReadManifest(f.resume)
	if err != nil {
		return err
	}
	device := deviceFlags{f.settings.Device}
	device.asNoted(m.Notes, given)
	if err := checkResumeFlags(given, "run", "; --start DIR begins another one at its samples"); err != nil {
		return err
	}
	return resumeRun(ctx, *m, device, f.settings.Data.Dir, f.resume, withoutDamagedIf(f.withoutDamaged), c)
}

// checkResumeFlags returns an error, which ends with otherwise, for flags that cannot be combined
// with --resume.
func checkResumeFlags(given *pflag.FlagSet, what, otherwise string) (err error) {
	may := []string{"resume", "threads", "device", "precision", "data-folder", "without-damaged", "tensorboard"}
	given.Visit(func(f *pflag.Flag) {
		if !slices.Contains(may, f.Name) {
			err = usage("pollen: --%s cannot be combined with --resume: the %s keeps its configuration%s", f.Name, what, otherwise)
		}
	})
	return err
}

// runEstimate times some steps and prints the cost of the whole run.
func runEstimate(ctx context.Context, s *config.Settings, c *console) error {
	p, err := prepare(ctx, s, c)
	if err != nil {
		return err
	}
	defer p.device.Close()
	return p.estimate(ctx, c)
}
