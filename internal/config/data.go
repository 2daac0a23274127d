package config

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/nearest"
)

// UsageError is the error for a wrong command line or configuration.
type UsageError struct{ error }

// Unwrap returns the cause.
func (m UsageError) Unwrap() error { return m.error }

// Usagef returns a UsageError with a formatted message.
func Usagef(format string, values ...any) error { return UsageError{errors.Errorf(format, values...)} }

// AsUsageError wraps an error as a UsageError, and returns nil for nil.
func AsUsageError(err error) error {
	if err == nil {
		return nil
	}
	return UsageError{err}
}

// Data holds the flags that name a data set and configure how it is read.
type Data struct {
	Name, Dir, Size, Classes, WithoutClasses string // lists are separated by commas
	Resize                                   string // Stretch or Crop
	Label, Group, Duplicates                 string
	Channels, Bits                           int
	FloatMax                                 float64
	Validation, Test, MaxSkipped             fraction
	Foreign                                  bool // no run's own data, so that nothing need be held out of them
}

// The values of Data.Resize.
const (
	Stretch = "stretch"
	Crop    = "crop"
)

// BindDataDir binds the flag for the directory with data sets.
func BindDataDir(f *pflag.FlagSet, dir *string) {
	f.StringVar(dir, "data-folder", "", "directory with data sets, searched first")
}

// BindWithoutClasses binds the flag that leaves out classes of other data than the run's own.
func (d *Data) BindWithoutClasses(f *pflag.FlagSet) {
	f.StringVar(&d.WithoutClasses, "without-classes", "", "classes of --data to leave out, such as those that the run does not have: cat,dog")
}

// BindMaxSkipped binds the flag for the fraction of unreadable images.
func (d *Data) BindMaxSkipped(f *pflag.FlagSet) {
	f.Var(&d.MaxSkipped, "max-skipped", "fraction of the image files of each split that may be skipped because they cannot be read (default 0.05)")
}

// BindLabel binds the flag for the labels.
func (d *Data) BindLabel(f *pflag.FlagSet) {
	f.StringVar(&d.Label, "label", "", "the column with the classes, of a label table, CSV or Parquet file (default: found by its heading),\n"+
		"or file=REGEX, whose first group is the class in the path of an image, as in file=([^/]+)_ for images/Bengal_12.jpg")
}

// bind binds the flags that select data.
func (d *Data) bind(f *pflag.FlagSet) {
	f.StringVar(&d.Name, "data", "mnist", "training data: a name from the list above, a directory or a file")
	BindDataDir(f, &d.Dir)
}

// bindSplits binds the flags that apply only to training data.
func (d *Data) bindSplits(f *pflag.FlagSet) {
	f.StringVar(&d.Size, "size", "",
		fmt.Sprintf("size to scale images to, such as 32 or 48x64 (height first), at most %[1]dx%[1]d\n(default: their own, or 32 or 64)", datasets.MaxSide))
	f.StringVar(&d.Resize, "resize", "", "how images are scaled to --size: "+Stretch+", or "+Crop+", which keeps the aspect ratio of the largest part in\n"+
		"the middle (default "+Stretch+"; "+Crop+" for an ONNX file)")
	f.IntVar(&d.Channels, "channels", 0, "1 for grey, 3 for colour; arrays may have others (default: the images' own)")
	f.IntVar(&d.Bits, "bits", 0, "significant bits, 8 to 16, of image files with 16 bits per channel, and of arrays of type uint16: with 12, 4095 is white\n"+
		"(default 16 for files; such arrays are refused)")
	f.Float64Var(&d.FloatMax, "float-max", 0, "the largest value of floating-point pixels in arrays and tables: 1 or 255 (default: they are refused)")
	f.Var(&d.Validation, "validation", "fraction of the training images to hold out for calibration, if the data have no validation\n"+
		"split; 0 for none (default 0.1, or up to 0.2 of few images; none of the data sets in the list)")
	f.Var(&d.Test, "test", "fraction of all images to hold out for scores, if the data have no test split; 0 for none\n"+
		"(default 0.2, or half of the validation split)")
	d.BindLabel(f)
	f.StringVar(&d.Group, "group", "", "keep images of a patient, video or track in the same split: parent for the directory that a file is in,\n"+
		"column=NAME for a column of the label table or Parquet file, or a regular expression on file names whose first group\n"+
		"is the image's, such as '^(.*)_' (default: no groups)")
	f.StringVar(&d.Duplicates, "duplicates", "", "images that are copies, or nearly copies, of images in another split, and copies with another label:\n"+
		"allow, drop or reject; each of these counts and names them (default allow)")
	f.StringVar(&d.Classes, "classes", "", "train on these classes only, such as cat,dog")
	f.StringVar(&d.WithoutClasses, "without-classes", "", "hold out these classes; pollen ood with the same data as --out uses them as out of distribution")
	d.BindMaxSkipped(f)
}

