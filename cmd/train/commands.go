package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/report"
	"github.com/pollen-ml/pollen/tensor"
)

func fitCommand(c *console) *cobra.Command {
	config := defaultConfig()
	var folder, file, resume string
	command := &cobra.Command{
		Use:   "fit",
		Short: "train one network and keep its samples",
		Long:  "Models: " + strings.Join(layers.Names(), ", ") + ".",
		Args:  cobra.NoArgs,
	}
	config.bindFlags(command.Flags())
	command.Flags().StringVar(&file, "config", "", "YAML file with the same names as these flags, which come after it")
	command.Flags().StringVar(&folder, "folder", "", "run folder, new or empty (default runs/fit-1, -2, ...)")
	command.Flags().StringVar(&resume, "resume", "", "folder of a run that was stopped or killed, to go on with; takes no other flags but device and threads")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if resume != "" {
			resumed, err := resumedConfig(command, config, resume)
			if err != nil {
				return err
			}
			return runFit(command.Context(), resumed, resume, true, c)
		}
		resolved, err := layered(command, config, file)
		if err != nil {
			return err
		}
		return runFit(command.Context(), resolved, folder, false, c)
	}
	return command
}

// layered is the configuration: defaults, then the file, then the flags that were given.
func layered(command *cobra.Command, flags Config, file string) (Config, error) {
	if file == "" {
		resolved, err := flags.resolve()
		return resolved, wrapUsage(err)
	}
	config := defaultConfig()
	if err := config.readConfig(file); err != nil {
		return config, usageError{err}
	}
	overlay := &cobra.Command{}
	config.bindFlags(overlay.Flags())
	var failed error
	command.Flags().Visit(func(given *pflag.Flag) {
		if overlay.Flags().Lookup(given.Name) == nil || failed != nil {
			return
		}
		failed = overlay.Flags().Set(given.Name, given.Value.String())
	})
	if failed != nil {
		return config, usageError{failed}
	}
	resolved, err := config.resolve()
	return resolved, wrapUsage(err)
}

// resumedConfig is the run's own configuration, on the device that was asked for now.
func resumedConfig(command *cobra.Command, flags Config, folder string) (Config, error) {
	manifest, err := readManifest(folder)
	if err != nil {
		return flags, err
	}
	var other string
	command.Flags().Visit(func(given *pflag.Flag) {
		switch given.Name {
		case "resume", "threads", "data-folder":
		case "device":
			manifest.Config.Device = flags.Device
		default:
			other = given.Name
		}
	})
	if other != "" {
		return flags, usageError{errors.Errorf("train: --%s with --resume: a resumed run keeps its own configuration", other)}
	}
	manifest.Config.Threads = flags.Threads
	if flags.DataFolder != "" {
		manifest.Config.DataFolder = flags.DataFolder
	}
	return manifest.Config, nil
}

