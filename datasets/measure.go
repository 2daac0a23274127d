package datasets

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets/internal/decode"
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
	info, err := decode.Inspect(content)
	return Measurement{info.Height, info.Width, info.Memory}, errors.WithMessage(err, "datasets: measure")
}
