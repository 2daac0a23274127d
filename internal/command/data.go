package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/config"
)

// The notes of a distilled run with the places of its other images.
const (
	unlabelledNote = "unlabelled"
	outNote        = "out"
)

// options returns the options for reading data, with progress and remarks shown on the console.
func (c *console) options(ctx context.Context, d config.Data) (datasets.Options, error) {
	o, err := d.Options(ctx, c.reading())
	o.Remark = func(text string) { c.remark("%s", text) }
	return o, err
}

// imagesOf returns the options to read images as a run's, with progress and remarks shown on the
// console.
func (c *console) imagesOf(ctx context.Context, m bayes.Manifest) datasets.Options {
	o := config.ImagesOf(m)
	o.Context, o.OnProgress, o.Remark = ctx, c.reading(), func(text string) { c.remark("%s", text) }
	return o
}

// openData opens all splits of data.
func openData(ctx context.Context, d config.Data, c *console) (*datasets.Splits, error) {
	o, err := c.options(ctx, d)
	if err != nil {
		return nil, err
	}
	splits, err := datasets.Open(d.Name, o)
	return splits, moved(d, err)
}

// openLike is openData for data with tables like a run's own.
func openLike(ctx context.Context, d, own config.Data, c *console) (*datasets.Splits, error) {
	o, err := c.options(ctx, d)
	if err != nil {
		return nil, err
	}
	o.OtherColumns = own.GroupColumn()
	splits, err := withOwnLabel(o, own, func(o datasets.Options) (*datasets.Splits, error) { return datasets.Open(d.Name, o) })
	return splits, moved(d, err)
}

// moved explains the error for a run's own data that are no longer in their place. Other names are
// checked when the flags are read, see config.Check.
func moved(d config.Data, err error) error {
	var unknown *datasets.UnknownError
	if !errors.As(err, &unknown) {
		return err
	}
	if !filepath.IsAbs(d.Name) { // fit records absolute paths
		return errors.Errorf("pollen: the run was trained by another program, which did not record where its data, %q, are: "+
			"state them as --data, or resume the run by bayes.Resume", d.Name)
	}
	return errors.Errorf("pollen: the run's own data are no longer at %s: put them, or a link to them, back in that place",
		strings.Join(unknown.Tried, " or "))
}

// openTraining is openData for a new run, which needs at least two classes.
func openTraining(ctx context.Context, d config.Data, c *console) (*datasets.Splits, error) {
	o, err := c.options(ctx, d)
	if err != nil {
		return nil, err
	}
	o.MinClasses = 2
	splits, err := datasets.Open(d.Name, o)
	var few *datasets.FewClassesError
	if err == nil && splits.Train.Classes < o.MinClasses { // before pages of output about them; Fit checks it, too
		few = &datasets.FewClassesError{Data: splits.Train.Name, Classes: splits.Train.ClassNames, Min: o.MinClasses}
	} else if !errors.As(err, &few) {
		return splits, err
	}
	return nil, usage("pollen: data: %q must have at least %d classes, got %d: %q", few.Data, few.Min, len(few.Classes), few.Classes)
}

// loadTest loads the test images of a data set in the shape of a run's images, or all images of
// foreign data that are not split. If ood is set, the images need no classes.
func loadTest(ctx context.Context, d config.Data, m bayes.Manifest, ood bool, c *console) (*datasets.Dataset, error) {
	o, err := c.options(ctx, d)
	if err != nil {
		return nil, err
	}
	o.Unlabelled = ood && d.Classes == "" && d.WithoutClasses == ""
	own := config.DataOf(m)
	o.FloatMax, o.Bits = own.FloatMax, m.Data.Bits
	o.OtherColumns = own.GroupColumn()
	shaped := o
	shaped.Height, shaped.Width, shaped.Channels, shaped.Crop = m.Data.Height, m.Data.Width, m.Data.Channels, m.Data.Crop
	// The run's own data are requested with the run's own options, so that they are in the cache.
	if d.Place() != own.Place() || d.Size != own.Size || d.Channels != own.Channels || d.Resize != own.Resize {
		o = shaped
	}
	load := func(o datasets.Options) (*datasets.Dataset, error) { return datasets.Load(d.Name, datasets.Test, o) }
	if d.Foreign {
		load = func(o datasets.Options) (*datasets.Dataset, error) {
			return withOwnLabel(o, own, func(o datasets.Options) (*datasets.Dataset, error) { return datasets.LoadUnseen(d.Name, o) })
		}
	}
	data, err := load(o)
	if err == nil && (data.Height != shaped.Height || data.Width != shaped.Width || data.Channels != shaped.Channels) {
		data, err = load(shaped) // images of other sizes were added since
	}
	return data, moved(d, err)
}

