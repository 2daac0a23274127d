package decode

import (
	"bytes"
	"image"
	"image/color"
	"io"

	"github.com/pkg/errors"
	"golang.org/x/image/tiff"
)

// tiffTilePixels is the number of pixels that a tile may have beyond twice the image's: a small
// image often has one tile that is larger than itself. All tiles together, each taking the time of
// a whole one, may have four times this beyond eight times the image's.
const tiffTilePixels = 1 << 20

// maxTIFFBlocks is the largest number of strips or tiles. Each takes the time of a new
// decompressor, however few pixels it has.
const maxTIFFBlocks = 1 << 16

// tiffConfig is DecodeConfig for TIFF.
func tiffConfig(r io.Reader) (image.Config, error) {
	layout, err := readTIFFLayout(r.(io.ReaderAt))
	if err != nil {
		return image.Config{}, err
	}
	if !layout.ours() {
		return tiff.DecodeConfig(r)
	}
	config := image.Config{Width: layout.width, Height: layout.height, ColorModel: color.NRGBAModel}
	switch layout.photometric {
	case tiffWhiteIsZero, tiffBlackIsZero:
		config.ColorModel = color.GrayModel
	case tiffPalette:
		config.ColorModel, err = layout.palette()
	}
	return config, err
}

// decodeTIFF decodes the first image of a TIFF file.
func decodeTIFF(source *stoppable) (image.Image, error) {
	layout, err := readTIFFLayout(source)
	if err != nil {
		return nil, err
	}
	var img image.Image
	if layout.ours() {
		img, err = layout.unpack()
	} else {
		img, err = tiff.Decode(source)
	}
	switch img := img.(type) {
	case *image.RGBA:
		if layout.opacity == 1 {
			limitToOpacity(img.Pix)
		}
	case *image.Gray16:
		if layout.photometric == tiffWhiteIsZero {
			return &whiteIsZero{img}, err
		}
	}
	return img, err
}

// limitToOpacity limits colours that should have been multiplied by their opacity, since drawing
// them over white would overflow.
func limitToOpacity(pixels []byte) {
	for at := 0; at+4 <= len(pixels); at += 4 {
		for c := range 3 {
			pixels[at+c] = min(pixels[at+c], pixels[at+3])
		}
	}
}

// inspectTIFF returns an error for a TIFF image whose tiles are much larger than the image, since
// a decoder inflates a tile to its size in the directory. It also returns an error if all strips
// or tiles together have more bytes than the file, since a decoder would read the same bytes
// several times, or too few for the pixels. It sets the memory.
func inspectTIFF(content []byte, info *Info) error {
	l, err := readTIFFLayout(bytes.NewReader(content))
	if err != nil {
		return err
	}
	info.pages = l.hasPages()
	pixels := int64(l.height) * int64(l.width)
	if err := l.checkTiles(pixels); err != nil {
		return err
	}
	if n := l.blocks(); n > maxTIFFBlocks {
		return errors.Errorf("must have at most %[2]d strips or tiles, got %[1]d", n, maxTIFFBlocks)
	}
	bytesTag := uint16(tiffStripBytes)
	if l.tiled {
		bytesTag = tiffTileBytes
	}
	sum := l.sum(bytesTag)
	if sum > int64(len(content)) {
		return errors.Errorf("strips or tiles must have at most the %[2]d bytes of the file, got %[1]d", sum, len(content))
	}
	ratio := int64(lzwRatio) // the largest; CCITT has one bit per row
	switch l.compressed {
	case 0, 1:
		ratio = 1
	case 3, 4:
		ratio = pixels
	}
	if pixels*int64(l.samples*l.bits)/8/ratio > sum {
		return errors.Errorf("strips or tiles must have enough data for %dx%d pixels, got %d bytes", l.height, l.width, sum)
	}
	if l.ours() {
		info.Memory = l.memory()
		return nil
	}
	// The image in 8 bytes per pixel, and a strip or tile, inflated into a buffer that is doubled.
	info.Memory = 8*int(pixels) + 3*8*max(int(pixels), l.blockWidth*l.blockHeight)
	return nil
}

// blocks returns the number of strips or tiles.
func (l *tiffLayout) blocks() int {
	across, down := (l.width+l.blockWidth-1)/l.blockWidth, (l.height+l.blockHeight-1)/l.blockHeight
	return across * down * (l.samples / l.interleaved())
}

// checkTiles bounds the sizes of tiles.
func (l *tiffLayout) checkTiles(pixels int64) error {
	if !l.tiled {
		return nil
	}
	width, height := int64(l.blockWidth), int64(l.blockHeight)
	if height < 1 {
		return errors.Errorf("tiles must have at least 1 row, got %d", height)
	}
	tile := width * height // of less than 2^32 each: negative from 2^63 on
	if tile < 0 || tile > 2*pixels+tiffTilePixels || max(width, height) > MaxPixels {
		return errors.Errorf("tiles must not be much larger than the image, got %dx%d in an image of %dx%d pixels", height, width, l.height, l.width)
	}
	across, down := (int64(l.width)+width-1)/width, (int64(l.height)+height-1)/height
	if padded := across * down * tile; padded > 8*pixels+4*tiffTilePixels {
		return errors.Errorf("tiles must not have many more pixels than the image, got %d in an image of %dx%d pixels", padded, l.height, l.width)
	}
	return nil
}
