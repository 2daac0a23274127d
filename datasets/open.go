package datasets

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"
)

// Splits are the parts of one data set, of the same shape, classes and
// moments. Validation and Test may be nil.
type Splits struct{ Train, Validation, Test *Dataset }

// A format is one row of the table of formats that Open reads.
type format struct {
	description string                 // what the format is, for errors
	recognise   func(path string) bool // path is there
	read        func(path string, options Options) (*Splits, error)
}

// formats returns the table, in the order in which a path is tried. A format that reads arrays
// leaves the shape, classes and shares in the options to finish.
func formats() []format {
	return []format{
		{"an archive of arrays of numpy's (.npz)", isNPZ, openNPZ},
		{"an archive of CIFAR-10 or CIFAR-100 as published (.tar.gz)", isTar, openCIFARArchive},
		{"a folder with the files of CIFAR-10 or CIFAR-100, binary or for Python", isCIFARDir, openCIFARDir},
		{"a folder with IDX files under MNIST's names", isIDXDir, openIDX},
		{"a CSV file with a label and pixels in each line (.csv, .csv.gz)", isCSV, openCSV},
		{"a folder with such CSV files for the splits, train.csv and test.csv", isCSVDir, openCSVDir},
		{"a folder of pictures with a folder for each class (" + extensions() + ")", isDir, openImageDir},
	}
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// Open returns all splits of the known data set of that name, or else of the folder or file at that
// path, as it is or inside Options.Folder or the folder named by POLLEN_DATA. A folder with a known
// name is opened by a path such as ./mnist.
//
// Data with a validation or a test split are left as they are; from others, Stratified draws a test
// and a validation split. Options.Validation and Options.Test set other shares. Mean and Deviation
// of all splits are those of the training images, except that known names keep their published
// figures.
//
// The package's page has a section on folders of pictures. Other formats:
//
// An .npz archive with the arrays train_images, train_labels, val_images,
// val_labels, test_images and test_labels (MedMNIST), x_train, y_train, x_test
// and y_test (Keras), or images and labels: images are unsigned bytes [N H W],
// [N H W C] or [N C H W], labels whole numbers [N] or [N 1].
//
// CIFAR-10 and CIFAR-100, as a folder or as the published .tar.gz, binary or for Python; CIFAR-100
// with its 100 fine labels. No code in a pickle is run.
//
// A folder with IDX files under MNIST's names, of any size, [N H W] or
// [N C H W], with any number of classes.
//
// A CSV file (.csv, .csv.gz) with a line for each image, a label from 0 on and the pixels from 0 to
// 255 of an image as wide as it is high, in grey or with red, green and blue of each pixel in turn.
// The label's column is the first, which Options.Remark is told, or the one headed label (or class,
// classid, category). Or a folder with such files: train.csv, test.csv and val.csv, or names that
// end like these, as mnist_train.csv does.
func Open(name string, options Options) (*Splits, error) {
	splits, err := open(name, options)
	if err == nil && splits.Train == nil {
		return nil, errors.Errorf("datasets: %s: no training images", name)
	}
	return splits, err
}

// open is Open for data that may have no training images.
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
			splits, err := format.read(path, options)
			if err != nil {
				return nil, err
			}
			return finish(splits, options, false)
		}
		wants = append(wants, format.description)
	}
	return nil, errors.Errorf("datasets: %s: want one of\n  %s", path, strings.Join(wants, "\n  "))
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
	return "", errors.Errorf("datasets: no data set %q, want one of %s, or the path of a folder or a file. Tried:\n  %s",
		name, strings.Join(Names(), ", "), strings.Join(tried, "\n  "))
}

