package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
)

// dataFlags name a data set and say how it is read.
type dataFlags struct {
	name, folder, size, classes, without string
	channels                             int
	validation, test                     float64
}

func bindDataFolder(f *pflag.FlagSet, folder *string) {
	f.StringVar(folder, "data-folder", "", "folder with data sets, looked into first")
}

func (d *dataFlags) bind(f *pflag.FlagSet) {
	f.StringVar(&d.name, "data", "mnist", "data to train on: a name, see Data above, or a folder or file of one's own")
	bindDataFolder(f, &d.folder)
}

// bindSplits binds the flags that only data to train on have.
func (d *dataFlags) bindSplits(f *pflag.FlagSet) {
	f.StringVar(&d.size, "size", "", "size that images are scaled to, as 32 or 48x64 (default: their own, or 32 or 64)")
	f.IntVar(&d.channels, "channels", 0, "1 for grey, 3 for colour (default: what the images have)")
	f.Float64Var(&d.validation, "validation", 0, "share of the training images that are held out for calibration, where the data have no such\n"+
		"split (default 0.1 where they have no split at all, else none)")
	f.Float64Var(&d.test, "test", 0, "share of all images that are held out for scores, where the data have no such split\n"+
		"(default 0.2 where they have no split at all, else none)")
	f.StringVar(&d.classes, "classes", "", "train on these classes only, by name, as cat,dog")
	f.StringVar(&d.without, "without-classes", "", "hold these classes out: --out with the same data and --classes shows them as the unknown")
}

// place is the data's name; for a path the absolute one, valid from anywhere.
func (d *dataFlags) place() string {
	if !slices.Contains(datasets.Names(), d.name) {
		if path, err := filepath.Abs(d.name); err == nil {
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	return d.name
}

// notes are the flags that were given, for a manifest.
func (d *dataFlags) notes(into map[string]string) {
	for key, value := range map[string]string{
		"data": d.place(), "data-folder": d.folder, "size": d.size, "classes": d.classes, "without-classes": d.without,
		"channels": orEmpty(float64(d.channels)), "validation": orEmpty(d.validation), "test": orEmpty(d.test),
	} {
		if value != "" {
			into[key] = value
		}
	}
}

func orEmpty(v float64) string {
	if v == 0 {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// options are those of package datasets.
func (d *dataFlags) options(ctx context.Context, c *console) (o datasets.Options, err error) {
	if d.folder != "" {
		if info, err := os.Stat(d.folder); err != nil || !info.IsDir() {
			return o, usage("train: data-folder: there is no folder %s", d.folder)
		}
	}
	o = datasets.Options{
		Folder: d.folder, Context: ctx, Channels: d.channels, Validation: d.validation, Test: d.test, Progress: c.reading(),
		Classes: split(d.classes), WithoutClasses: split(d.without),
	}
	o.Height, o.Width, err = parseSize(d.size)
	return o, err
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// parseSize reads "32" or "48x64", height first.
func parseSize(text string) (height, width int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	first, second, both := strings.Cut(text, "x")
	if !both {
		second = first
	}
	if height, err = strconv.Atoi(first); err == nil {
		width, err = strconv.Atoi(second)
	}
	if err != nil || height < 1 || width < 1 {
		return 0, 0, usage("train: size %q, wants a number, or height and width as in 48x64", text)
	}
	return height, width, nil
}

// checkData refuses a name that is neither a data set nor a path.
func checkData(flag, name, folder string) error {
	if slices.Contains(datasets.Names(), name) {
		return nil
	}
	for _, path := range []string{name, filepath.Join(folder, name), filepath.Join(os.Getenv(datasets.EnvironmentFolder), name)} {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
	}
	return usage("train: %s: no data set %q, and no folder or file of that name; there are %s", flag, name, strings.Join(datasets.Names(), ", "))
}

// open opens all splits of the data.
func (d *dataFlags) open(ctx context.Context, c *console) (*datasets.Splits, error) {
	o, err := d.options(ctx, c)
	if err != nil {
		return nil, err
	}
	splits, err := datasets.Open(d.name, o)
	if err != nil {
		return nil, err
	}
	c.skipped(splits.Train, splits.Validation, splits.Test)
	return splits, nil
}

// dataOf are the flags that a run's data were opened by.
func dataOf(m pollen.Manifest) dataFlags {
	n := m.Notes
	number := func(name string) float64 {
		v, _ := strconv.ParseFloat(n[name], 64) // what is not there is 0
		return v
	}
	d := dataFlags{
		name: n["data"], folder: n["data-folder"], size: n["size"], classes: n["classes"], without: n["without-classes"],
		channels: int(number("channels")), validation: number("validation"), test: number("test"),
	}
	if d.name == "" {
		d.name = m.Data.Name
	}
	return d
}

// loadTest loads the test images of a data set in the shape that a run takes.
func loadTest(ctx context.Context, d dataFlags, m pollen.Manifest, c *console) (*datasets.Dataset, error) {
	o, err := d.options(ctx, c)
	if err != nil {
		return nil, err
	}
	shaped := o
	shaped.Height, shaped.Width, shaped.Channels = m.Data.Height, m.Data.Width, m.Data.Channels
	// The run's own data are requested as when it was made, so that they are in the cache.
	if own := dataOf(m); d.place() != own.place() || d.size != own.size || d.channels != own.channels {
		o = shaped
	}
	data, err := datasets.Load(d.name, datasets.Test, o)
	if err == nil && (data.Height != shaped.Height || data.Width != shaped.Width || data.Channels != shaped.Channels) {
		data, err = datasets.Load(d.name, datasets.Test, shaped) // pictures of other sizes came since
	}
	if err != nil {
		return nil, err
	}
	c.skipped(data)
	return data, nil
}

func datasetsCommand(c *console) *cobra.Command {
	var folder string
	command := &cobra.Command{
		Use: "datasets", Short: "list the data sets and where they are", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			d := dataFlags{folder: folder}
			if _, err := d.options(context.Background(), c); err != nil {
				return err
			}
			for _, d := range datasets.List(datasets.Options{Folder: folder}) {
				printDataset(d, c)
			}
			return nil
		},
	}
	bindDataFolder(command.Flags(), &folder)
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
			place, missing = "not here", true
		}
		fmt.Fprintf(c.out, "  %-5s  %12s  %s\n", split, images, place)
	}
	if missing {
		fmt.Fprintf(c.out, "  %s\n", d.Advice)
	}
}
