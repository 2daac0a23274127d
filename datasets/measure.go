package datasets

import (
	"bytes"

	"github.com/pkg/errors"
)

// Measure returns the height and width of an encoded image after EXIF rotation. It reads only the
// header, so that a program can decide whether it has the memory for Decode. It returns an error if
// the content is not an image or has more than MaxPixels.
func Measure(content []byte) (height, width int, err error) {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	info, err := d.probe(bytes.NewReader(content))
	return info.height, info.width, errors.WithMessage(err, "datasets: measure")
}
