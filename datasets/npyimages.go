package datasets

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"
)

func isNPY(path string) bool { return !isDir(path) && strings.EqualFold(filepath.Ext(path), ".npy") }

// readNPYFile reads the images of a file as written by numpy.save: one image [H W], [H W C] or [C H
// W], or several, see imagesOf. Three dimensions are one image if the last is 3 or 4, or if the
// first or the last is the options' number of channels and 3 or more; the sides of the image are
// then larger than the number of channels, and than 4.
func readNPYFile(path string, options Options) (arraySet, error) {
	file, err := openFile(path)
	if err != nil {
		return arraySet{}, errors.Wrap(err, "datasets")
	}
	defer file.Close()
	return readNPYImages(path, file, options)
}

// readNPYImages reads the images of a .npy file from a reader.
func readNPYImages(path string, from io.Reader, options Options) (arraySet, error) {
	hash := sha256.New()
	array, err := readNPY(path, io.TeeReader(from, hash), options.limit(npyMaxSize), options.imageUse())
	if err != nil {
		return arraySet{}, err
	}
	single := ""
	shape := array.shape
	asked := func(n int) bool { return n >= 3 && n == options.Channels }
	switch {
	case len(shape) == 2:
		array.shape = []int{1, shape[0], shape[1]}
	case len(shape) == 3 && (shape[2] == 3 || shape[2] == 4 || asked(shape[2])) && min(shape[0], shape[1]) > max(shape[2], 4):
		single = "[H W C]"
	case len(shape) == 3 && asked(shape[0]) && min(shape[1], shape[2]) > max(shape[0], 4):
		single = "[C H W]"
	}
	if single != "" {
		options.remark("%s: dimensions %v are read as one image %s", filepath.Base(path), shape, single)
		options.Remark, options.remarks = nil, nil // about the same dimensions with a 1
		array.shape = append([]int{1}, shape...)
	}
	part, err := imagesOf(path, array, 0, options)
	if err != nil {
		return arraySet{}, err
	}
	return arraySet{parts: [3]*arrayPart{Test: part}, hashes: map[string]string{filepath.Base(path): hex.EncodeToString(hash.Sum(nil))}}, nil
}

// imagesOf makes a split of an array [N H W], [N H W C] or [N C H W], see channelsLast. count is
// the number of labels, or 0 if it is unknown.
func imagesOf(name string, images npyArray, count int, options Options) (*arrayPart, error) {
	shape := images.shape
	switch {
	case len(shape) == 2 && isSquare(shape[1]):
		_, side, _ := squareOf(shape[1])
		return nil, errors.Errorf("datasets: %s: must be [N H W] or [N H W C], got dimensions %v: save images.reshape(-1, %[3]d, %[3]d)", name, shape, side)
	case len(shape) == 4 && count > 0 && shape[3] == count && shape[0] != count:
		return nil, errors.Errorf("datasets: %s: must be [N H W C] or [N C H W], got dimensions %v: save numpy.moveaxis(images, -1, 0)", name, shape)
	case len(shape) != 3 && len(shape) != 4:
		return nil, errors.Errorf("datasets: %s: must be [N H W], [N H W C] or [N C H W], got dimensions %v", name, shape)
	}
	part := &arrayPart{name: name, images: images.bytes, channels: 1, height: shape[1], width: shape[2]}
	if len(shape) == 3 {
		return part, nil
	}
	last, err := channelsLast(filepath.Base(name), shape, options)
	switch {
	case err != nil:
		return nil, errors.WithMessagef(err, "datasets: %s", name)
	case last:
		part.channels = shape[3]
		part.images = ChannelsFirst(images.bytes, part.channels, part.height, part.width)
	default:
		part.channels, part.height, part.width = shape[1], shape[2], shape[3]
	}
	return part, nil
}

// channelsLast reports whether the channels of images are the last of four dimensions or the
// second. They are the dimension that is at most 4, or else the one that is smaller than the height
// and the width. If the other dimension is the options' number of channels and this one is not,
// the options decide.
func channelsLast(name string, shape []int, options Options) (last bool, err error) {
	const few = 4 // what grey, colour and opacity have
	switch {
	case shape[3] <= few:
		last = true
	case shape[1] <= few:
	case shape[3] < min(shape[1], shape[2]):
		last = true
	case shape[1] < min(shape[2], shape[3]):
	case options.Channels == shape[1] || options.Channels == shape[3]:
	default:
		return false, errors.Errorf("must be [N H W C] or [N C H W], got dimensions %v, of which neither can be the channels, "+
			"being smaller than height and width: state the number of channels as channels", shape)
	}
	if options.Channels > 0 && shape[1] != shape[3] && options.Channels == shape[1] != (options.Channels == shape[3]) {
		last = options.Channels == shape[3]
	}
	channels, layout := shape[1], "[N C H W]"
	if last {
		channels, layout = shape[3], "[N H W C]"
	}
	if channels > MaxChannels {
		return false, errors.Errorf("images must have at most %d channels, got %d of dimensions %v, read as %s", MaxChannels, channels, shape, layout)
	}
	if channels > few || max(shape[1], shape[3]) <= few && shape[1] != shape[3] {
		options.remark("%s: dimensions %v are read as %s, %d channels", name, shape, layout, channels)
	}
	return last, nil
}

// labelsOf returns the labels of an array [N] or [N 1].
func labelsOf(name string, labels npyArray, count int) ([]int32, error) {
	shape := labels.shape
	if len(shape) > 2 || shape[0] != count || len(shape) == 2 && shape[1] != 1 {
		advice := ""
		if len(shape) == 2 && shape[0] == count {
			advice = ": save labels.argmax(1) if they are one-hot"
		}
		return nil, errors.Errorf("datasets: %s: dimensions must be [%[3]d] or [%[3]d 1], one label for each image, got %[2]v%[4]s", name, shape, count, advice)
	}
	read := make([]int32, count)
	for i := range read {
		value := int64(0)
		if labels.bytes != nil {
			value = int64(labels.bytes[i])
		} else {
			value = labels.wide[i]
		}
		if value < 0 || value >= maxClasses {
			return nil, errors.Errorf("datasets: %s: label %d must be 0 or more and below %[4]d, got %[3]d: save labels.astype(str) if such numbers are classes, "+
				"images[labels >= 0] and labels[labels >= 0] if they stand for images without a label",
				name, i, value, maxClasses)
		}
		read[i] = int32(value)
	}
	return read, nil
}
