package datasets

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// format is a row of the table of formats that Open reads. It has arrays, or read.
type format struct {
	description string                 // for errors
	recognise   func(path string) bool // path is there
	arrays      func(path string, options Options) (arraySet, error)
	read        func(path string, options Options) (*Splits, error)
}

// formats returns the table, in the order in which formats are tried. Formats of arrays leave the
// shape, classes and splits of the options to finish.
func formats() []format {
	return []format{
		{"an archive of NumPy arrays (.npz)", isNPZ, readNPZFile, nil},
		{"a published archive of CIFAR-10 or CIFAR-100 (.tar.gz)", isTar, readCIFARFile, nil},
		{"a directory with the files of CIFAR-10 or CIFAR-100, binary or for Python", isCIFARDir, readCIFARDir, nil},
		{"a directory with IDX files under MNIST's names", isIDXDir, readIDXDir, nil},
		{"a CSV file with a label and pixels in each line (.csv, .csv.gz)", isCSV, readCSVFile, nil},
		{"a directory with such CSV files for the splits, train.csv and test.csv", isCSVDir, readCSVDir, nil},
		{"images without labels in NumPy's format (.npy)", isNPY, readNPYFile, nil},
		{"an IDX file of images without labels", isIDXFile, readIDXPath, nil},
		{"a directory with a directory of images for each class (" + extensions() + ")", isDir, nil, openImageDir},
	}
}

// open reads the data at a path that the format recognises.
func (f format) open(path string, options Options) (*Splits, error) {
	if f.arrays == nil {
		return f.read(path, options)
	}
	set, err := f.arrays(path, options)
	if err != nil {
		return nil, err
	}
	return set.splits(path, options)
}

// Open returns all splits of the known data set called name, or else of the directory or file at
// the path name, which may be relative to Options.Dir or the directory of POLLEN_DATA. A directory
// with the name of a known data set can be opened by a path such as ./mnist.
//
// Data with a validation or test split keep their splits. From others, Stratified draws a test and
// a validation split, with fractions that Options.Test and Options.Validation set, and keeps groups
// together (Options.Group). Mean and Std of
// all splits are those of the training images, except that known data sets keep their published
// values.
//
// The package documentation describes image directories. Other formats:
//
// An .npz archive with the arrays train_images, train_labels, val_images, val_labels, test_images
// and test_labels (MedMNIST), x_train, y_train, x_test and y_test (Keras; also with a capital X),
// or images and labels. Images are unsigned bytes or booleans [N H W], [N H W C] or [N C H W],
// labels integers [N] or [N 1].
//
// CIFAR-10 and CIFAR-100, as a directory or as the published .tar.gz, binary or for Python;
// CIFAR-100 with its 100 fine labels. No code in a pickle is executed.
//
// A directory with IDX files under MNIST's names, also with a prefix as in EMNIST, [N H W] or
// [N C H W] of any size.
//
// A CSV file (.csv, .csv.gz) with a line per image: a label from 0, and the pixels of a square
// image from 0 to 255, in grey or with red, green and blue of each pixel in turn. Whole numbers may
// end in ".0". The label is in the column headed label (or class, classid, category), or else, in a
// file without a header, in the first column, which is a remark. A column that numbers the images
// (pandas' index without a name, id, index, a name that ends in id) is not read, which is a remark.
// Other columns are errors, except those of Options.Group and Options.OtherColumns.
// Or a directory with such files: train.csv, test.csv and val.csv, or names that end like these,
// such as mnist_train.csv.
//
// The classes of arrays are the labels that training images have, in order, and are named after
// them: labels need not begin at 0, and missing ones are a remark. Labels that no training image
// has are an error in other splits. Splits other than train that have no labels, such as Kaggle's
// test.csv, are left out, which is a remark; ReadImages reads them.
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
	for _, part := range []*Dataset{splits.Train, splits.Validation, splits.Test} {
		if part != nil {
			part.Remarks = *remarks
		}
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
		return finish(splits, options, !options.shapes() && !options.selects())
	}
	path, err := options.find(name)
	if err != nil {
		return nil, err
	}
	var wants []string
	for _, format := range formats() {
		if format.recognise(path) {
			splits, err := format.open(path, options)
			if without := new(NoClassesError); options.Unlabelled && !options.selects() && errors.As(err, without) {
				return options.unlabelled(without.Path)
			}
			if err != nil {
				return nil, err
			}
			return finish(splits, options, false)
		}
		wants = append(wants, format.description)
	}
	if IsImage(path) {
		if options.Unlabelled && !options.selects() {
			return options.unlabelled(path)
		}
		return nil, errors.WithStack(NoClassesError{path, "must be a data set, got an image: give the directory that has a directory of images for each class"})
	}
	return nil, errors.Errorf("datasets: %s: must be one of\n  %s", path, strings.Join(wants, "\n  "))
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
	return "", errors.Errorf("datasets: unknown data set %q, must be one of %s, or the path of a directory or file. Tried:\n  %s",
		name, strings.Join(Names(), ", "), strings.Join(tried, "\n  "))
}

