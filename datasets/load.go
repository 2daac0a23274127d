package datasets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
)

// EnvironmentDir is the name of the environment variable with the user's data directory, searched
// after Options.Dir.
const EnvironmentDir = "POLLEN_DATA"

// Split is the part of a data set for training, testing or validation.
type Split int

// The splits, as defined by the data set's authors or drawn by Open.
const (
	Train Split = iota
	Test
	Validation
)

// String returns "train", "test" or "validation".
func (s Split) String() string {
	switch s {
	case Train:
		return "train"
	case Test:
		return "test"
	case Validation:
		return "validation"
	default:
		return "unknown"
	}
}

// Options configure where Open, Load and List search, and the shape, splits and classes of the
// images. The zero value suits most programs.
type Options struct {
	// Dir is the user's data directory. Files are searched in its subdirectory with the data set's
	// name, then in itself. "" is none.
	Dir string

	// Cache is the directory for downloads, in a subdirectory per data set, and for decoded images,
	// in "decoded". "" is the directory "pollen" in the user's cache directory; if that cannot be
	// written, decoded images are not cached, and Remark is called.
	Cache string

	// NoCache disables the cache of decoded images.
	NoCache bool

	// Offline forbids downloads.
	Offline bool

	// OnProgress, if not nil, is called from one goroutine at a time: during a download with the
	// file's name, the bytes received and the total; while decoding images with the directory, the
	// images done and the total.
	OnProgress func(file string, done, total int64)

	// Remark, if not nil, is called with remarks for the user on how the data were read.
	Remark func(text string)

	// Context cancels downloads and decoding. nil is context.Background().
	Context context.Context

	// Height, Width and Channels are the requested shape of the images; 0 keeps the data's own (for
	// image files of several sizes, see the package documentation). Height and Width must be set
	// together.
	Height, Width, Channels int

	// Validation is the fraction of the training images to draw for the validation split, Test the
	// fraction of all images to draw for the test split, if the data have no such split. 0 means
	// 0.1 and 0.2 for data without any split, and none for others; negative means none.
	Validation, Test float64

	// Seed determines which images are drawn for the splits.
	Seed uint64

	// Classes, if not empty, are the names of the only classes to read. WithoutClasses are the
	// names of classes to omit. See Dataset.WithClasses.
	Classes, WithoutClasses []string

	// MaxSkipped is the maximum fraction of a split's image files that may be skipped, see
	// Dataset.Skipped. 0 means 0.05, negative means none.
	MaxSkipped float64
}

func (o Options) remark(format string, values ...any) {
	if o.Remark != nil {
		o.Remark(fmt.Sprintf(format, values...))
	}
}

func (o Options) context() context.Context {
	if o.Context == nil {
		return context.Background()
	}
	return o.Context
}

// cache returns the cache directory, or an error if the machine has none.
func (o Options) cache() (string, error) {
	if o.Cache != "" {
		return o.Cache, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", errors.Wrap(err, "no cache directory")
	}
	return filepath.Join(dir, "pollen"), nil
}

// Description describes a data set and where Load would read it from.
type Description struct {
	Name       string
	What       string // such as "handwritten digits"
	Images     [2]int // by Split; 0 if it depends on the user's copy
	Channels   int
	Height     int
	Width      int
	ClassNames []string

	// Places has, by Split, the directory with the files, "built in", the address of a download, or
	// "" if the user must get the files.
	Places [2]string

	// Advice explains how to get the files if Load cannot.
	Advice string
}

// Names returns the names of the known data sets.
func Names() []string {
	var names []string
	for _, source := range sources() {
		names = append(names, source.name)
	}
	return names
}

// List describes the known data sets. It searches for their files by name and hash, but downloads
// none.
func List(options Options) []Description {
	var list []Description
	for _, source := range sources() {
		list = append(list, Description{
			Name: source.name, What: source.what, Images: source.images,
			Channels: 1, Height: knownSide, Width: knownSide,
			ClassNames: source.classNames, Advice: source.advice,
			Places: [2]string{source.whereabouts(Train, options), source.whereabouts(Test, options)},
		})
	}
	return list
}

// Load returns one split of the data set that Open would return, or an error if there is no such
// split.
//
// For a known name, Load reads other splits only if a validation split is drawn from them, so that
// the test split may be the only one present. In another shape, or with selected classes, the split
// then has its own Mean and Std. For a path, Load reads all splits, for the Mean and Std of the
// training images, if there are any.
//
// Files are searched in Options.Dir, in the directory of the environment variable POLLEN_DATA,
// where the data set's distribution puts them (a Go module, a Debian package), and in the cache;
// then they are downloaded. The first place that has them is used, and a wrong file there is an
// error. If no place has them, the error lists all places.
func Load(name string, split Split, options Options) (*Dataset, error) {
	if split != Train && split != Test && split != Validation {
		return nil, errors.Errorf("datasets: %s: split must be Train, Validation or Test, got %d", name, int(split))
	}
	if err := options.check(); err != nil {
		return nil, err
	}
	single := split == Test || split == Train && options.Validation <= 0
	for _, source := range sources() {
		if source.name != name || !single {
			continue
		}
		dataset, err := source.load(split, options)
		if err == nil && (options.shapes() || options.selects()) {
			if err = options.apply(&dataset); err == nil {
				dataset.Mean, dataset.Std = moments(dataset.Images, dataset.Channels, dataset.Height*dataset.Width)
			}
		}
		if err != nil {
			return nil, err
		}
		return dataset, dataset.Validate()
	}
	splits, err := open(name, options)
	if err != nil {
		return nil, err
	}
	dataset := [3]*Dataset{Train: splits.Train, Test: splits.Test, Validation: splits.Validation}[split]
	if dataset == nil {
		return nil, errors.Errorf("datasets: %s: must have a %s split, or a fraction of the images to draw for it", name, split)
	}
	return dataset, nil
}
