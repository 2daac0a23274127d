package config

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
)

// UsageError is the error of a command line or a configuration that makes no sense.
type UsageError struct{ error }

// Unwrap returns what is wrong.
func (m UsageError) Unwrap() error { return m.error }

// Usagef is a Mistaken with a text.
func Usagef(format string, values ...any) error { return UsageError{errors.Errorf(format, values...)} }

// AsUsageError is an error as Mistaken; nil for nil.
func AsUsageError(err error) error {
	if err == nil {
		return nil
	}
	return UsageError{err}
}

// Data are the flags that name a data set and say how it is read.
type Data struct {
	Name, Dir, Size, Classes, WithoutClasses string // lists have commas
	Channels                                 int
	Validation, Test                         fraction
}

// BindDataDir binds the flag of the folder with data sets.
func BindDataDir(f *pflag.FlagSet, dir *string) {
	f.StringVar(dir, "data-folder", "", "folder with data sets, looked into first")
}

// Bind binds the flags that name data.
func (d *Data) Bind(f *pflag.FlagSet) {
	f.StringVar(&d.Name, "data", "mnist", "data to train on: a name, see Data above, or a folder or file of one's own")
	BindDataDir(f, &d.Dir)
}

// BindSplits binds the flags that only data to train on have.
func (d *Data) BindSplits(f *pflag.FlagSet) {
	f.StringVar(&d.Size, "size", "",
		fmt.Sprintf("size that images are scaled to, as 32 or 48x64, at most %[1]dx%[1]d\n(default: their own, or 32 or 64)", datasets.MaxSide))
	f.IntVar(&d.Channels, "channels", 0, "1 for grey, 3 for colour (default: what the images have)")
	f.Var(&d.Validation, "validation", "share of the training images that are held out for calibration, where the data have no such\n"+
		"split; 0 is none (default 0.1 where they have no split at all, else none)")
	f.Var(&d.Test, "test", "share of all images that are held out for scores, where the data have no such split; 0 is none\n"+
		"(default 0.2 where they have no split at all, else none)")
	f.StringVar(&d.Classes, "classes", "", "train on these classes only, by name, as cat,dog")
	f.StringVar(&d.WithoutClasses, "without-classes", "", "hold these classes out: --out with the same data and --classes shows them as the unknown")
}

// Place is the data's name; for a path the absolute one, valid from anywhere.
func (d *Data) Place() string {
	if !slices.Contains(datasets.Names(), d.Name) {
		if path, err := filepath.Abs(d.Name); err == nil {
			if _, err := os.Stat(path); err == nil {
				return path
			}
		}
	}
	return d.Name
}

// Notes are the flags that were given, for a manifest.
func (d *Data) Notes(into map[string]string) {
	channels := ""
	if d.Channels != 0 {
		channels = strconv.Itoa(d.Channels)
	}
	for key, value := range map[string]string{
		"data": d.Place(), "data-folder": d.Dir, "size": d.Size, "classes": d.Classes, "without-classes": d.WithoutClasses,
		"channels": channels, "validation": d.Validation.String(), "test": d.Test.String(),
	} {
		if value != "" {
			into[key] = value
		}
	}
}

// share is the value of a flag: a share of the images that is held out. As in datasets.Options, 0
// is what is usual, where the flag was not given, and -1 is none.
type fraction float64

// String is as Set reads it, "" where the flag was not given.
func (s *fraction) String() string {
	switch {
	case *s == 0:
		return ""
	case *s < 0:
		return "0"
	}
	return strconv.FormatFloat(float64(*s), 'g', -1, 64)
}

// Set reads the flag. Runs that are older may have written a negative number for none.
func (s *fraction) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v < 1) {
		return errors.Errorf("share %q", text)
	}
	if *s = fraction(v); v <= 0 {
		*s = -1
	}
	return nil
}

func (s *fraction) Type() string { return "share" }

