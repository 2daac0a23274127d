package decode

import (
	"encoding/binary"
	"image"

	"github.com/pkg/errors"
	"golang.org/x/image/bmp"
)

func decodeBMP(source *stoppable) (image.Image, error) { return bmp.Decode(source) }

// inspectBMP returns an error if the file has too few bytes for its pixels, which are not
// compressed, before memory for them is allocated, and sets the memory.
func inspectBMP(content []byte, info *Info) error {
	const bitsAt, offsetAt = 28, 10
	if len(content) < bitsAt+2 {
		return nil // the decoder returns an error
	}
	bits := int(binary.LittleEndian.Uint16(content[bitsAt:]))
	row := (info.Width*bits + 31) / 32 * 4
	want, got := row*info.Height, len(content)-int(binary.LittleEndian.Uint32(content[offsetAt:]))
	if got < want {
		return errors.Errorf("must have %d bytes of pixels for %dx%d pixels of %d bits, got %d", want, info.Height, info.Width, bits, max(got, 0))
	}
	info.Memory = info.Height*info.Width*4 + row
	if bits <= 8 {
		info.Memory = info.Height*info.Width + row
	}
	return nil
}
