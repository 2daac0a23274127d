package datasets

import (
	"math"
	"strconv"

	"github.com/pkg/errors"
)

// Dataset is a set of images, as bytes, with their labels, in memory.
type Dataset struct {
	Name string

	// Images has the images [N C H W], one byte per value: image i is Images[i*C*H*W:(i+1)*C*H*W].
	// For letters and digits, 0 is background and 255 full ink.
	Images []byte
	Labels []int32  // one of 0 ... Classes-1 for each image, or nil if unknown (ReadImages, New)
	Files  []string // one for each image, relative to Place, or in a Parquet file; nil if images are not files

	// IDs has the identifier of each image in the table that it is from, and IDName the name of
	// their column, such as ImageId. IDs is nil without such a column. Only ReadImages and
	// DecodeArrays keep them.
	IDs    []string
	IDName string

	// Groups has the group of each image, such as a patient or a video, whose images are alike. nil
	// if there are no groups. Stratified keeps the images of a group together.
	Groups []string

	Channels, Height, Width int
	Cropped                 bool // Options.Crop was set
	Bits                    int  // Options.Bits
	Classes                 int
	ClassNames              []string // one for each class

	// Mean and Std are the mean and standard deviation of pixel/255 in each channel of the training
	// set, also in other splits. Without a fixed training set (notmnist, New, ReadImages) they are
	// computed from this Dataset's images. Std of a constant channel is 1. A network's input is
	// (pixel/255 - Mean[c])/Std[c], with Mean and Std of the data that it was trained on.
	Mean, Std []float64

	// Hashes maps the name of each file read to the SHA-256 of its bytes, in hexadecimal.
	Hashes map[string]string

	Place string // directory of the files

	LabelColumn string // heading of the column with the labels, or "" if no column has them

	// Skipped lists the image files that were skipped, each as "path: reason", because they could
	// not be read or have no class. A subset of a data set keeps the whole list.
	Skipped []string
	// Failed has the files of Skipped with their errors. Only ReadImages sets it.
	Failed []ImageError

	// Remarks are sentences about the data for the user, such as a count of images that are also in
	// another split. Each split has the remarks on the whole set.
	Remarks []string
}

// Len returns the number of images.
func (d *Dataset) Len() int {
	if d.Labels != nil || d.ImageSize() == 0 {
		return len(d.Labels)
	}
	return len(d.Images) / d.ImageSize()
}

// ImageSize returns the number of bytes of one image, C*H*W.
func (d *Dataset) ImageSize() int { return d.Channels * d.Height * d.Width }

// Image returns the bytes of image i, without a copy. It panics if i is not in
// [0, Len).
func (d *Dataset) Image(i int) []byte {
	size := d.ImageSize()
	return d.Images[i*size : (i+1)*size : (i+1)*size]
}

// Counts returns the number of images of each class. The data set must be valid.
func (d *Dataset) Counts() []int {
	counts := make([]int, d.Classes)
	for _, label := range d.Labels {
		counts[label]++
	}
	return counts
}

// Slice returns the images from ... to-1 as a data set that shares its memory with d. It returns an
// error unless 0 <= from < to <= Len.
func (d *Dataset) Slice(from, to int) (*Dataset, error) {
	if from < 0 || from >= to || to > d.Len() {
		return nil, errors.Errorf("datasets: %s: slice must be a non-empty part of [0, %[4]d), got [%[2]d, %[3]d)", d.Name, from, to, d.Len())
	}
	slice := *d
	size := d.ImageSize()
	slice.Images = d.Images[from*size : to*size : to*size]
	slice.Labels, slice.Files = sliced(d.Labels, from, to), sliced(d.Files, from, to)
	slice.IDs, slice.Groups = sliced(d.IDs, from, to), sliced(d.Groups, from, to)
	return &slice, nil
}

// sliced returns a part of a list with a value for each image, nil if the list is.
func sliced[T any](list []T, from, to int) []T {
	if list == nil {
		return nil
	}
	return list[from:to:to]
}

// Split returns the first n images and the others, as Slice does, for example to hold out the end
// of a training set for validation. It returns an error unless both have at least one image.
func (d *Dataset) Split(n int) (first, others *Dataset, err error) {
	if first, err = d.Slice(0, n); err != nil {
		return nil, nil, err
	}
	if others, err = d.Slice(n, d.Len()); err != nil {
		return nil, nil, err
	}
	return first, others, nil
}

// maxClasses is the largest number of classes of a data set.
const maxClasses = math.MaxUint16 + 1

// numberNames returns the names "0", "1", ... for a number of classes.
func numberNames(classes int) []string {
	names := make([]string, classes)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}

