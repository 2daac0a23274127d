package datasets

import (
	"bytes"

	"github.com/pkg/errors"
)

// Measure returns the height and width of an encoded picture from its header, upright, without
// decoding it: what Decode will need memory for. It is an error if the content is not a picture, or
// has more than MaxPixels.
func Measure(content []byte) (height, width int, err error) {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	info, err := d.probe(bytes.NewReader(content))
	return info.height, info.width, errors.WithMessage(err, "datasets: measure")
}
