package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/tensor"
)

func fitCommand(c *console) *cobra.Command {
	config := defaultConfig()
	var folder, file, resume string
	var estimate bool
	command := &cobra.Command{
		Use:   "fit",
		Short: "train one network and keep its samples",
		Long: "Trains one network, keeps its samples in a run folder, and scores their average on the test data.\n" +
			listing("Models", layers.Names()...) +
			listing("Data sets", datasets.Names()...) +
			listing("Samplers", slices.Concat(samplerNames(), approximationNames(), optimizers.Names())...) +
			listing("", append([]string{"where optimizers take hyperparameters", "as in momentum:0.9,1e-4", "and others these"}, attributeForms()...)...) +
			listing("Schedules", optimizers.ScheduleForms()...),
		Example: `  train fit --sampler psgld --chains 4 --folder runs/four
  train fit --sampler momentum:0.9,1e-4 --schedule cosine:0.02,0 --epochs 5
  train fit --model mlp-400-400 --prior laplace:0.1 --temperature 0.5
  train fit --config run.yaml --seed 2            the file's settings, but for the seed
  train fit --config runs/four/manifest.json      the same run again
  train fit --resume runs/four                    go on after Ctrl-C, a crash, a reboot`,
		Args: noArguments,
	}
	config.bindFlags(command.Flags())
	command.Flags().StringVar(&file, "config", "", "YAML file with the names of the flags above, or a run's "+manifestFile+"; flags come after it")
	command.Flags().StringVar(&folder, "folder", "", "run folder, new or empty (default runs/fit-1, -2, ...)")
	command.Flags().BoolVar(&estimate, "estimate", false, "print what the run would cost, from some steps, and stop")
	command.Flags().StringVar(&resume, "resume", "",
		"folder of a run to go on with; takes no other flags but device, threads, precision and data-folder")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if resume != "" {
			resumed, err := resumedConfig(command.Flags(), config, resume)
			if err != nil {
				return err
			}
			return runFit(command.Context(), resumed, resume, true, c)
		}
		resolved, err := layered(command.Flags(), file)
		if err != nil {
			return err
		}
		if estimate {
			return runEstimate(command.Context(), resolved, c)
		}
		return runFit(command.Context(), resolved, folder, false, c)
	}
	return command
}

// attributeForms are the rules that have attributes, with these.
func attributeForms() []string {
	var forms []string
	for _, r := range rules {
		if r.fields != "" {
			forms = append(forms, r.name+":"+r.fields)
		}
	}
	return forms
}

// listing is a line, or some, that names things.
func listing(title string, items ...string) string {
	const indent, width = 11, 100
	if title != "" {
		title += ":"
	}
	text := fmt.Sprintf("\n%-*s", indent, title)
	length := indent
	for i, item := range items {
		if i < len(items)-1 {
			item += ", "
		}
		if length+len(item) > width {
			text = strings.TrimRight(text, " ") + "\n" + strings.Repeat(" ", indent)
			length = indent
		}
		text += item
		length += len(item)
	}
	return text
}

// resumedConfig is the run's own configuration, on the device that was asked for now.
func resumedConfig(given *pflag.FlagSet, flags Config, folder string) (Config, error) {
	manifest, err := readManifest(folder)
	if err != nil {
		return flags, err
	}
	var other string
	given.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "resume", "threads", "data-folder":
		case "device":
			manifest.Config.Device, manifest.Config.Precision = flags.Device, flags.Precision
		case "precision":
			manifest.Config.Precision = flags.Precision
		default:
			other = f.Name
		}
	})
	if other != "" {
		return flags, usage("train: --%s with --resume: a resumed run keeps its own configuration", other)
	}
	manifest.Config.Threads = flags.Threads
	if flags.DataFolder != "" {
		manifest.Config.DataFolder = flags.DataFolder
	}
	resolved, err := manifest.Config.resolve()
	return resolved, errors.WithMessage(err, folder)
}

func runFit(ctx context.Context, config Config, folder string, resume bool, c *console) error {
	if folder == "" {
		var err error
		if folder, err = newRunFolder("fit"); err != nil {
			return err
		}
	}
	if !resume {
		if err := checkEmpty(folder); err != nil {
			return err
		}
	}
	device, err := openDevice(config.Device, config.Threads, config.Precision, c)
	if err != nil {
		return err
	}
	defer device.Close()
	test, err := loadData(ctx, config.Data, datasets.Test, config.DataFolder, c)
	if err != nil {
		return err
	}
	train, err := trainingData(ctx, config, c)
	if err != nil {
		return err
	}
	r, err := fit(ctx, config, config.Sampler, folder, resume, train, device, c)
	if err == nil {
		err = printAssessments(ctx, []string{config.Sampler}, []string{folder}, test, nil, device, c)
	}
	if err != nil {
		remarkKept(r, err, c)
		return err
	}
	fmt.Fprintln(c.out)
	if err := printRuns([]string{config.Sampler}, []result{r}, c); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "\nRun folder: %s\n", folder)
	return nil
}

// trainingData loads what a run trains on, and shows the network.
func trainingData(ctx context.Context, config Config, c *console) (*datasets.Dataset, error) {
	data, err := loadData(ctx, config.Data, datasets.Train, config.DataFolder, c)
	if err != nil {
		return nil, err
	}
	if data, err = config.part(data); err != nil {
		return nil, err
	}
	if _, _, err := config.plan(data.Name, data.Len()); err != nil {
		return nil, err
	}
	if err := printSummary(config, data, c); err != nil {
		return nil, err
	}
	if config.Schedule != "" {
		c.remark("%s, learning rate %s", config.Sampler, config.Schedule)
	}
	return data, nil
}

// remarkKept says what a run that failed or was stopped leaves behind, and what can be done with it.
func remarkKept(r result, err error, c *console) {
	if !r.begun {
		return
	}
	c.remark("%s: %d of %d steps done, %s kept.", r.folder, r.made, r.steps, counted(r.samples, "sample"))
	var notFinite *graph.NotFinite
	if errors.As(err, &notFinite) {
		c.remark("A smaller learning rate (--schedule) may keep the numbers finite.")
		return
	}
	c.remark("Go on with: train fit --resume %s", r.folder)
}

// counted is "1 sample", "2 samples".
func counted(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}

func printSummary(config Config, data *datasets.Dataset, c *console) error {
	network, err := config.network(data.Classes)
	if err != nil {
		return err
	}
	summary, err := layers.Summarize(network, tensor.Shape{data.Channels, data.Height, data.Width})
	if err != nil {
		return err
	}
	c.remark("%s on %s, %d images\n%v", config.Model, data.Name, data.Len(), summary)
	return nil
}