// drops reports whether duplicates are removed from the splits.
func (d *Data) drops() bool { return datasets.Duplicates(d.Duplicates) == datasets.DropDuplicates }

// Place returns the data's name, or the absolute path of a directory or file.
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

// Absolute returns the absolute path of a directory or file, for manifests: they may be used from
// another directory. "" stays "".
func Absolute(path string) string {
	if all, err := filepath.Abs(path); err == nil && path != "" {
		return all
	}
	return path
}

// Notes adds the flags that were given to the notes of a manifest.
func (d *Data) Notes(into map[string]string) {
	channels, bits, floatMax := "", "", ""
	if d.Channels != 0 {
		channels = strconv.Itoa(d.Channels)
	}
	if d.Bits != 0 {
		bits = strconv.Itoa(d.Bits)
	}
	if d.FloatMax != 0 {
		floatMax = strconv.FormatFloat(d.FloatMax, 'g', -1, 64)
	}
	for key, value := range map[string]string{
		"label": d.Label, "group": d.Group, "duplicates": d.Duplicates,
		"data": d.Place(), "data-folder": Absolute(d.Dir), "size": d.Size, "resize": d.Resize, "classes": d.Classes, "without-classes": d.WithoutClasses,
		"channels": channels, "bits": bits, "float-max": floatMax, "validation": d.Validation.String(), "test": d.Test.String(), "max-skipped": d.MaxSkipped.String(),
	} {
		if value != "" {
			into[key] = value
		}
	}
}

// fraction is a fraction of images, with the values of datasets.Options: 0 for the default, if the
// flag was not given, and -1 for none.
type fraction float64

// Whole turns off the drawing of splits: only those that the data have are held out.
func (d *Data) Whole() { d.Validation, d.Test = -1, -1 }

// String returns the text that Set reads, "" if the flag was not given.
func (s *fraction) String() string {
	switch {
	case *s == 0:
		return ""
	case *s < 0:
		return "0"
	}
	return strconv.FormatFloat(float64(*s), 'g', -1, 64)
}

// Set parses the flag. Numbers below 0 count as 0: none.
func (s *fraction) Set(text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v < 1) {
		return errors.Errorf("fraction %q", text)
	}
	if *s = fraction(v); v <= 0 {
		*s = -1
	}
	return nil
}

func (s *fraction) Type() string { return "fraction" }

// Options returns the flags as options of package datasets. progress may be nil.
func (d *Data) Options(ctx context.Context, progress func(file string, done, total int64)) (o datasets.Options, err error) {
	if d.Dir != "" {
		if info, err := os.Stat(d.Dir); err != nil || !info.IsDir() {
			return o, Usagef("pollen: --data-folder must be a directory, got %s", d.Dir)
		}
	}
	o = datasets.Options{
		Dir: d.Dir, Context: ctx, Channels: d.Channels, Bits: d.Bits, FloatMax: d.FloatMax, OnProgress: progress,
		Validation: float64(d.Validation), Test: float64(d.Test), MaxSkipped: float64(d.MaxSkipped),
		Classes: split(d.Classes), WithoutClasses: split(d.WithoutClasses), Label: d.Label, Group: d.Group,
		Duplicates: datasets.Duplicates(d.Duplicates),
	}
	if d.Resize != "" && d.Resize != Stretch && d.Resize != Crop {
		return o, Usagef("pollen: --resize must be %s or %s, got %q", Stretch, Crop, d.Resize)
	}
	o.Crop = d.Resize == Crop
	o.Height, o.Width, err = ParseSize(d.Size)
	return o, err
}

func split(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// ParseSize reads "32" or "48x64", height first. It returns 0 for "".
func ParseSize(text string) (height, width int, err error) {
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
		return 0, 0, Usagef("pollen: --size must be a number, or height and width such as 48x64, got %q", text)
	}
	return height, width, nil
}

// Check returns an error if name, the value of a flag, is neither a data set nor a path.
func Check(flag, name, dir string) error {
	if slices.Contains(datasets.Names(), name) {
		return nil
	}
	for _, path := range []string{name, filepath.Join(dir, name), filepath.Join(os.Getenv(datasets.EnvironmentDir), name)} {
		if _, err := os.Stat(path); err == nil {
			return nil
		}
	}
	return Usagef("pollen: %s: no data set %q, and no directory or file of that name; %s", flag, name, nearest.Among(name, datasets.Names()))
}

