package command

import (
	"cmp"
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/export"
	"github.com/pollen-ml/pollen/internal/config"
)

// exportFlags are the flags of export.
type exportFlags struct {
	to, out               string
	samples, together     int
	guarantees            guaranteeFlags
	float, withoutDamaged bool
	device                deviceFlags
	data                  config.Data
}

// format is a format of export: its name, the ending of the default path, its use of test images,
// whether it is a directory, and what writes it.
type format struct {
	name, ending string
	images       useOfImages
	dir          bool
	write        func(x *exportFlags, ctx context.Context, e exported) (remarks []string, err error)
}

// useOfImages is what a format is without test images.
type useOfImages int

const (
	unused  useOfImages = iota // the same
	partial                    // the rest
	needed                     // nothing
)

// exported has the run to export, and what its formats need.
type exported struct {
	run    *bayes.Run
	images *datasets.Dataset // nil if the format uses none, or there are none
	c      *console
}

var formats = []format{
	{"onnx", ".onnx", unused, false, func(x *exportFlags, ctx context.Context, e exported) ([]string, error) {
		o, err := x.onnx(ctx, e)
		if err != nil {
			return nil, err
		}
		return export.ONNX(ctx, e.run, x.out, o)
	}},
	{"arviz", ".zarr", partial, true, func(x *exportFlags, ctx context.Context, e exported) ([]string, error) {
		return export.ArviZ(ctx, e.run, e.images, x.out)
	}},
	{"npz", ".npz", needed, false, func(x *exportFlags, ctx context.Context, e exported) ([]string, error) {
		return nil, export.NPZ(ctx, e.run, e.images, x.out)
	}},
	{"torch", ".safetensors", unused, false, func(x *exportFlags, _ context.Context, e exported) ([]string, error) {
		return nil, export.Torch(e.run, x.out)
	}},
	{"tensorboard", "-tensorboard", unused, true, func(x *exportFlags, _ context.Context, e exported) ([]string, error) {
		return nil, export.TensorBoard(e.run, x.out, e.c.now())
	}},
	{"card", "-card", partial, true, func(x *exportFlags, ctx context.Context, e exported) ([]string, error) {
		o, err := x.onnx(ctx, e)
		if err != nil {
			return nil, err
		}
		return export.Card(ctx, e.run, e.images, x.out, o, e.c.now())
	}},
}