// Validate returns an error unless the data set has at least one image, the numbers of images,
// labels and class names agree, class names are distinct, every label is below Classes, Mean is
// finite and Std is finite and positive.
func (d *Dataset) Validate() error {
	if err := d.checkSizes(); err != nil {
		return err
	}
	if err := d.checkClasses(); err != nil {
		return err
	}
	for _, list := range []struct {
		what   string
		values []string
	}{{"a file name", d.Files}, {"an identifier", d.IDs}, {"a group", d.Groups}} {
		if list.values != nil && len(list.values) != d.Len() {
			return errors.Errorf("datasets: %s: must have %s for each of %[4]d images, got %[3]d", d.Name, list.what, len(list.values), d.Len())
		}
	}
	if len(d.Mean) != d.Channels || len(d.Std) != d.Channels {
		return errors.Errorf("datasets: %s: must have a mean and a standard deviation for each of %[4]d channels, got %[2]d and %[3]d",
			d.Name, len(d.Mean), len(d.Std), d.Channels)
	}
	for c := range d.Channels {
		if mean := d.Mean[c]; math.IsNaN(mean) || math.IsInf(mean, 0) {
			return errors.Errorf("datasets: %s: mean in channel %[3]d must be finite, got %[2]v", d.Name, mean, c)
		}
		if std := d.Std[c]; !(std > 0) || math.IsInf(std, 0) {
			return errors.Errorf("datasets: %s: standard deviation in channel %[3]d must be finite and positive, got %[2]v", d.Name, std, c)
		}
	}
	return nil
}

// checkSizes returns an error unless there are images, and a label for each if there are labels.
func (d *Dataset) checkSizes() error {
	if d.Channels < 1 || d.Height < 1 || d.Width < 1 {
		return errors.Errorf("datasets: %s: images must have at least 1x1x1 values, got %dx%dx%d",
			d.Name, d.Channels, d.Height, d.Width)
	}
	if len(d.Images) == 0 {
		return errors.Errorf("datasets: %s: must have at least 1 image, got none", d.Name)
	}
	if d.Height > len(d.Images)/d.Channels || d.Width > len(d.Images)/d.Channels/d.Height { // whose product may overflow
		return errors.Errorf("datasets: %s: must have at least 1 image of %dx%dx%d bytes, got %d bytes", d.Name, d.Channels, d.Height, d.Width, len(d.Images))
	}
	images, rest := len(d.Images)/d.ImageSize(), len(d.Images)%d.ImageSize()
	if rest != 0 {
		return errors.Errorf("datasets: %s: images must have %d bytes each, got %d bytes", d.Name, d.ImageSize(), len(d.Images))
	}
	if d.Labels != nil && len(d.Labels) != images {
		return errors.Errorf("datasets: %s: must have a label for each of %[3]d images of %dx%dx%d, got %[2]d",
			d.Name, len(d.Labels), images, d.Channels, d.Height, d.Width)
	}
	return nil
}

// checkClasses returns an error unless there are distinct valid names for all classes, and labels
// are numbers of classes.
func (d *Dataset) checkClasses() error {
	if (d.Classes < 1 && d.Labels != nil) || d.Classes > maxClasses {
		return errors.Errorf("datasets: %s: must have 1 to %[3]d classes, got %[2]d", d.Name, d.Classes, maxClasses)
	}
	if len(d.ClassNames) != d.Classes {
		return errors.Errorf("datasets: %s: must have %[3]d class names, got %[2]d", d.Name, len(d.ClassNames), d.Classes)
	}
	numbers := make(map[string]int, d.Classes)
	for i, name := range d.ClassNames {
		if first, twice := numbers[name]; twice {
			return errors.Errorf("datasets: %s: class names must be distinct, got %q for classes %d and %d", d.Name, name, first, i)
		}
		if err := checkClass(name); err != nil {
			return errors.WithMessagef(err, "datasets: %s", d.Name)
		}
		numbers[name] = i
	}
	for i, label := range d.Labels {
		if label < 0 || int(label) >= d.Classes {
			return errors.Errorf("datasets: %s: label %d must be 0 or more and below %[4]d, got %[3]d", d.Name, i, label, d.Classes)
		}
	}
	return nil
}

// moments returns the mean and the (population) standard deviation of pixel/255 in each channel of
// images [N C H W] with H W = plane. Both are computed from exact integer sums, so they are the
// same on every machine. The standard deviation of a constant channel is 1.
func moments(images []byte, channels, plane int) (mean, std []float64) {
	counts := make([][256]uint64, channels)
	for at := 0; at < len(images); at += plane {
		count := &counts[at/plane%channels]
		for _, pixel := range images[at : at+plane] {
			count[pixel]++
		}
	}
	for c := range counts {
		var n, sum, squares uint64
		values := 0
		for pixel, count := range counts[c] {
			if count > 0 {
				values++
			}
			n += count
			sum += uint64(pixel) * count
			squares += uint64(pixel*pixel) * count
		}
		m := float64(sum) / float64(n) / 255
		variance := float64(squares)/float64(n)/(255*255) - float64(m*m)
		if values == 1 {
			variance = 1
		}
		mean, std = append(mean, m), append(std, math.Sqrt(max(variance, 0)))
	}
	return mean, std
}
