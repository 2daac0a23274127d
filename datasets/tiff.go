package datasets

import (
	"bytes"
	"encoding/binary"
	"image"
	"io"

	"github.com/pkg/errors"
	"golang.org/x/image/tiff"
)

// Tags of the directory of a TIFF image (TIFF 6.0, 1992).
const (
	tiffWidth        = 256
	tiffHeight       = 257
	tiffRowsPerStrip = 278
	tiffTileWidth    = 322
	tiffTileHeight   = 323
	tiffStripBytes   = 279
	tiffTileBytes    = 325
)

// tiffTilePixels is the number of pixels that a tile may have beyond twice the image's: a small
// image often has one tile that is larger than itself. All tiles together, each of which takes the
// time of a whole one, may have four times this beyond eight times the image's.
const tiffTilePixels = 1 << 20

// decodeTIFF decodes a TIFF image. golang.org/x/image/tiff inflates a block to the size in the
// directory, even for a small image, so that a few kilobytes could become gigabytes. decodeTIFF
// therefore limits strips to the image's height. inspectTIFF checks the tiles.
func decodeTIFF(r io.Reader) (image.Image, error) {
	source := r.(*stoppable)
	content, err := boundTIFF(source.content)
	if err != nil {
		return nil, err
	}
	return tiff.Decode(&stoppable{source.context, content, 0})
}

// inspectTIFF returns an error for a TIFF image with tiles much larger than the image, or whose
// strips or tiles have together more bytes than its file: a decoder would read the same bytes for
// each.
func inspectTIFF(content []byte, info *imageInfo) error {
	if _, err := boundTIFF(content); err != nil {
		return err
	}
	// The image in 8 bytes per pixel, and a strip or tile, inflated into a buffer that is doubled.
	tile := tiffSum(content, tiffTileWidth) * tiffSum(content, tiffTileHeight)
	pixels := info.height * info.width
	info.memory = 8*pixels + 3*8*max(pixels, int(tile))
	for _, tag := range []uint16{tiffStripBytes, tiffTileBytes} {
		if sum := tiffSum(content, tag); sum > int64(len(content)) {
			return errors.Errorf("strips or tiles must have at most the %[2]d bytes of the file, got %[1]d", sum, len(content))
		}
	}
	return nil
}

// tiffSum returns the sum of a tag's values, of those that the content has if there are fewer than
// counted, or 0 if the tag is absent or has values that the decoder does not accept.
func tiffSum(content []byte, tag uint16) int64 {
	at, order := tiffTag(content, tag)
	if at == 0 {
		return 0
	}
	size := map[uint16]int64{1: 1, 3: 2, 4: 4}[order.Uint16(content[at+2:])]
	count := int64(order.Uint32(content[at+4:]))
	from := at + 8
	if size*count > 4 {
		from = int64(order.Uint32(content[from:]))
	}
	if size == 0 {
		return 0
	}
	sum := int64(0)
	for i := range min(count, (int64(len(content))-from)/size) { // none if from is beyond the end
		switch value := content[from+i*size:]; size {
		case 1:
			sum += int64(value[0])
		case 2:
			sum += int64(order.Uint16(value))
		case 4:
			sum += int64(order.Uint32(value))
		}
	}
	return sum
}

// boundTIFF returns the content with strips limited to the image's height. It returns content that
// it cannot parse unchanged; the decoder will return an error.
func boundTIFF(content []byte) ([]byte, error) {
	if len(content) < 8 {
		return content, nil
	}
	var order binary.ByteOrder = binary.LittleEndian
	if content[0] == 'M' {
		order = binary.BigEndian
	}
	from := int64(order.Uint32(content[4:]))
	if from+2 > int64(len(content)) {
		return content, nil
	}
	values := map[int]int64{}
	var rowsAt int64 // offset of the strips' height
	var rowsKind uint16
	for i := range int64(order.Uint16(content[from:])) {
		at := from + 2 + 12*i
		if at+12 > int64(len(content)) {
			return content, nil
		}
		entry := content[at : at+12]
		tag, kind, count := int(order.Uint16(entry)), order.Uint16(entry[2:]), order.Uint32(entry[4:])
		switch tag {
		case tiffWidth, tiffHeight, tiffRowsPerStrip, tiffTileWidth, tiffTileHeight:
		default:
			continue
		}
		if count != 1 {
			return nil, errors.Errorf("offset %d: tag %d must have 1 value, got %d", at, tag, count)
		}
		switch kind {
		case 1:
			values[tag] = int64(entry[8])
		case 3:
			values[tag] = int64(order.Uint16(entry[8:]))
		case 4:
			values[tag] = int64(order.Uint32(entry[8:]))
		default:
			return nil, errors.Errorf("offset %d: tag %d must be of type 1, 3 or 4, got %d", at, tag, kind)
		}
		if tag == tiffRowsPerStrip {
			rowsAt, rowsKind = at+8, kind
		}
	}
	width, height := values[tiffWidth], values[tiffHeight]
	tile := values[tiffTileWidth] * values[tiffTileHeight] // less than 2^64, and negative from 2^63 on
	if widest := max(values[tiffTileWidth], values[tiffTileHeight]); tile < 0 || tile > 2*width*height+tiffTilePixels || widest > MaxPixels {
		return nil, errors.Errorf("tiles must not be much larger than the image, got %dx%d in an image of %dx%d pixels",
			values[tiffTileHeight], values[tiffTileWidth], height, width)
	}
	if tile > 0 {
		across := (width + values[tiffTileWidth] - 1) / values[tiffTileWidth]
		down := (height + values[tiffTileHeight] - 1) / values[tiffTileHeight]
		if padded := across * down * tile; padded > 8*width*height+4*tiffTilePixels {
			return nil, errors.Errorf("tiles must not have many more pixels than the image, got %d in an image of %dx%d pixels", padded, height, width)
		}
	}
	if values[tiffRowsPerStrip] <= height {
		return content, nil
	}
	content = bytes.Clone(content)
	switch value := content[rowsAt:]; rowsKind {
	case 1:
		value[0] = byte(height)
	case 3:
		order.PutUint16(value, uint16(height))
	case 4:
		order.PutUint32(value, uint32(height))
	}
	return content, nil
}