func formatNames() string {
	var names []string
	for _, f := range formats {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

func exportCommand(c *console) *cobra.Command {
	var x exportFlags
	command := &cobra.Command{
		Use: "export RUN", Short: "Write a run in the formats of other programs",
		Long: `Writes a run in the format of another program:

  onnx         one ONNX file: from images to probabilities, entropy, mutual information, prediction set and whether the
               image is in distribution, averaged over the samples
  arviz        Zarr groups for ArviZ and xarray: samples, statistics, predictions and likelihoods of the test images
  npz          NumPy arrays: predictions for the test images by sample
  torch        one safetensors file with the samples, with PyTorch's names and layouts
  tensorboard  event files: scalars by step, histograms of weights, figures; fit --tensorboard writes them during a run
  card         a directory with all of these that the run can have, and a README with data, method, convergence, scores and limits

The formats are described in docs/export.md.`,
		Example: "  pollen export runs/fit-1 --to onnx\n  pollen export runs/fit-1 --to onnx --samples 6 --out flowers.onnx\n" +
			"  pollen export runs/fit-1 --to card",
		Args: requireRun,
	}
	f := command.Flags()
	f.StringVar(&x.to, "to", "", "format: "+formatNames())
	f.StringVar(&x.out, "out", "", "file or directory to write (default: RUN and the ending of the format, such as RUN.onnx)")
	f.IntVar(&x.samples, "samples", 0, "number of samples in the file, evenly spaced (default: all)")
	f.IntVar(&x.together, "together", 0, "samples computed by the same nodes: a larger number is faster for one image, and slower for many (default 1)")
	x.guarantees.bindLevels(f)
	x.guarantees.bindSets(f)
	f.BoolVar(&x.float, "float", false, "images are float32 in [0, 1] rather than bytes")
	f.StringVar(&x.data.Name, "data", "", "data set whose test images are predicted, or all its images if it is not split (default: the run's own)")
	config.BindDataDir(f, &x.data.Dir)
	x.data.BindMaxSkipped(f)
	x.device.bind(f)
	bindWithoutDamaged(f, &x.withoutDamaged)
	command.RunE = func(command *cobra.Command, runs []string) error {
		at := slices.IndexFunc(formats, func(f format) bool { return f.name == x.to })
		if at < 0 {
			return usage("pollen: export: --to must be one of %s, got %q", formatNames(), x.to)
		}
		to := formats[at]
		if to.dir && x.out != "" {
			x.out = filepath.Clean(x.out) // it may end in a slash
		}
		if err := config.CheckParent("out", x.out); err != nil {
			return err
		}
		if x.samples < 1 && command.Flags().Changed("samples") {
			return usage("pollen: export: --samples must be at least 1, got %d: leave it out for all samples", x.samples)
		}
		if unused := x.unused(to, command.Flags()); len(unused) > 0 {
			return usage("pollen: export: --to %s does not use %s", to.name, strings.Join(unused, ", "))
		}
		return x.run(command.Context(), runs[0], to, c)
	}
	return command
}

// unused returns the given flags that the format does not use.
func (x *exportFlags) unused(to format, given *pflag.FlagSet) (flags []string) {
	model, predicts := to.name == "onnx" || to.name == "card", to.images != unused
	given.Visit(func(f *pflag.Flag) {
		used := true
		switch f.Name {
		case "samples", "together", "float":
			used = model
		case "level", "in-distribution-rate", "sets", "per-class", "allow-empty":
			used = model || to.name == "npz"
		case "data":
			used = predicts
		case "max-skipped":
			used = predicts || to.name == "onnx" && x.samples > 0 // whose sets are calibrated again
		}
		if !used {
			flags = append(flags, "--"+f.Name)
		}
	})
	return flags
}

func (x *exportFlags) run(ctx context.Context, dir string, to format, c *console) error {
	options, err := x.guarantees.options()
	if err != nil {
		return err
	}
	device, err := x.device.open(c)
	if err != nil {
		return err
	}
	defer device.Close()
	run, err := openRun(dir, x.withoutDamaged, c, append(options, bayes.WithDevice(device), bayes.WithObserver(c.observer("export")))...)
	if err != nil {
		return err
	}
	if x.out == "" {
		if x.out, err = nextTo(dir, to.ending); err != nil {
			return err
		}
	}
	if err := export.CheckTarget(x.out, to.dir); err != nil { // before images are read and predicted
		return err
	}
	e := exported{run: run, c: c}
	if to.images != unused {
		if e.images, err = x.testImages(ctx, dir, run, to, c); err != nil {
			return err
		}
	}
	remarks, err := to.write(x, ctx, e)
	c.endProgress()
	if err != nil {
		return err
	}
	for _, remark := range remarks {
		c.remark("%s", remark)
	}
	c.remark("Written: %s", x.out)
	return nil
}

// testImages returns the images that a format predicts; nil if the run's data have none and the
// format is of use without them.
func (x *exportFlags) testImages(ctx context.Context, dir string, run *bayes.Run, to format, c *console) (*datasets.Dataset, error) {
	flags := scoreFlags{data: x.data}
	data, err := flags.testData([]scoredRun{{name: dir, run: run}})
	if err != nil {
		return nil, err
	}
	images, err := loadTest(ctx, data, run.Manifest(), false, c)
	var none *datasets.NoSplitError
	switch own := x.data.Name == "" && errors.As(err, &none); {
	case own && to.images == needed:
		return nil, usage("pollen: export: --to %s predicts test images, and %s has none: give some with --data", to.name, none.Data)
	case own:
		c.remark("%s has no test images, so that there are no scores and no predictions: give some with --data", none.Data)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, remarks := remarkSeen(dir, run, data, images, images.Hashes, testImages, c)
	images.Remarks = append(images.Remarks, remarks...) // for the card
	return images, nil
}

// nextTo returns the path of a run with another ending.
func nextTo(dir, ending string) (string, error) {
	path := filepath.Clean(dir)
	if name := filepath.Base(path); name == "." || name == ".." { // which names no run
		var err error
		if path, err = filepath.Abs(path); err != nil {
			return "", errors.Wrap(err, "pollen: export")
		}
	}
	return path + ending, nil
}

// onnx returns the options of an ONNX file. Prediction sets of fewer samples than the run has are
// calibrated again, for which the run's held-out images are read.
func (x *exportFlags) onnx(ctx context.Context, e exported) (export.ONNXOptions, error) {
	rule, err := x.guarantees.rule()
	o := export.ONNXOptions{
		Samples: x.samples, Float: x.float, Level: x.guarantees.level, Rate: x.guarantees.inDistributionRate, Together: x.together, Sets: rule,
		Unscaled: x.guarantees.unscaled,
	}
	if err != nil || x.samples == 0 {
		return o, err
	}
	data := config.DataOf(e.run.Manifest()).In(x.data.Dir)
	data.MaxSkipped = cmp.Or(x.data.MaxSkipped, data.MaxSkipped)
	splits, err := openData(ctx, data, e.c)
	if err != nil {
		return o, err
	}
	remarkSeen(e.run.Dir(), e.run, data, splits.Validation, splits.Train.Hashes, validationImages, e.c)
	o.HeldOut = splits.Validation
	return o, nil
}