// Options are those of package datasets; progress, if not nil, is told what is read.
func (d *Data) Options(ctx context.Context, progress func(file string, done, total int64)) (o datasets.Options, err error) {
	if d.Dir != "" {
		if info, err := os.Stat(d.Dir); err != nil || !info.IsDir() {
			return o, Usagef("pollen: data-folder: there is no folder %s", d.Dir)
		}
	}
	o = datasets.Options{
		Dir: d.Dir, Context: ctx, Channels: d.Channels, OnProgress: progress,
		Validation: float64(d.Validation), Test: float64(d.Test),
		Classes: split(d.Classes), WithoutClasses: split(d.WithoutClasses),
	}
	o.Height, o.Width, err = parseSize(d.Size)
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
		return 0, 0, Usagef("pollen: size %q, wants a number, or height and width as in 48x64", text)
	}
	return height, width, nil
}

// Check refuses a name that is neither a data set nor a path.
func Check(flag, name, dir string) error {
	if slices.Contains(datasets.Names(), name) {
		return nil
	}
	for _, path := range []string{name, filepath.Join(dir, name), filepath.Join(os.Getenv(datasets.EnvironmentDir), name)} {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
	}
	return Usagef("pollen: %s: no data set %q, and no folder or file of that name; there are %s", flag, name, strings.Join(datasets.Names(), ", "))
}

// TestData are the data that the runs of these names are scored on: their own, or those at a place,
// which may be the same. Of runs' own data it is what none of them was trained on.
func TestData(runs []string, own []Data, place string) (Data, error) {
	tested, first := Data{Name: place}, -1
	for i, d := range own {
		switch {
		case place != "" && d.Place() != tested.Place():
		case first < 0:
			tested, first = d, i
		case d.Place() != tested.Place():
			return d, Usagef("pollen: %s was trained on %s, %s on %s: say which one by --data", runs[first], tested.Name, runs[i], d.Name)
		case d.Classes != tested.Classes || d.WithoutClasses != tested.WithoutClasses:
			return d, Usagef("pollen: %s was trained on other classes of %s than %s: score them apart", runs[i], d.Name, runs[first])
		case d.Test != tested.Test:
			return d, Usagef("pollen: %s held out other images of %s for scores than %s (--test): score them apart", runs[i], d.Name, runs[first])
		}
	}
	return tested, nil
}

// FilesChanged says whether data that a run was trained on were in other files then than these; hashes
// are by name.
func FilesChanged(m pollen.Manifest, d Data, hashes map[string]string) bool {
	own := DataOf(m)
	for name, hash := range hashes {
		if then, known := m.Data.Hashes[name]; known && then != hash {
			return own.Place() == d.Place()
		}
	}
	return false
}

// OOD is another kind of data, by name and classes ("" for all), for runs that were trained on
// these and know some classes. Of the same data it is what was held out.
func (d Data) OOD(name, classes string, known []string) (Data, error) {
	other := Data{Name: name, Dir: d.Dir, Classes: classes}
	if name == "" || other.Place() != d.Place() {
		return other, nil
	}
	other.Size, other.Channels = d.Size, d.Channels
	switch {
	case classes != "":
	case d.WithoutClasses != "":
		other.Classes = d.WithoutClasses
	case d.Classes != "":
		other.WithoutClasses = d.Classes
	default:
		return other, Usagef("pollen: out: %s is the runs' own kind of data: name another, or some of its --classes that were held out", name)
	}
	for _, class := range split(other.Classes) {
		if slices.Contains(known, class) {
			return other, Usagef("pollen: classes: %s's %q is the runs' own kind of data, which they were trained on", name, class)
		}
	}
	return other, nil
}

// In are the same data in another folder, if it is not "".
func (d Data) In(dir string) Data {
	if dir != "" {
		d.Dir = dir
	}
	return d
}

// DataOf are the flags that a run's data were opened by.
func DataOf(m pollen.Manifest) Data {
	n := m.Notes
	d := Data{
		Name: n["data"], Dir: n["data-folder"], Size: n["size"], Classes: n["classes"], WithoutClasses: n["without-classes"],
	}
	// What is not there stays 0.
	d.Channels, _ = strconv.Atoi(n["channels"])
	_ = d.Validation.Set(n["validation"])
	_ = d.Test.Set(n["test"])
	if d.Name == "" {
		d.Name = m.Data.Name
	}
	return d
}