// finish applies the options to splits as they were read.
func finish(splits *Splits, options Options, keepMoments bool) (*Splits, error) {
	test, validation := options.Test, options.Validation
	if splits.Test == nil && splits.Validation == nil {
		test, validation = defaultShare(test, 0.2), defaultShare(validation, 0.1)
	}
	for _, part := range []**Dataset{&splits.Train, &splits.Validation, &splits.Test} {
		if err := options.apply(part); err != nil {
			return nil, err
		}
	}
	if err := options.groups(splits); err != nil {
		return nil, err
	}
	before := ""
	// The second draw needs another seed: with the same order it would take the images next to the
	// first.
	for seed, draw := range []struct {
		part  **Dataset
		share float64
		name  string
	}{{&splits.Test, test, "Test"}, {&splits.Validation, validation, "Validation"}} {
		if *draw.part != nil && draw.share != 0 {
			options.remark("%s has its own %s images: the requested fraction is ignored",
				(*draw.part).Name, strings.ToLower(draw.name))
		}
		if *draw.part != nil || draw.share <= 0 || splits.Train == nil {
			continue
		}
		rest, part, err := splits.Train.Stratified(draw.share, options.Seed+uint64(seed))
		if err != nil {
			return nil, invalid(draw.name, "%v%s", err, before)
		}
		splits.Train, *draw.part = rest, part
		before = fmt.Sprintf(" (the %s split was drawn before)", strings.ToLower(draw.name))
	}
	if before != "" && options.Group == "" {
		remarkSequences(splits, options)
	}
	if err := options.checkDuplicates(splits); err != nil {
		return nil, err
	}
	if splits.Train != nil {
		remarkValues(splits.Train, options)
	}
	of := cmp.Or(splits.Train, splits.Test, splits.Validation)
	mean, std := of.Mean, of.Std
	if !keepMoments {
		mean, std = moments(of.Images, of.Channels, of.Height*of.Width)
	}
	for _, part := range []*Dataset{splits.Train, splits.Validation, splits.Test} {
		if part == nil {
			continue
		}
		if part.Height > MaxSide || part.Width > MaxSide {
			return nil, errors.Errorf("datasets: %s: images must be at most %[4]dx%[5]d, got %[2]dx%[3]d: use a smaller height and width",
				part.Name, part.Height, part.Width, MaxSide, MaxSide)
		}
		part.Mean, part.Std = mean, std
		if err := part.Validate(); err != nil {
			return nil, err
		}
	}
	return splits, nil
}

func defaultShare(share, standard float64) float64 {
	if share == 0 {
		return standard
	}
	return share
}

// apply selects the options' classes of a split and gives it the options' shape.
func (o Options) apply(part **Dataset) (err error) {
	if *part == nil {
		return nil
	}
	given := *part
	if len(o.Classes) > 0 {
		if *part, err = (*part).WithClasses(o.Classes...); err != nil {
			return invalid("Classes", "%v", err)
		}
	}
	if len(o.WithoutClasses) > 0 {
		if other := missing(given.spelled(o.WithoutClasses), (*part).ClassNames); other != "" && slices.Contains(given.ClassNames, other) {
			return invalid("WithoutClasses", "must be among the selected classes, %[2]s, got %[1]q", other, abbreviated((*part).ClassNames))
		}
		if *part, err = (*part).WithoutClasses(o.WithoutClasses...); err != nil {
			return invalid("WithoutClasses", "%v", err)
		}
	}
	*part, err = (*part).reshaped(o.Channels, o.Height, o.Width, o.Crop)
	return err
}

// New makes a data set from images in memory. pixels are [N C H W]; labels has one of 0 ... K-1 for
// each image; classNames has the K names, and nil means 0, 1, ... up to the largest label. Without
// labels and names, the images are for predictions, like those of ReadImages. Mean and Std are
// those of the pixels. The slices are kept, not copied. It returns an error unless the result is
// valid, see Validate.
func New(name string, pixels []byte, labels []int32, channels, height, width int, classNames []string) (*Dataset, error) {
	d := &Dataset{
		Name: name, Images: pixels, Labels: labels, Place: "memory",
		Channels: channels, Height: height, Width: width,
	}
	if labels == nil && classNames != nil {
		return nil, errors.Errorf("datasets: %s: must have labels if it has class names", name)
	}
	if labels != nil && classNames == nil {
		largest := int32(0)
		for _, label := range labels {
			largest = max(largest, label)
		}
		if largest >= maxClasses {
			return nil, errors.Errorf("datasets: %s: labels must be below %[3]d, got %[2]d", name, largest, maxClasses)
		}
		classNames = numberNames(int(largest) + 1)
		d.Remarks = unusedLabels(name, labels, len(classNames))
	}
	d.Classes, d.ClassNames = len(classNames), classNames
	// Placeholders that pass Validate, which checks that there are images to compute them from.
	d.Mean, d.Std = make([]float64, max(channels, 0)), make([]float64, max(channels, 0))
	for c := range d.Std {
		d.Std[c] = 1
	}
	if err := d.Validate(); err != nil {
		return nil, err
	}
	d.Mean, d.Std = moments(pixels, channels, height*width)
	d.Hashes = map[string]string{name: sha256Hex(pixels)}
	return d, d.Validate()
}
