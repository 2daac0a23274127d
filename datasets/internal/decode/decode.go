package decode

import (
	"context"
	"sync"
)

// decoders is the pool of the decoders of DecodeBits and Inspect.
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
