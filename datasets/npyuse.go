package datasets

import (
	"math"

	"github.com/pkg/errors"
)

// npyUse is the purpose for which an array is read, which determines the accepted types.
type npyUse struct {
	labels   bool
	floatMax float64 // Options.FloatMax, for images
	bits     int     // Options.Bits, for images
}

var npyLabels = npyUse{labels: true}

// imageUse returns the use of an array of images.
func (o Options) imageUse() npyUse { return npyUse{floatMax: o.FloatMax, bits: o.Bits} }

// npyTypes maps the supported types of labels, named as in the header without the byte order, to
// their sizes.
var npyTypes = map[string]int{"u1": 1, "b1": 1, "i1": 1, "u2": 2, "i2": 2, "u4": 4, "i4": 4, "u8": 8, "i8": 8}

// npyFloats maps the types of floats that images can have to their sizes.
var npyFloats = map[string]int{"f2": 2, "f4": 4, "f8": 8}

// pixelByte returns the byte for a pixel that is a number from 0 to most.
func pixelByte(value, most float64) (byte, error) {
	if value < 0 {
		return 0, errors.Errorf("must be from 0 to %g, got %g: save (images + 1) / 2 if values are from -1 to 1, "+
			"and images * std + mean if they were standardized", most, value)
	}
	if !(value <= most) {
		return 0, errors.Errorf("must be from 0 to %g, got %g", most, value)
	}
	return byte(math.Round(math.MaxUint8 * value / most)), nil
}

// npyNames are NumPy's names of types that are often saved.
var npyNames = map[string]string{
	"b1": "bool", "i1": "int8", "u2": "uint16", "i2": "int16", "u4": "uint32", "i4": "int32", "u8": "uint64", "i8": "int64",
	"f2": "float16", "f4": "float32", "f8": "float64", "O": "object",
}

// isText reports whether a type is NumPy's text, U, or bytes, S.
func isText(kind string) bool { return kind[0] == 'U' || kind[0] == 'S' }

// check returns an error, with the line of NumPy that converts the array, unless a type suits.
func (u npyUse) check(kind string) error {
	name := npyNames[kind]
	switch {
	case name != "":
	case isText(kind):
		name = "str"
	default:
		name = "NumPy's " + kind
	}
	if u.labels {
		switch {
		case npyTypes[kind] > 0 || isText(kind):
			return nil
		case kind[0] == 'f':
			return errors.Errorf("labels must be integers or text, got %s: save labels.astype(numpy.int64), or labels.argmax(1) if they are one-hot; "+
				"of labels with NaN, save images[ok] and labels[ok] with ok = ~numpy.isnan(labels)", name)
		}
		return errors.Errorf("labels must be integers or text, got %s: save labels.astype(str)", name)
	}
	advice := "save images.astype(numpy.uint8), with values from 0 to 255"
	switch {
	case kind == "u1" || kind == "b1" || npyFloats[kind] > 0 && u.floatMax > 0 || kind == "u2" && u.bits > 0:
		return nil
	case kind == "u2":
		advice = "state the number of their significant bits, 8 to 16, as bits: 12 if values go up to 4095, 16 if up to 65535"
	case kind == "i1":
		advice = "save images.view(numpy.uint8) if they were bytes from 0 to 255"
	case kind[0] == 'f':
		advice = "save (255 * images).round().astype(numpy.uint8) if values are from 0 to 1, images.round().astype(numpy.uint8) if from 0 to 255; " +
			"or state the largest value, 1 or 255, as float-max"
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
