package datasets

import (
	"context"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets/internal/decode"
)

// Limits of images.
const (
	// MaxPixels is the largest number of pixels of an image before scaling, 100 million. Colour
	// images with 16 bits per channel decode to 8 bytes per pixel, and may have MaxPixels/2. A
	// larger image is an error, detected in its header before any allocation. Decoding an
	// image of this size takes several hundred megabytes; Measure returns an upper bound.
	MaxPixels = decode.MaxPixels
	// MaxSide is the largest height and width of images in a Dataset.
	MaxSide = 512

	// MaxChannels is the largest number of channels of images that are arrays. Image files have at
	// most 4.
	MaxChannels = 256
)

// IsImage reports whether a file name has an extension of images.
func IsImage(name string) bool { return decode.IsImage(name) }

// extensions lists the extensions of images.
func extensions() string { return strings.Join(decode.Extensions(), " ") }

// Decode decodes an image into bytes [Channels Height Width], with these options and their Crop and
// Bits, as Open does with each file of an image directory; see the package documentation. It is
// safe for untrusted content: an image of more than MaxPixels, or of more than 100 scans, is an
// error before it is decoded. A file that is too short for its pixels and a TIFF image whose blocks
// are much larger than its pixels or its file are errors, too, as is a panic of a decoder.
//
// Decoding stops with the context's error soon after the context ends. Some decoders read all bytes
// before they compute pixels, and do not stop in the seconds that a large image takes after that.
//
// Decode returns an error if the content is not an image, if Channels is not 1, 3 or 4, or if
// Height or Width is not in 1 ... MaxSide.
func Decode(ctx context.Context, content []byte, o Options) ([]byte, error) {
	if err := (shape{o.Channels, o.Height, o.Width}).check(); err != nil {
		return nil, errors.WithMessage(err, "datasets: decode")
	}
	image, err := decode.DecodeBits(ctx, content, o.Channels, o.Height, o.Width, o.Crop, o.Bits)
	return image, errors.WithMessage(err, "datasets: decode")
}

// shape is the shape of an image.
type shape struct{ channels, height, width int }

func (s shape) size() int { return s.channels * s.height * s.width }

// check returns an error if images cannot be decoded into the shape.
func (s shape) check() error {
	if s.channels != 1 && s.channels != 3 && s.channels != 4 {
		return errors.Errorf("image files have 1 (grey), 3 (red, green, blue) or 4 channels (and opacity), got %d: "+
			"arrays may have others, in .npy and .npz files", s.channels)
	}
	if s.height < 1 || s.height > MaxSide || s.width < 1 || s.width > MaxSide {
		return errors.Errorf("images must be 1x1 to %[3]dx%[4]d, got %[1]dx%[2]d", s.height, s.width, MaxSide, MaxSide)
	}
	return nil
}
