package datasets

import (
	"cmp"

	"github.com/pkg/errors"
)

// Description describes a data set and where Load would read it from.
type Description struct {
	Name       string
	What       string // such as "handwritten digits"
	Images     [2]int // by Split; 0 if it depends on the user's copy
	Channels   int
	Height     int
	Width      int
	ClassNames []string

	// Places has, by Split, the directory with the files, "built in", the address of a download,
	// or "" if the user must get the files.
	Places [2]string

	// Advice explains how to get the files if Load cannot.
	Advice string
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
// For a known name, Load reads other splits only if a validation split is drawn from them, or if
// copies are dropped or refused, so that the test split may be the only one present. In another
// shape, or with selected classes, the split then has its own Mean and Std. For a path, Load reads
// all splits, for the Mean and Std of the training images, if there are any.
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
	single := (split == Test || split == Train && options.Validation <= 0) && options.Group == "" && options.Label == "" && options.duplicates() == AllowDuplicates
	for _, source := range sources() {
		if source.name != name || !single {
			continue
		}
		options, remarks := options.recording()
		dataset, err := source.load(split, options)
		if err == nil && (options.shapes() || options.selects()) {
			if err = options.apply(&dataset); err == nil {
				dataset.Mean, dataset.Std = moments(dataset.Images, dataset.Channels, dataset.Height*dataset.Width)
			}
		}
		if err != nil {
			return nil, err
		}
		options.remarkSkipped(dataset)
		dataset.Remarks = remarks.texts
		return dataset, dataset.Validate()
	}
	splits, err := openAll(name, options)
	if err != nil {
		return nil, err
	}
	dataset := splits.array()[split]
	if dataset == nil {
		return nil, errors.WithStack(&NoSplitError{name, split})
	}
	return dataset, nil
}

// LoadUnseen returns images of a data set that is not used for training: its test split, or else
// its validation split, or else all images. No split is drawn.
func LoadUnseen(name string, options Options) (*Dataset, error) {
	for _, source := range sources() {
		if source.name == name {
			return Load(name, Test, options)
		}
	}
	options.Validation, options.Test = -1, -1
	splits, err := openAll(name, options)
	if err != nil {
		return nil, err
	}
	return cmp.Or(splits.Test, splits.Validation, splits.Train), nil
}
