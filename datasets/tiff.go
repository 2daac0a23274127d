package datasets

import (
	"bytes"
	"encoding/binary"
	"image"
	"io"

	"github.com/pkg/errors"
	"golang.org/x/image/tiff"
)

// Tags of the directory of a TIFF picture (TIFF 6.0, 1992).
const (
	tiffWidth        = 256
	tiffHeight       = 257
	tiffRowsPerStrip = 278
	tiffTileWidth    = 322
	tiffTileHeight   = 323
)

// tiffTilePixels is the number of pixels a tile may have beyond twice the picture's: a small
// picture often has one tile larger than itself.
const tiffTilePixels = 1 << 20

// decodeTIFF decodes a TIFF picture. golang.org/x/image/tiff inflates a block to the number of
// bytes in the directory, however small the picture: a few kilobytes could become gigabytes. So
// strips are cut to the picture's height here, and tiles much larger than it are refused.
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

// boundTIFF returns the content with such strips. What it cannot read it leaves to the decoder,
// which cannot either.
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
	var rowsAt int64 // where the strips' height is
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
			return nil, errors.Errorf("offset %d: tag %d has %d values, want 1", at, tag, count)
		}
		switch kind {
		case 1:
			values[tag] = int64(entry[8])
		case 3:
			values[tag] = int64(order.Uint16(entry[8:]))
		case 4:
			values[tag] = int64(order.Uint32(entry[8:]))
		default:
			return nil, errors.Errorf("offset %d: tag %d is of type %d, want 1, 3 or 4", at, tag, kind)
		}
		if tag == tiffRowsPerStrip {
			rowsAt, rowsKind = at+8, kind
		}
	}
	width, height := values[tiffWidth], values[tiffHeight]
	tile := values[tiffTileWidth] * values[tiffTileHeight] // less than 2^64, and negative from 2^63 on
	if widest := max(values[tiffTileWidth], values[tiffTileHeight]); tile < 0 || tile > 2*width*height+tiffTilePixels || widest > MaxPixels {
		return nil, errors.Errorf("tiles of %dx%d in a picture of %dx%d pixels, want smaller ones",
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
