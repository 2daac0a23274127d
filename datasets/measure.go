package datasets

import (
	"github.com/pkg/errors"
)

// Measurement describes an encoded image.
type Measurement struct {
	Height, Width int // after EXIF rotation
	Memory        int // upper bound of the bytes that Decode allocates
}

// Measure measures an encoded image without decoding it, so that a program can decide whether it
// has the memory for Decode. It returns an error if the content is not an image, or is one that
// Decode does not accept by its size or number of scans, or that is too short for its size. The
// size is returned with the error if it is known.
func Measure(content []byte) (Measurement, error) {
	d := decoders.Get().(*decoder)
	defer decoders.Put(d)
	info, err := d.inspect(content)
	return Measurement{info.height, info.width, info.memory}, errors.WithMessage(err, "datasets: measure")
}
