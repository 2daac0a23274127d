package datasets

import (
	"encoding/binary"
	"image"
	"image/color"
	"io"
	"math"

	"github.com/pkg/errors"
	"golang.org/x/image/webp"
)

// webpConfig is DecodeConfig for WebP. golang.org/x/image/webp's DecodeConfig returns the canvas
// size at the start of an extended file, but its decoder allocates the size of the frame that
// follows: a file of a few bytes could announce 1x1 and take 400 MB. webpConfig returns the frame's
// size, and requires that the canvas has the same.
func webpConfig(r io.Reader) (image.Config, error) {
	config := image.Config{ColorModel: color.NYCbCrAModel}
	var start [12]byte
	if _, err := io.ReadFull(r, start[:]); err != nil {
		return config, err
	}
	canvasWidth, canvasHeight := 0, 0
	for {
		var head [8]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return config, err
		}
		kind, size := string(head[:4]), int64(binary.LittleEndian.Uint32(head[4:]))
		size += size % 2
		want := map[string]int64{"VP8X": 10, "VP8 ": 10, "VP8L": 5}[kind]
		if size < want {
			return config, errors.Errorf("chunk %q must have at least %[3]d bytes, got %[2]d", kind, size, want)
		}
		b := make([]byte, want)
		if _, err := io.ReadFull(r, b); err != nil {
			return config, err
		}
		switch kind {
		case "VP8X":
			canvasWidth = 1 + (int(b[4]) | int(b[5])<<8 | int(b[6])<<16)
			canvasHeight = 1 + (int(b[7]) | int(b[8])<<8 | int(b[9])<<16)
		case "VP8 ":
			config.Width = int(binary.LittleEndian.Uint16(b[6:]) & 0x3fff)
			config.Height = int(binary.LittleEndian.Uint16(b[8:]) & 0x3fff)
		case "VP8L":
			bits := binary.LittleEndian.Uint32(b[1:])
			config.Width, config.Height = int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1
		}
		if kind == "VP8 " || kind == "VP8L" {
			if canvasWidth != 0 && (config.Width != canvasWidth || config.Height != canvasHeight) {
				return config, errors.Errorf("canvas and frame must have the same size, got %dx%d and %dx%d pixels",
					canvasHeight, canvasWidth, config.Height, config.Width)
			}
			return config, nil
		}
		if _, err := io.CopyN(io.Discard, r, size-want); err != nil {
			return config, err
		}
	}
}

// inspectWebP estimates the memory for a WebP image. A lossless image has up to 2600 groups of five
// Huffman trees, one group per 4x4 pixels at most, however small its file: golang.org/x/image/vp8l
// allocates a table of 512 bytes for each tree, and 16 bytes for each of a group's up to 3136
// symbols, six of which take at least 3 bits of the file.
func inspectWebP(content []byte, info *imageInfo) error {
	const maxGroups, tables, nodes = 2600, 5 * 512, 3136 * 16
	groups := min(maxGroups, (info.height+3)/4*((info.width+3)/4))
	trees := groups*tables + min(groups*nodes, 8*len(content)/3*6*16)
	info.memory = info.height*info.width*info.format.perPixel + trees
	return nil
}

// decodeWebP is Decode for WebP. A lossy image has luma of 16 ... 235 and chroma of 16 ... 240, as
// in ITU-R BT.601, but image.YCbCr has 0 ... 255 for both, as JPEG. golang.org/x/image/webp does
// not convert them (golang.org/issue/40173), so decodeWebP does.
func decodeWebP(r io.Reader) (image.Image, error) {
	img, err := webp.Decode(r)
	switch lossy := img.(type) {
	case *image.YCbCr:
		fullRange(lossy)
	case *image.NYCbCrA:
		fullRange(&lossy.YCbCr)
	}
	return img, err
}

// fullRange stretches the values of an image to 0 ... 255, in place.
func fullRange(img *image.YCbCr) {
	var luma, chroma [256]byte
	for i := range 256 {
		luma[i] = stretched(i, 16, 0, 219)
		chroma[i] = stretched(i, 128, 128, 224)
	}
	for _, plane := range []struct {
		values []byte
		table  *[256]byte
	}{{img.Y, &luma}, {img.Cb, &chroma}, {img.Cr, &chroma}} {
		for i, value := range plane.values {
			plane.values[i] = plane.table[value]
		}
	}
}

// stretched scales a range of the given width to 255, maps from to to, and clamps the value.
func stretched(value, from, to, width int) byte {
	return byte(max(0, min(math.Round(float64(to)+float64(value-from)*255/float64(width)), 255)))
}