// TestData returns the data that the named runs are scored on: their own, or those at place if it
// is not "". It returns an error if the runs have different own data, or if test images of one may
// be training images of another. classes are the runs' class names.
func TestData(runs []string, own []Data, classes [][]string, place string) (Data, error) {
	tested, first := Data{Name: place, Foreign: true}, -1
	for i, d := range own {
		switch {
		case place != "" && d.Place() != tested.Place():
		case first < 0:
			tested, first = d, i
		case d.Place() != tested.Place() && !sameSet(classes[first], classes[i]):
			return d, Usagef("pollen: %s was trained on %s, %s on %s, which have different classes: score them separately",
				runs[first], tested.Name, runs[i], d.Name)
		case d.Place() != tested.Place():
			return d, Usagef("pollen: %s was trained on %s, %s on %s: choose one with --data", runs[first], tested.Name, runs[i], d.Name)
		case d.Label != tested.Label:
			return d, Usagef("pollen: %s was trained on other labels of %s than %s: score them separately", runs[i], d.Name, runs[first])
		case d.Classes != tested.Classes || d.WithoutClasses != tested.WithoutClasses:
			return d, Usagef("pollen: %s was trained on other classes of %s than %s: score them separately", runs[i], d.Name, runs[first])
		case d.Test != tested.Test || d.Group != tested.Group || d.drops() != tested.drops():
			return d, Usagef("pollen: %s held out other test images of %s than %s (--test, --group, --duplicates): score them separately",
				runs[i], d.Name, runs[first])
		}
	}
	return tested, nil
}

// sameSet reports whether two lists have the same names, in any order.
func sameSet(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// FilesChanged reports whether d is the run's own data and a file differs from the one that the run
// was trained on. hashes are by file name.
func FilesChanged(m bayes.Manifest, d Data, hashes map[string]string) bool {
	own := DataOf(m)
	for name, hash := range hashes {
		if then, known := m.Data.Hashes[name]; known && then != hash {
			return own.Place() == d.Place()
		}
	}
	return false
}

// GroupColumn returns the column of groups as a list, which is empty if groups are not given by a
// column.
func (d *Data) GroupColumn() []string {
	return given((datasets.Options{Group: d.Group}).GroupColumn())
}

// given returns a list of the texts that are not empty.
func given(texts ...string) []string {
	return slices.DeleteFunc(texts, func(text string) bool { return text == "" })
}

// OOD returns the out-of-distribution data of a name and classes ("" for all), for runs that were
// trained on the known classes of d. If name is d itself, OOD selects the classes that were held
// out.
func (d Data) OOD(name, classes string, known []string) (Data, error) {
	other := Data{Name: name, Dir: d.Dir, Classes: classes, MaxSkipped: d.MaxSkipped, FloatMax: d.FloatMax}
	if name == "" || other.Place() != d.Place() {
		other.Foreign = true
		return other, nil
	}
	other.Size, other.Channels, other.Resize, other.Label = d.Size, d.Channels, d.Resize, d.Label
	switch {
	case classes != "":
	case d.WithoutClasses != "":
		other.Classes = d.WithoutClasses
	case d.Classes != "":
		other.WithoutClasses = d.Classes
	default:
		return other, Usagef("pollen: --out must be other data than the runs' own, or some of its held-out --classes, got %s", name)
	}
	for _, class := range split(other.Classes) {
		if slices.Contains(known, class) {
			return other, Usagef("pollen: --classes must be out of distribution, but the runs were trained on %[2]q of %[1]s", name, class)
		}
	}
	return other, nil
}

// In returns d with another data directory, unless dir is "".
func (d Data) In(dir string) Data {
	if dir != "" {
		d.Dir = dir
	}
	return d
}

// ImagesOf returns the options to read other images as a run's were read: in the same shape, with
// the same range of values, and without the same columns of tables.
func ImagesOf(m bayes.Manifest) datasets.Options {
	d, own := m.Data, DataOf(m)
	return datasets.Options{
		Channels: d.Channels, Height: d.Height, Width: d.Width, Crop: d.Crop, Bits: d.Bits,
		FloatMax: own.FloatMax, OtherColumns: append(own.GroupColumn(), given(own.Label)...),
	}
}

// DataOf returns the flags that a run's data were opened with.
func DataOf(m bayes.Manifest) Data {
	n := m.Notes
	d := Data{
		Name: n["data"], Dir: n["data-folder"], Size: n["size"], Resize: n["resize"], Classes: n["classes"], WithoutClasses: n["without-classes"],
		Label: n["label"], Group: n["group"], Duplicates: n["duplicates"],
	}
	// Missing notes leave 0.
	d.Channels, _ = strconv.Atoi(n["channels"])
	d.Bits, _ = strconv.Atoi(n["bits"])
	d.FloatMax, _ = strconv.ParseFloat(n["float-max"], 64)
	_ = d.Validation.Set(n["validation"])
	_ = d.Test.Set(n["test"])
	_ = d.MaxSkipped.Set(n["max-skipped"])
	d.Name = cmp.Or(d.Name, m.Data.Name)
	return d
}
