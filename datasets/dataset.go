package datasets

import (
	"math"
	"strconv"

	"github.com/pkg/errors"
)

// A Dataset is a set of byte images with their labels, all in memory.
type Dataset struct {
	Name string

	// Images holds the images in NCHW order, image i being Images[i*C*H*W : (i+1)*C*H*W], one byte
	// per value. In letters and digits, 0 is background and 255 full ink.
	Images []byte
	Labels []int32  // one of 0 ... Classes-1 for each image; nil where none are known (ReadImages, New)
	Files  []string // one for each image, relative to Place, where images have files of their own

	Channels, Height, Width int
	Classes                 int
	ClassNames              []string // one a class

	// Mean and Deviation are those of pixel/255 in each channel of the training set, whichever
	// split this is; where there is no fixed training set (notmnist, New, ReadImages), those of the
	// images at hand. The deviation of a constant channel is 1. With the figures of its training
	// set, even for another set, a network is fed (pixel/255 - Mean[c])/Deviation[c].
	Mean, Std []float64

	// Hashes maps the name of each file read to the SHA-256 of its bytes, in
	// hexadecimal, for a run's manifest.
	Hashes map[string]string

	Place string // where the files were found

	// Skipped has the pictures that were left out, each as "path: reason": that could not be read,
	// or have no class. A part drawn from a set has those of the whole set.
	Skipped []string
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

// Counts returns the number of images of each class. The data set must be
// valid.
func (d *Dataset) Counts() []int {
	counts := make([]int, d.Classes)
	for _, label := range d.Labels {
		counts[label]++
	}
	return counts
}

// Slice returns the images from ... to-1 as a data set that shares its memory
// with d. It is an error unless 0 <= from < to <= Len.
func (d *Dataset) Slice(from, to int) (*Dataset, error) {
	if from < 0 || from >= to || to > d.Len() {
		return nil, errors.Errorf("datasets: %s: slice [%d, %d), want one or more of [0, %d)", d.Name, from, to, d.Len())
	}
	slice := *d
	size := d.ImageSize()
	slice.Images = d.Images[from*size : to*size : to*size]
	if d.Labels != nil {
		slice.Labels = d.Labels[from:to:to]
	}
	if d.Files != nil {
		slice.Files = d.Files[from:to:to]
	}
	return &slice, nil
}

// Split returns the first n images and the others, as Slice does, for example to hold out the end
// of a training set for validation. It is an error unless both have at least one image.
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

// numberNames returns "0", "1", ... as names of that many classes.
func numberNames(classes int) []string {
	names := make([]string, classes)
	for i := range names {
		names[i] = strconv.Itoa(i)
	}
	return names
}

// Validate returns an error unless the data set has at least one image, the
// counts of images, labels and class names agree, every label is below
// Classes, and Mean and Deviation can be used to normalise.
func (d *Dataset) Validate() error {
	if d.Channels < 1 || d.Height < 1 || d.Width < 1 {
		return errors.Errorf("datasets: %s: images of %dx%dx%d values, want at least 1x1x1",
			d.Name, d.Channels, d.Height, d.Width)
	}
	if (d.Classes < 1 && d.Labels != nil) || d.Classes > maxClasses {
		return errors.Errorf("datasets: %s: %d classes, want 1 to %d", d.Name, d.Classes, maxClasses)
	}
	if len(d.ClassNames) != d.Classes {
		return errors.Errorf("datasets: %s: %d class names, want %d", d.Name, len(d.ClassNames), d.Classes)
	}
	if d.Len() == 0 {
		return errors.Errorf("datasets: %s: no images, want at least 1", d.Name)
	}
	if len(d.Images) != d.Len()*d.ImageSize() {
		return errors.Errorf("datasets: %s: %d bytes of images, want %d (%d images of %d bytes)",
			d.Name, len(d.Images), d.Len()*d.ImageSize(), d.Len(), d.ImageSize())
	}
	if d.Files != nil && len(d.Files) != d.Len() {
		return errors.Errorf("datasets: %s: %d names of files, want one for each of %d images", d.Name, len(d.Files), d.Len())
	}
	for i, label := range d.Labels {
		if label < 0 || int(label) >= d.Classes {
			return errors.Errorf("datasets: %s: label %d is %d, want 0 or more and below %d", d.Name, i, label, d.Classes)
		}
	}
	if len(d.Mean) != d.Channels || len(d.Std) != d.Channels {
		return errors.Errorf("datasets: %s: %d means and %d deviations, want one for each of %d channels",
			d.Name, len(d.Mean), len(d.Std), d.Channels)
	}
	for c := range d.Channels {
		if mean := d.Mean[c]; math.IsNaN(mean) || math.IsInf(mean, 0) {
			return errors.Errorf("datasets: %s: mean %v in channel %d, want a finite number", d.Name, mean, c)
		}
		if std := d.Std[c]; !(std > 0) || math.IsInf(std, 0) {
			return errors.Errorf("datasets: %s: deviation %v in channel %d, want a finite number above 0", d.Name, std, c)
		}
	}
	return nil
}

// moments returns the mean and the (population) standard deviation of pixel/255 in each channel of
// images [N C H W] with planes of that many pixels. Both are computed from exact integer sums, so
// they are the same on every machine. A constant channel has the deviation 1.
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
