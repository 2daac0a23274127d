package datasets

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
)

// EnvironmentDir names the environment variable with the user's data
// folder, looked into after Options.Folder.
const EnvironmentDir = "POLLEN_DATA"

// A Split is the part of a data set meant for one use.
type Split int

// The splits, as the data sets' authors made them, or as Open drew them.
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

// Options say where Open, Load and List look, and what the images should be like. The zero value
// suits most programs.
type Options struct {
	// Folder is the user's data folder: files are looked for in a folder of
	// the data set's name inside it, then in itself. "" is none.
	Dir string

	// Cache is the folder for downloads, each data set in its own folder, and for decoded images of
	// folders of pictures, in "decoded". "" is the folder "pollen" in the user's cache folder; if
	// that cannot be written, images are not kept, and Remark is told.
	Cache string

	// NoCache neither keeps decoded images nor uses kept ones.
	NoCache bool

	// Offline forbids downloads.
	Offline bool

	// OnProgress, if not nil, is called from one goroutine at a time: during a download with the
	// file's name, the bytes arrived and the total; while decoding pictures with the folder, the
	// pictures done and the total.
	OnProgress func(file string, done, total int64)

	// Remark, if not nil, is told what a person should know about how the data were read.
	Remark func(text string)

	// Context ends downloads and the decoding of pictures when it is done. nil is
	// context.Background().
	Context context.Context

	// Height, Width and Channels are the shape of the images; 0 is what the
	// data have (for pictures of several sizes, see the package's page). Height
	// and Width are given together.
	Height, Width, Channels int

	// Validation is the share of the training images that become the validation split, Test that of
	// all images that become the test split, if the data have no such split: 0 means 0.1 and 0.2
	// for data without any split and none for others, negative means none.
	Validation, Test float64

	// Seed decides which images are drawn for the splits.
	Seed uint64

	// Classes, if not empty, are the names of the only classes to read,
	// WithoutClasses of those to leave out; see Dataset.WithClasses.
	Classes, WithoutClasses []string

	// MaxSkipped is the share of the pictures of a split that may be left out, see Dataset.Skipped;
	// 0 is 0.05, negative is none.
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

// cache returns the folder for downloads, or an error if the machine has none.
func (o Options) cache() (string, error) {
	if o.Cache != "" {
		return o.Cache, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", errors.Wrap(err, "no cache folder")
	}
	return filepath.Join(dir, "pollen"), nil
}

// A Description says what a data set is and where Load would get it.
type Description struct {
	Name       string
	What       string
	Images     [2]int // by Split; 0 where it depends on the user's copy
	Channels   int
	Height     int
	Width      int
	ClassNames []string

	// Places is, by Split, the folder that has the files now, "built in", the address of a
	// download, or "" if the user must get the files.
	Places [2]string

	// Advice says how to get the files if Load cannot.
	Advice string
}

// Names returns the names that Load knows.
func Names() []string {
	var names []string
	for _, source := range sources() {
		names = append(names, source.name)
	}
	return names
}

// List describes the data sets that Load knows. It looks for their files, whose names and hashes
// say whose they are, but downloads none.
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

// Load returns one split of what Open would return. It is an error if there is
// none.
//
// For a known name, other splits are only read if a validation split is drawn from them, so that a
// test split may be all there is; in another shape, or of some classes, it then has moments of its
// own. For a path all are read, for the moments of the training images, if there are any.
//
// Files are looked for in Options.Folder, in the folder that the environment variable POLLEN_DATA
// names, where the data set's own distribution puts them (a Go module, a Debian package), and in
// the cache; then they are downloaded. The first place that has them is used, and a wrong file
// there is an error. If no place has them, the error names all places.
func Load(name string, split Split, options Options) (*Dataset, error) {
	if split != Train && split != Test && split != Validation {
		return nil, errors.Errorf("datasets: %s: split %d, want Train, Validation or Test", name, int(split))
	}
	if err := options.check(); err != nil {
		return nil, err
	}
	alone := split == Test || split == Train && options.Validation <= 0
	for _, source := range sources() {
		if source.name != name || !alone {
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
		return nil, errors.Errorf("datasets: %s: no %s split, and no share of the images is to become one", name, split)
	}
	return dataset, nil
}
