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
)

// tiffTilePixels is the number of pixels that a tile may have beyond twice the image's: a small
// image often has one tile that is larger than itself.
const tiffTilePixels = 1 << 20

// decodeTIFF decodes a TIFF image. golang.org/x/image/tiff inflates a block to the size in the
// directory, even for a small image, so that a few kilobytes could become gigabytes. decodeTIFF
// therefore limits strips to the image's height, and returns an error for tiles much larger than
// the image.
func decodeTIFF(r io.Reader) (image.Image, error) {
	content, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	if content, err = boundTIFF(content); err != nil {
		return nil, err
	}
	return tiff.Decode(bytes.NewReader(content))
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
