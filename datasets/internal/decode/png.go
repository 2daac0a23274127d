package decode

import (
	"encoding/binary"
	"image"
	"image/png"

	"github.com/pkg/errors"
)

// pngMagic begins a PNG file (PNG 3, W3C 2025).
const pngMagic = "\x89PNG\r\n\x1a\n"

// deflateRatio is the largest ratio of the sizes of decompressed and compressed data in deflate:
// 258 bytes take at least two bits.
const deflateRatio = 1032

// pngChunks calls visit with each chunk of a PNG image: its kind, and its bytes from its length to
// its checksum, which the end of the content may cut. It stops after the chunk IEND.
func pngChunks(content []byte, visit func(kind string, chunk []byte)) {
	for at := len(pngMagic); at+8 <= len(content); {
		kind := string(content[at+4 : at+8])
		end := at + 12 + int(binary.BigEndian.Uint32(content[at:]))
		visit(kind, content[at:min(end, len(content))])
		if kind == "IEND" || end > len(content) {
			return
		}
		at = end
	}
}

// neededPNG returns the content of a PNG image with only the chunks that determine its pixels: the
// critical ones, up to the pixels, and tRNS. image/png verifies the checksums of all chunks and
// requires the last one, IEND; a browser shows an image without them. The content is returned as it
// is if it has no other chunks.
func neededPNG(content []byte) []byte {
	const end = "\x00\x00\x00\x00IEND\xae\x42\x60\x82"
	others, ended := false, false
	each := func(needed func(chunk []byte)) {
		pixels := false
		pngChunks(content, func(kind string, chunk []byte) {
			pixels = pixels || kind == "IDAT"
			switch critical := kind[0]&0x20 == 0; {
			case kind == "IEND":
				ended = string(chunk) == end
			case kind == "IDAT" || critical && !pixels || kind == "tRNS":
				needed(chunk)
			default:
				others = true
			}
		})
	}
	each(func([]byte) {})
	if ended && !others {
		return content
	}
	all := make([]byte, 0, len(content)+len(end))
	all = append(all, pngMagic...)
	each(func(chunk []byte) { all = append(all, chunk...) })
	return append(all, end...)
}

func decodePNG(source *stoppable) (image.Image, error) {
	return png.Decode(source.with(neededPNG(source.content)))
}

// inspectPNG returns an error if the image has too few bytes for its pixels, before memory for them
// is allocated, and sets the memory.
func inspectPNG(content []byte, info *Info) error {
	const header = len(pngMagic) + 8
	if len(content) < header+13 {
		return nil // the decoder returns an error
	}
	depth, kind, interlaced := int(content[header+8]), content[header+9], content[header+12] != 0
	samples := map[byte]int{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
	data, transparent := 0, false
	pngChunks(content, func(kind string, chunk []byte) {
		switch kind {
		case "IDAT":
			data += len(chunk)
		case "tRNS":
			transparent = true
		case "acTL": // of an animation: a length, the kind, and the number of frames
			info.frames = len(chunk) >= 12 && binary.BigEndian.Uint32(chunk[8:]) > 1
		}
	})
	pixels := info.Height * info.Width
	if pixels/8*samples*depth/deflateRatio > data {
		return errors.Errorf("must have enough data for %dx%d pixels, got %d bytes", info.Height, info.Width, data)
	}
	perPixel := (depth + 7) / 8 // of the image: grey, a palette, or four samples
	if samples > 1 || transparent {
		perPixel *= 4
	}
	if interlaced {
		perPixel *= 2
	}
	info.Memory = perPixel*pixels + 2*(1+info.Width*8) + len(content)
	return nil
}
