package decode

import (
	"context"
	"image"
	"sync"

	"github.com/pkg/errors"
)

// decoders is the pool of the decoders of this file's functions.
var decoders = sync.Pool{New: func() any { return NewDecoder() }}

// DecodeBits decodes an image into bytes [channels height width], as a Decoder does. channels must
// be 1, 3 or 4. bits is the number of significant bits, see Decoder.SetBits.
func DecodeBits(ctx context.Context, content []byte, channels, height, width int, crop bool, bits int) ([]byte, error) {
	to := make([]byte, channels*height*width)
	d := decoders.Get().(*Decoder)
	d.SetCrop(crop)
	d.SetBits(bits)
	if err := d.Decode(ctx, to, content, channels, height, width); err != nil {
		return nil, err
	}
	decoders.Put(d) // not after a panic, whose memory may be in an unknown state
	return to, nil
}

// Inspect is Decoder.Inspect.
func Inspect(content []byte) (Info, error) {
	d := decoders.Get().(*Decoder)
	defer decoders.Put(d)
	return d.Inspect(content)
}

// InfoOf returns the size of an image that is decoded already, and whether it is stored in grey.
// It is an error if Scale does not accept the image.
func InfoOf(img image.Image) (Info, error) {
	if img == nil {
		return Info{}, errors.New("the image must not be nil")
	}
	size := img.Bounds().Size()
	if size.X < 1 || size.Y < 1 || size.Y > MaxPixels/size.X {
		return Info{}, errors.Errorf("the image must have 1 to %d pixels, got %dx%d", MaxPixels, size.Y, size.X)
	}
	return Info{Height: size.Y, Width: size.X, Grey: isGrey(img.ColorModel())}, nil
}

// Scale converts an image that InfoOf accepts into to, [channels height width], as a Decoder
// converts the image of a file.
func Scale(to []byte, img image.Image, channels, height, width int, crop bool, bits int) {
	d := decoders.Get().(*Decoder)
	d.SetCrop(crop)
	d.SetBits(bits)
	scale(&d.resizer, &d.last.deep, to, img, img.Bounds(), channels, height, width)
	decoders.Put(d)
}
