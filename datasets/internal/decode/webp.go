package decode

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"io"
	"math"
	"slices"

	"github.com/pkg/errors"
	"golang.org/x/image/webp"
)

// webpHeader is what the chunks of a WebP image up to its first frame show (RFC 9649).
type webpHeader struct {
	canvasWidth, canvasHeight int // 0 without VP8X
	animated                  bool
	x, y                      int   // of the first frame
	frameWidth, frameHeight   int   // of the animation's first frame, by ANMF
	width, height             int   // of its pixels
	frame                     int64 // offset of the frame's chunks, VP8, VP8L or ALPH
}

// readWebP reads the chunks up to the first frame. Those of an animation's frame are in a chunk
// ANMF.
func readWebP(source io.ReaderAt) (webpHeader, error) {
	h, w := webpHeader{}, window{source: source}
	for at := int64(12); ; {
		head := w.at(at, 8)
		if head == nil {
			return h, io.ErrUnexpectedEOF
		}
		kind, size := string(head[:4]), int64(binary.LittleEndian.Uint32(head[4:]))
		want := map[string]int{"VP8X": 10, "VP8 ": 10, "VP8L": 5, "ANMF": 16}[kind]
		if size < int64(want) {
			return h, errors.Errorf("chunk %q must have at least %[3]d bytes, got %[2]d", kind, size, want)
		}
		b := w.at(at+8, want)
		if b == nil {
			return h, io.ErrUnexpectedEOF
		}
		switch kind {
		case "VP8X":
			h.animated = b[0]&2 != 0
			h.canvasWidth, h.canvasHeight = 1+uint24(b[4:]), 1+uint24(b[7:])
		case "ANMF":
			h.x, h.y = 2*uint24(b), 2*uint24(b[3:])
			h.frameWidth, h.frameHeight = 1+uint24(b[6:]), 1+uint24(b[9:])
			at += 8 + int64(want)
			h.frame = at
			continue
		case "VP8 ":
			h.width, h.height = int(binary.LittleEndian.Uint16(b[6:])&0x3fff), int(binary.LittleEndian.Uint16(b[8:])&0x3fff)
			return h, h.check()
		case "VP8L":
			bits := binary.LittleEndian.Uint32(b[1:])
			h.width, h.height = int(bits&0x3fff)+1, int(bits>>14&0x3fff)+1
			return h, h.check()
		}
		at += 8 + size + size%2
	}
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// check returns an error if the sizes contradict each other. golang.org/x/image/webp's DecodeConfig
// returns the canvas size, but its decoder allocates the size of the frame that follows: a file of
// a few bytes could announce 1x1 and take 400 MB.
func (h webpHeader) check() error {
	switch {
	case h.frame > 0 && !h.animated || h.animated && h.frame == 0:
		return errors.New("must have frames if and only if it is animated")
	case h.animated && (h.frameWidth != h.width || h.frameHeight != h.height):
		return errors.Errorf("frame and pixels must have the same size, got %dx%d and %dx%d pixels", h.frameHeight, h.frameWidth, h.height, h.width)
	case h.animated && (h.x+h.width > h.canvasWidth || h.y+h.height > h.canvasHeight):
		return errors.Errorf("the first frame must lie on the canvas of %dx%d pixels, got %dx%d at (%d, %d)",
			h.canvasHeight, h.canvasWidth, h.height, h.width, h.y, h.x)
	case !h.animated && h.canvasWidth != 0 && (h.width != h.canvasWidth || h.height != h.canvasHeight):
		return errors.Errorf("canvas and frame must have the same size, got %dx%d and %dx%d pixels",
			h.canvasHeight, h.canvasWidth, h.height, h.width)
	}
	return nil
}

// webpConfig is DecodeConfig for WebP.
func webpConfig(r io.Reader) (image.Config, error) {
	h, err := readWebP(r.(io.ReaderAt))
	config := image.Config{Width: h.width, Height: h.height, ColorModel: color.NYCbCrAModel}
	if h.animated {
		config.Width, config.Height = h.canvasWidth, h.canvasHeight
	}
	return config, err
}

// firstWebPFrame returns the first frame of an animation as a WebP image.
func firstWebPFrame(content []byte, h webpHeader) []byte {
	var opacity, pixels []byte
	for at := int(h.frame); at+8 <= len(content) && pixels == nil; {
		size := int(binary.LittleEndian.Uint32(content[at+4:]))
		end := at + 8 + size + size%2
		chunk := content[at:min(end, len(content))]
		switch string(chunk[:4]) {
		case "ALPH":
			opacity = chunk
		case "VP8 ", "VP8L":
			pixels = chunk
		}
		at = end
	}
	var extended []byte
	if opacity != nil && string(pixels[:4]) == "VP8 " {
		const hasOpacity = 16
		width, height := h.width-1, h.height-1
		extended = []byte{'V', 'P', '8', 'X', 10, 0, 0, 0, hasOpacity, 0, 0, 0,
			byte(width), byte(width >> 8), byte(width >> 16), byte(height), byte(height >> 8), byte(height >> 16)}
		extended = append(extended, opacity...)
	}
	start := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(4+len(extended)+len(pixels)))
	return slices.Concat(start, []byte("WEBP"), extended, pixels)
}

// inspectWebP estimates the memory for a WebP image. A lossless image has up to 2600 groups of five
// Huffman trees, one group per 4x4 pixels at most, however small its file: golang.org/x/image/vp8l
// allocates a table of 512 bytes for each tree, and 16 bytes for each of a group's up to 3136
// symbols. Six symbols take at least 3 bits of the file.
func inspectWebP(content []byte, info *Info) error {
	const maxGroups, tables, nodes = 2600, 5 * 512, 3136 * 16
	groups := min(maxGroups, (info.Height+3)/4*((info.Width+3)/4))
	trees := groups*tables + min(groups*nodes, 8*len(content)/3*6*16)
	info.Memory = 12*info.Height*info.Width + trees + len(content)
	if h, err := readWebP(bytes.NewReader(content)); err == nil && h.animated {
		const header = 16 // of a frame, before its chunks
		size := int64(binary.LittleEndian.Uint32(content[h.frame-header-4:]))
		next := h.frame - header + size + size%2
		info.frames = next+4 <= int64(len(content)) && string(content[next:next+4]) == "ANMF"
	}
	return nil
}

// decodeWebP decodes a WebP image, or the first frame of an animation. A lossy image has luma of 16
// ... 235 and chroma of 16 ... 240, as in ITU-R BT.601, but image.YCbCr has 0 ... 255 for both, as
// JPEG. golang.org/x/image/webp does not convert them (golang.org/issue/40173), so decodeWebP does.
func decodeWebP(source *stoppable) (image.Image, error) {
	h, err := readWebP(source)
	if err != nil {
		return nil, err
	}
	if h.animated {
		source = source.with(firstWebPFrame(source.content, h))
	}
	img, err := webp.Decode(source)
	place := image.Pt(h.x, h.y) // even: chroma of half the size stays in place
	switch img := img.(type) {
	case *image.YCbCr:
		fullRange(img)
		img.Rect = img.Rect.Add(place)
	case *image.NYCbCrA:
		fullRange(&img.YCbCr)
		img.Rect = img.Rect.Add(place)
	case *image.NRGBA:
		img.Rect = img.Rect.Add(place)
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