func wrapUsage(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

func runFit(ctx context.Context, config Config, folder string, resume bool, c *console) error {
	if folder == "" {
		var err error
		if folder, err = newRunFolder("fit"); err != nil {
			return err
		}
	}
	train, err := loadData(ctx, config.Data, datasets.Train, config.DataFolder, c)
	if err != nil {
		return err
	}
	device, err := openDevice(config.Device, config.Threads, c)
	if err != nil {
		return err
	}
	defer device.Close()
	if err := printSummary(config, train, c); err != nil {
		return err
	}
	r, err := fit(ctx, config, config.Sampler, folder, resume, train, device, c)
	if r.samples > 0 {
		fmt.Fprintf(c.out, "%d samples in %s\n", r.samples, folder)
		printRun(r, c)
	}
	if err != nil {
		return err
	}
	test, err := loadData(ctx, config.Data, datasets.Test, config.DataFolder, c)
	if err != nil {
		return err
	}
	return printAssessments([]string{config.Sampler}, []string{folder}, test, nil, device, c)
}

func printSummary(config Config, data *datasets.Dataset, c *console) error {
	network, err := layers.New(config.Model, data.Classes)
	if err != nil {
		return usageError{err}
	}
	summary, err := layers.Summarize(network, tensor.Shape{data.Channels, data.Height, data.Width})
	if err != nil {
		return err
	}
	c.remark("%s on %s (%d images)\n%v", config.Model, data.Name, data.Len(), summary)
	return nil
}

// loadData loads a split and says what it had to leave out.
func loadData(ctx context.Context, name string, split datasets.Split, folder string, c *console) (*datasets.Dataset, error) {
	data, err := datasets.Load(name, split, datasets.Options{Folder: folder, Context: ctx, Progress: func(file string, done, total int64) {
		if done == total {
			c.remark("downloaded %s, %d bytes", file, total)
		}
	}})
	if err != nil {
		return nil, err
	}
	if n := len(data.Skipped); n > 0 {
		c.remark("%s: %d files could not be read and are left out, first %s", data.Name, n, data.Skipped[0])
	}
	return data, nil
}

func evalCommand(c *console) *cobra.Command {
	var o evaluation
	command := &cobra.Command{
		Use: "eval RUN...", Short: "score the posterior averages of runs on test data", Args: wantRuns,
		RunE: func(command *cobra.Command, runs []string) error { return o.run(command.Context(), runs, false, c) },
	}
	o.bindFlags(command)
	return command
}

func oodCommand(c *console) *cobra.Command {
	var o evaluation
	command := &cobra.Command{
		Use: "ood RUN...", Short: "tell how well runs know data of another kind from their own", Args: wantRuns,
		RunE: func(command *cobra.Command, runs []string) error { return o.run(command.Context(), runs, true, c) },
	}
	o.bindFlags(command)
	command.Flags().StringVar(&o.out, "out", "glyphs", "data set of the other kind: "+strings.Join(datasets.Names(), ", "))
	return command
}

func wantRuns(_ *cobra.Command, runs []string) error {
	if len(runs) == 0 {
		return usageError{errors.New("train: wants the folder of at least one run")}
	}
	return nil
}

// evaluation are the flags of eval and ood.
type evaluation struct {
	data, out, folder, device string
	threads                   int
}

func (o *evaluation) bindFlags(command *cobra.Command) {
	command.Flags().StringVar(&o.data, "data", "", "data set whose test images are predicted (default: the one trained on)")
	command.Flags().StringVar(&o.folder, "data-folder", "", "folder with data sets, looked into first")
	command.Flags().StringVar(&o.device, "device", "auto", "device: auto or cpu")
	command.Flags().IntVar(&o.threads, "threads", 0, "threads of the cpu device, 0 for all")
}

func (o *evaluation) run(ctx context.Context, runs []string, ood bool, c *console) error {
	manifest, err := readManifest(runs[0])
	if err != nil {
		return err
	}
	if o.data == "" {
		o.data = manifest.Config.Data
	}
	in, err := loadData(ctx, o.data, datasets.Test, o.folder, c)
	if err != nil {
		return err
	}
	var out *datasets.Dataset
	if ood {
		if out, err = loadData(ctx, o.out, datasets.Test, o.folder, c); err != nil {
			return err
		}
	}
	device, err := openDevice(o.device, o.threads, c)
	if err != nil {
		return err
	}
	defer device.Close()
	return printAssessments(runs, runs, in, out, device, c)
}

// printAssessments prints a row for each run.
func printAssessments(names, folders []string, in, out *datasets.Dataset, device tensor.Device, c *console) error {
	table := newScoreTable(in.Name, outName(out))
	for i, folder := range folders {
		a, err := assess(folder, in, out, device)
		if err != nil {
			return err
		}
		if err := addScores(table, names[i], a); err != nil {
			return err
		}
	}
	if err := table.WriteText(c.out); err != nil {
		return err
	}
	if out != nil {
		fmt.Fprintln(c.out, detectionNote)
	}
	return nil
}

func outName(out *datasets.Dataset) string {
	if out == nil {
		return ""
	}
	return out.Name
}

// detectionNote says what the columns of detection mean.
const detectionNote = "AUROC and FPR95: by the entropy of the averaged probabilities, with the other kind as the positive class."

func newScoreTable(in, out string) *report.Table {
	columns := []report.Column{
		{Title: "accuracy", Format: "%.4f"}, {Title: "NLL", Format: "%.4f"}, {Title: "ECE", Format: "%.4f"},
		{Title: "confidence on " + in, Format: "%.3f"},
	}
	if out != "" {
		columns = append(columns, report.Column{Title: "on " + out, Format: "%.3f"},
			report.Column{Title: "AUROC", Format: "%.4f"}, report.Column{Title: "FPR95", Format: "%.3f"})
	}
	return report.NewTable("method", columns...)
}

func addScores(table *report.Table, name string, a *assessment) error {
	cells := []any{a.scores.Accuracy, a.scores.NLL, a.scores.ECE, a.scores.MeanConfidence}
	if a.out != nil {
		cells = append(cells, a.outMean, a.detection.AUROC, a.detection.FPR95)
	}
	return table.Add(name, cells...)
}

func datasetsCommand(c *console) *cobra.Command {
	var folder string
	command := &cobra.Command{
		Use: "datasets", Short: "list the data sets and where they are", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			for _, d := range datasets.List(datasets.Options{Folder: folder}) {
				fmt.Fprintf(c.out, "%s\n  %s\n", d.Name, d.What)
				for i, split := range []datasets.Split{datasets.Train, datasets.Test} {
					place := d.Places[i]
					if place == "" {
						place = "not here. " + d.Advice
					}
					fmt.Fprintf(c.out, "  %-5s  %6d images  %s\n", split, d.Images[i], place)
				}
			}
			return nil
		},
	}
	command.Flags().StringVar(&folder, "data-folder", "", "folder with data sets, looked into first")
	return command
}
