package datasets

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/nearest"
)

// Open returns all splits of the known data set called name, or else of the directory or file at
// the path name, which may be relative to Options.Dir or the directory of POLLEN_DATA. A directory
// with the name of a known data set can be opened by a path such as ./mnist.
//
// Data with a validation or test split keep them. A missing one is drawn by Stratified from the
// training images, with the fractions Options.Test and Options.Validation, and groups stay together
// (Options.Group). Known data sets keep their published splits unless a fraction is set, and their
// published Mean and Std. For other data, Mean and Std of all splits are computed from the training
// images.
//
// The package documentation describes image directories and Parquet files, and ArrayFormats the
// formats of arrays.
//
// It returns an OptionError if an option is invalid or does not suit the data, and a NoClassesError
// for images without classes, a single image among them.
func Open(name string, options Options) (*Splits, error) {
	splits, err := openAll(name, options)
	if err == nil && splits.Train == nil {
		return nil, errors.Errorf("datasets: %s: must have training images", name)
	}
	return splits, err
}

// openAll is Open, but accepts data without training images.
func openAll(name string, options Options) (*Splits, error) {
	options, remarks := options.recording()
	splits, err := open(name, options)
	if err != nil {
		return nil, err
	}
	options.remarkSkipped(splits.Train, splits.Validation, splits.Test)
	for _, part := range splits.all() {
		part.Remarks = remarks.texts
	}
	return splits, nil
}

// open finds the data, reads them, and applies the options.
func open(name string, options Options) (*Splits, error) {
	if err := options.check(); err != nil {
		return nil, err
	}
	for _, source := range sources() {
		if source.name != name {
			continue
		}
		splits := &Splits{}
		var err error
		if splits.Train, err = source.load(Train, options); err != nil {
			return nil, err
		}
		if splits.Test, err = source.load(Test, options); err != nil {
			return nil, err
		}
		return finish(splits, options, true)
	}
	path, err := options.find(name)
	if err != nil {
		return nil, err
	}
	var splits *Splits
	switch arrays := options.arraysAt(path); {
	case arrays != nil:
		splits, err = arrays.open(path, options)
	case options.isTableFile(path):
		splits, err = openTree(func() (tree, error) { return options.scanTable(path) }, options)
	case isParquet(path):
		splits, err = openTree(func() (tree, error) { return options.scanParquet(path) }, options)
	case isDir(path):
		splits, err = openImageDir(path, options)
	case IsImage(path):
		err = errors.WithStack(&NoClassesError{path, "must be a data set, got an image: give the directory that has a directory of images for each class"})
	case isArchive(path):
		return nil, errors.Errorf("datasets: %s: archives are not read: unpack it and give the directory", path)
	case conversion(path) != "":
		return nil, errors.Errorf("datasets: %s: %s", path, conversion(path))
	default:
		return nil, errors.Errorf("datasets: %s: must be one of\n  %s", path, strings.Join(readable(), "\n  "))
	}
	if options.Unlabelled && !options.selects() && errors.As(err, new(*NoClassesError)) {
		return options.unlabelled(path)
	}
	if err != nil {
		return nil, err
	}
	return finish(splits, options, false)
}

// isArchive reports whether a path ends like an archive of files.
func isArchive(path string) bool {
	return slices.ContainsFunc([]string{".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".7z", ".rar"}, func(end string) bool {
		return strings.HasSuffix(strings.ToLower(path), end)
	})
}

// readable describes everything that can be opened, for errors.
func readable() []string {
	return append(ArrayFormats(), "a directory with a directory of images for each class ("+extensions()+")")
}

// unlabelled returns all images at a path as a test split without labels.
func (o Options) unlabelled(path string) (*Splits, error) {
	images, err := ReadImages([]string{path}, o)
	if err != nil {
		return nil, err
	}
	images.Name = nameOf(path)
	if IsImage(path) && !isDir(path) {
		images.Name = filepath.Base(path)
	}
	return &Splits{Test: images}, nil
}

// find returns the path for a name.
func (o Options) find(name string) (string, error) {
	tried := []string{name}
	for _, dir := range []string{o.Dir, os.Getenv(EnvironmentDir)} {
		if dir != "" && !filepath.IsAbs(name) {
			tried = append(tried, filepath.Join(dir, name))
		}
	}
	for _, path := range tried {
		_, err := os.Stat(path)
		if err == nil && name != "" {
			return filepath.Clean(path), nil
		}
		if err != nil && !os.IsNotExist(err) {
			return "", errors.Wrap(err, "datasets")
		}
	}
	return "", errors.WithStack(&UnknownError{name, tried})
}

// UnknownError is the error for a name that is neither a data set's nor a path.
type UnknownError struct {
	Name  string
	Tried []string // paths
}

// Error has the names of data sets and the paths.
func (e *UnknownError) Error() string {
	return fmt.Sprintf("datasets: no data set %q; %s, or the path of a directory or file. Tried:\n  %s",
		e.Name, nearest.Among(e.Name, Names()), strings.Join(e.Tried, "\n  "))
}
