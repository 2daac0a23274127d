package datasets

import (
	"bufio"
	"bytes"

	"github.com/pkg/errors"
)

// Measure returns the height and the width of an encoded picture as its header
// has them, upright, without decoding it: what Decode will need memory for. It
// is an error if the content is not a picture, or has more than MaxPixels.
func Measure(content []byte) (height, width int, err error) {
	info, err := probe(headerOf(content))
	return info.height, info.width, errors.WithMessage(err, "datasets: measure")
}

// headerOf reads a picture in memory, for probe: its buffer is no larger than
// the picture, since servers read many small ones.
func headerOf(content []byte) *bufio.Reader {
	return bufio.NewReaderSize(bytes.NewReader(content), min(max(len(content), formatReach), exifReach))
}
