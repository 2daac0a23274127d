package datasets

import (
	"math"
	"path/filepath"

	"github.com/pkg/errors"
)

// npyUse is what an array is read as.
type npyUse int

const (
	npyImages npyUse = iota
	npyLabels
	npyUnitImages // or floats from 0 to 1, see Options.FloatMax
	npyByteImages // or floats from 0 to 255
)

// imageUse returns the use of an array of images.
func (o Options) imageUse() npyUse {
	switch o.FloatMax {
	case 1:
		return npyUnitImages
	case math.MaxUint8:
		return npyByteImages
	}
	return npyImages
}

// floatMax returns the largest value of floats, or 0 if they are refused.
func (u npyUse) floatMax() float64 {
	switch u {
	case npyUnitImages:
		return 1
	case npyByteImages:
		return math.MaxUint8
	}
	return 0
}

// npyFloats maps the types of floats that images can have to their sizes.
var npyFloats = map[string]int{"f4": 4, "f8": 8}

// floatByte returns the byte for a pixel that is a float from 0 to most.
func floatByte(value, most float64) (byte, error) {
	if !(value >= 0 && value <= most) {
		return 0, errors.Errorf("must be from 0 to %g, got %g", most, value)
	}
	return byte(math.Round(math.MaxUint8 * value / most)), nil
}

// npyNames are NumPy's names of types that are often saved.
var npyNames = map[string]string{
	"b1": "bool", "i1": "int8", "u2": "uint16", "i2": "int16", "u4": "uint32", "i4": "int32", "u8": "uint64", "i8": "int64",
	"f2": "float16", "f4": "float32", "f8": "float64", "O": "object",
}

// check returns an error, with the line of NumPy that converts the array, unless a type suits.
func (u npyUse) check(kind string) error {
	name := npyNames[kind]
	switch {
	case name != "":
	case kind[0] == 'U' || kind[0] == 'S':
		name = "str"
	default:
		name = "NumPy's " + kind
	}
	if u == npyLabels {
		switch {
		case npyTypes[kind] > 0:
			return nil
		case kind[0] == 'f':
			return errors.Errorf("labels must be integers, got %s: save labels.astype(numpy.int64)", name)
		}
		return errors.Errorf("labels must be integers, got %s: save numpy.unique(labels, return_inverse=True)[1]", name)
	}
	advice := "save images.astype(numpy.uint8), with values from 0 to 255"
	switch {
	case kind == "u1" || kind == "b1" || npyFloats[kind] > 0 && u.floatMax() > 0:
		return nil
	case kind == "u2":
		advice = "save (images // 257).astype(numpy.uint8) if values go up to 65535, images.astype(numpy.uint8) if up to 255"
	case kind == "i1":
		advice = "save images.view(numpy.uint8) if they were bytes from 0 to 255"
	case kind[0] == 'f':
		advice = "save (255 * images).round().astype(numpy.uint8) if values are from 0 to 1, images.round().astype(numpy.uint8) if from 0 to 255; " +
			"or state the largest value, 1 or 255 (FloatMax)"
	case kind == "O":
		advice = "save numpy.stack(list(images)).astype(numpy.uint8), of images of one size"
	}
	return errors.Errorf("images must be unsigned bytes (uint8) or bool, got %s: %s", name, advice)
}

// widen turns NumPy's booleans into 0 and 255.
func widen(values []byte) {
	for i, value := range values {
		if value != 0 {
			values[i] = 255
		}
	}
}

// imagesOf makes a split of an array [N H W], [N H W C] or [N C H W] with up to 4 channels. count
// is the number of labels, or 0 if it is unknown.
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
	const most = 4 // channels
	switch {
	case len(shape) == 3:
	case shape[3] <= most:
		if shape[1] <= most && shape[1] != shape[3] {
			options.remark("%s: dimensions %v are read as [N H W C], %d channels", filepath.Base(name), shape, shape[3])
		}
		part.channels = shape[3]
		part.images = planar(images.bytes, part.channels, part.height, part.width)
	case shape[1] <= most:
		part.channels, part.height, part.width = shape[1], shape[2], shape[3]
	default:
		return nil, errors.Errorf("datasets: %s: dimensions must be [N H W C] or [N C H W] with C up to %d, got %v", name, most, shape)
	}
	return part, nil
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
			return nil, errors.Errorf("datasets: %s: label %d must be 0 or more and below %[4]d, got %[3]d", name, i, value, maxClasses)
		}
		read[i] = int32(value)
	}
	return read, nil
}