// finish applies the options to the splits as they were read.
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
	before := ""
	// The second has another seed: the same order would draw the images next to the first.
	for seed, draw := range []struct {
		part  **Dataset
		share float64
		name  string
	}{{&splits.Test, test, "Test"}, {&splits.Validation, validation, "Validation"}} {
		if *draw.part != nil && draw.share != 0 {
			options.remark("%s has %s images of its own: no others are held out, whatever share is asked for",
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
			return nil, errors.Errorf("datasets: %s: images of %dx%d, want at most %dx%d: ask for a smaller height and width",
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

// shapes reports whether the options ask for a shape.
func (o Options) shapes() bool { return o.Height != 0 || o.Channels != 0 }

// selects reports whether the options select classes.
func (o Options) selects() bool { return len(o.Classes) > 0 || len(o.WithoutClasses) > 0 }

// apply gives a split the classes and the shape that the options ask for.
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
			return invalid("WithoutClasses", "%q is not among the classes asked for, %s", other, abbreviated((*part).ClassNames))
		}
		if *part, err = (*part).WithoutClasses(o.WithoutClasses...); err != nil {
			return invalid("WithoutClasses", "%v", err)
		}
	}
	*part, err = (*part).reshaped(o.Channels, o.Height, o.Width)
	return err
}

// check returns an error if the options contradict themselves.
func (o Options) check() error {
	for _, share := range []struct {
		name  string
		value float64
	}{{"Validation", o.Validation}, {"Test", o.Test}} {
		if math.IsNaN(share.value) || share.value >= 1 {
			return invalid(share.name, "%v, want a share below 1 (0: the usual one, negative: none)", share.value)
		}
	}
	if math.IsNaN(o.MaxSkipped) || o.MaxSkipped > 1 {
		return invalid("MaxSkipped", "%v, want a share of at most 1", o.MaxSkipped)
	}
	if (o.Height == 0) != (o.Width == 0) || o.Height < 0 || o.Width < 0 {
		return invalid("Height", "images of %dx%d, want both sides or neither", o.Height, o.Width)
	}
	if o.Height > MaxSide || o.Width > MaxSide {
		return invalid("Height", "images of %dx%d, want at most %dx%d", o.Height, o.Width, MaxSide, MaxSide)
	}
	if o.Channels < 0 || o.Channels > 4 {
		return invalid("Channels", "%d, want at most 4", o.Channels)
	}
	return nil
}

// reshaped returns the data set with images of another shape; 0 keeps the present value. Sides
// change as for pictures, and so do channels: one is repeated to give several, but for the fourth,
// the opacity, which is full; three become one, their luminance.
func (d *Dataset) reshaped(channels, height, width int) (*Dataset, error) {
	if channels == 0 {
		channels = d.Channels
	}
	if height == 0 {
		height, width = d.Height, d.Width
	}
	if channels == d.Channels && height == d.Height && width == d.Width {
		return d, nil
	}
	if channels != d.Channels && d.Channels != 1 && !(channels == 1 && d.Channels == 3) {
		return nil, invalid("Channels", "%s: images of %d channels, which cannot become %d: 1 becomes any, 3 become 1", d.Name, d.Channels, channels)
	}
	if err := checkMemory(d.Len(), shape{channels, height, width}); err != nil {
		return nil, err
	}
	changed := *d
	changed.Channels, changed.Height, changed.Width = channels, height, width
	changed.Images = make([]byte, d.Len()*changed.ImageSize())
	var scaler resizer
	plane, from := height*width, d.Height*d.Width
	for i := range d.Len() {
		to, image := changed.Image(i), d.Image(i)
		if channels < d.Channels {
			grey := make([]byte, from)
			for p := range grey {
				sum := 19595*uint32(image[p]) + 38470*uint32(image[from+p]) + 7471*uint32(image[2*from+p])
				grey[p] = byte((sum + 1<<15) >> 16)
			}
			image = grey
		}
		for c := range channels {
			if c == 3 && d.Channels == 1 {
				fill(to[c*plane:], 255)
				continue
			}
			source := image[min(c*from, len(image)-from):][:from]
			scaler.grey(to[c*plane:(c+1)*plane], height, width, source, d.Height, d.Width)
		}
	}
	return &changed, nil
}

// New makes a data set from images in memory: pixels are bytes [N C H W], labels has one of 0 ...
// K-1 for each image. classNames are the K names; nil names them 0, 1, ... up to the largest label.
// With neither labels nor names the images are for predictions, as those of ReadImages. Mean and
// Deviation are those of the pixels. The slices are kept, not copied. It is an error unless the
// result is valid (Validate).
func New(name string, pixels []byte, labels []int32, channels, height, width int, classNames []string) (*Dataset, error) {
	d := &Dataset{
		Name: name, Images: pixels, Labels: labels, Place: "memory",
		Channels: channels, Height: height, Width: width,
	}
	if labels == nil && classNames != nil {
		return nil, errors.Errorf("datasets: %s: no labels, want one for each image, or no names of classes", name)
	}
	if labels != nil && classNames == nil {
		largest := int32(0)
		for _, label := range labels {
			largest = max(largest, label)
		}
		if largest >= maxClasses {
			return nil, errors.Errorf("datasets: %s: a label of %d, want them below %d", name, largest, maxClasses)
		}
		classNames = numberNames(int(largest) + 1)
	}
	d.Classes, d.ClassNames = len(classNames), classNames
	// Figures that pass, until it is known that there are images to compute them from.
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