// withOwnLabel opens data that are not a run's own. Unless the options name another one, their
// labels are in the same column as the run's, if they have such a column.
func withOwnLabel[T any](o datasets.Options, own config.Data, open func(datasets.Options) (T, error)) (T, error) {
	if o.Label != "" || own.Label == "" || o.Unlabelled {
		return open(o)
	}
	named := o
	named.Label = own.Label
	opened, err := open(named)
	var option *datasets.OptionError
	if errors.As(err, &option) && option.Option == "Label" || errors.As(err, new(*datasets.NoClassesError)) {
		return open(o)
	}
	return opened, err
}

// remarkSeen remarks if images to score or to calibrate with may have been trained on: if the run's
// own data have changed, or if other data contain images of the run. what is testImages or
// validationImages. hashes, the files' hashes by name, show whether the data have changed. It
// returns the remarks and, as far as known, how many of the images the run was trained on. It does
// nothing without images.
func remarkSeen(name string, run *bayes.Run, data config.Data, images *datasets.Dataset, hashes map[string]string, what string, c *console,
) (trained int, remarks []string) {
	if images == nil {
		return 0, nil
	}
	remark := func(format string, arguments ...any) {
		remarks = append(remarks, fmt.Sprintf(format, arguments...))
		c.remark("%s", remarks[len(remarks)-1])
	}
	m := run.Manifest()
	changed := config.FilesChanged(m, data, hashes)
	if changed {
		remark("%s has changed since %s was trained: the run may have been trained on some of today's %s", images.Name, name, what)
	}
	if own := config.DataOf(m); !changed && data.Place() == own.Place() {
		return 0, remarks
	}
	if what == testImages {
		if calibrated, err := run.CalibratedOn(images); err == nil && calibrated { // an error fails where the calibration is used
			remark("%s was calibrated on these images of %s: prediction sets, in-distribution decisions and certified errors are better on them than on new ones",
				name, images.Name)
		}
	}
	trained, held, err := run.Seen(images)
	if err != nil {
		if !os.IsNotExist(errors.Cause(err)) { // else the run has no list of its images
			remark("whether %s was trained on some of these images is unknown: %v", name, err)
		}
		return 0, remarks
	}
	if trained > 0 {
		remark("%s was trained on %d of the %d %s of %s", name, trained, images.Len(), what, images.Name)
	}
	if held > 0 && what == testImages {
		remark("%s held out %d of the %d %s of %s for validation, on which fit calibrates", name, held, images.Len(), what, images.Name)
	}
	return trained, remarks
}

// What images are, in the remarks of remarkSeen.
const (
	testImages       = "test images"
	validationImages = "validation images"
)

// remarkHeldOut calls remarkSeen for what is held out of today's data of a run, and returns how
// many of the validation images the run was trained on.
func remarkHeldOut(name string, run *bayes.Run, data config.Data, splits *datasets.Splits, c *console) (trained int) {
	trained, _ = remarkSeen(name, run, data, splits.Validation, splits.Train.Hashes, validationImages, c)
	if splits.Test != nil {
		remarkSeen(name, run, data, splits.Test, splits.Test.Hashes, testImages, c)
	}
	return trained
}

// unlabelledImages reads images in the shape of a run's images; nil if path is "".
func unlabelledImages(ctx context.Context, m bayes.Manifest, path string, c *console) (*datasets.Dataset, error) {
	if path == "" {
		return nil, nil
	}
	images, err := datasets.ReadImages([]string{path}, c.imagesOf(ctx, m))
	if err != nil {
		return nil, err
	}
	if n := len(images.Skipped); n > 0 {
		c.remark("%s: skipped %s, first %s", images.Name, counted(n, "file"), images.Skipped[0])
	}
	c.remark("unlabelled: %s", counted(images.Len(), "image"))
	images.Labels = nil
	return images, nil
}

func datasetsCommand(c *console) *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use: "datasets", Short: "List data sets and where they are", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			d := config.Data{Dir: dir}
			if _, err := d.Options(context.Background(), c.reading()); err != nil {
				return err
			}
			for _, d := range datasets.List(datasets.Options{Dir: dir}) {
				printDataset(d, c)
			}
			fmt.Fprintln(c.out, "\n--data also takes a directory with a directory of images for each class, and these files:")
			for _, format := range datasets.ArrayFormats() {
				fmt.Fprintln(c.out, "  "+format)
			}
			return nil
		},
	}
	config.BindDataDir(command.Flags(), &dir)
	return command
}

func printDataset(d datasets.Description, c *console) {
	fmt.Fprintf(c.out, "%s: %s, %dx%d\n", d.Name, d.What, d.Height, d.Width)
	missing := false
	for i, split := range []datasets.Split{datasets.Train, datasets.Test} {
		images, place := fmt.Sprintf("%d images", d.Images[i]), d.Places[i]
		if d.Images[i] == 0 {
			images = ""
		}
		if place == "" {
			place, missing = "not found", true
		}
		fmt.Fprintf(c.out, "  %-5s  %12s  %s\n", split, images, place)
	}
	if missing {
		fmt.Fprintf(c.out, "  %s\n", d.Advice)
	}
}
