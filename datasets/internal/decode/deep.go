package decode

import (
	"encoding/binary"
	"image"
)

// valueRange is the range of the values of images with 16 bits per channel. Images whose values are
// all below 256 become black, although their files differ: cameras write 12 or 14 bits into 16.
type valueRange struct {
	Images          int // number of such images
	Lowest, Highest uint16
	Beyond          bool // some have values of more bits than are significant
}

// whiteIsZero is a grey image that was stored as 65535 minus its values, as image.Gray16 has them,
// or as the largest value of its significant bits minus its values.
type whiteIsZero struct{ *image.Gray16 }

// ofBits reports whether the values were subtracted from the largest value of the significant bits.
// If all stored values are close to 65535, they were subtracted from 65535, and the values of
// image.Gray16 have few bits already. For 0 bits, few bits are those that Remarks reports.
func (w *whiteIsZero) ofBits(bits int) bool {
	most := uint16(fewValues - 1)
	if bits > 0 {
		most = uint16(1<<bits - 1)
	}
	for at := 0; at < len(w.Pix); at += 2 {
		if binary.BigEndian.Uint16(w.Pix[at:]) > most {
			return true
		}
	}
	return false
}

// add adds the range of other images.
func (r *valueRange) add(other valueRange) {
	switch {
	case r.Images == 0:
		*r = other
	case other.Images > 0:
		*r = valueRange{r.Images + other.Images, min(r.Lowest, other.Lowest), max(r.Highest, other.Highest), r.Beyond || other.Beyond}
	}
}

// include adds a value to the range of an image.
func (r *valueRange) include(value uint16) {
	r.Lowest, r.Highest = min(r.Lowest, value), max(r.Highest, value)
}

// stretch maps values of the given number of significant bits to 16 bits, but none above limit, and
// notes larger ones.
func (r *valueRange) stretch(values []uint16, bits int, limit uint16) {
	highest := uint32(1)<<bits - 1
	for i, v := range values {
		r.Beyond = r.Beyond || uint32(v) > highest
		values[i] = uint16(min((uint32(v)*65535+highest/2)/highest, uint32(limit)))
	}
}

// deepRows returns the rows of an image with 16 bits per channel: one plane of grey values [W], or
// channels planes of pixels [W 4], drawn over white, or with premultiplied opacity if four channels
// are requested. Values, except the opacity, have the given number of significant bits; 0 is 16. It
// returns nil for other images, and adds the range of the values to deep, as they are stored.
func deepRows(img image.Image, channels, bits int, deep *valueRange) (int, func(y int) []uint16) {
	var pixels []byte // big-endian
	var stride, perPixel int
	premultiplied, inverted := false, false
	switch img := img.(type) {
	case *image.Gray16:
		pixels, stride, perPixel = img.Pix, img.Stride, 1
	case *whiteIsZero:
		pixels, stride, perPixel, inverted = img.Pix, img.Stride, 1, img.ofBits(bits)
	case *image.RGBA64:
		pixels, stride, perPixel, premultiplied = img.Pix, img.Stride, 4, true
	case *image.NRGBA64:
		pixels, stride, perPixel = img.Pix, img.Stride, 4
	default:
		return 0, nil
	}
	*deep = valueRange{1, 65535, 0, false}
	values := make([]uint16, perPixel*img.Bounds().Dx())
	rows := func(y int) []uint16 {
		row := pixels[y*stride:]
		for i := range values {
			values[i] = binary.BigEndian.Uint16(row[2*i:])
			if inverted {
				values[i] = ^values[i]
			}
		}
		for at := 0; bits > 0 && bits < 16 && at < len(values); at += perPixel {
			if perPixel == 1 {
				deep.stretch(values[at:at+1], bits, 65535)
				continue
			}
			limit := uint16(65535)
			if premultiplied {
				limit = values[at+3]
			}
			deep.stretch(values[at:at+3], bits, limit)
		}
		if perPixel == 4 {
			compose(values, premultiplied, channels == 4, deep)
			return values
		}
		for i, value := range values {
			deep.include(value)
			if inverted {
				values[i] = ^value
			}
		}
		return values
	}
	switch {
	case perPixel == 1:
		return 1, rows
	case channels > 1:
		return channels, rows
	}
	grey := make([]uint16, img.Bounds().Dx())
	return 1, func(y int) []uint16 {
		for x, pixel := 0, rows(y); x < len(grey); x, pixel = x+1, pixel[4:] {
			sum := 19595*uint32(pixel[0]) + 38470*uint32(pixel[1]) + 7471*uint32(pixel[2]) // see luminance
			grey[x] = uint16((sum + 1<<15) >> 16)
		}
		return grey
	}
}

// compose multiplies a row of pixels [W 4] by their opacity, unless that was done, and draws it
// over white, unless the opacity is kept. It adds the result to deep.
func compose(row []uint16, premultiplied, keepOpacity bool, deep *valueRange) {
	for at := 0; at < len(row); at += 4 {
		pixel := row[at : at+4]
		opacity := uint32(pixel[3])
		for c := range 3 {
			if !premultiplied {
				pixel[c] = uint16(uint32(pixel[c]) * opacity / 65535)
			}
			if !keepOpacity {
				pixel[c] = uint16(min(uint32(pixel[c])+65535-opacity, 65535))
			}
			deep.include(pixel[c])
		}
	}
}
