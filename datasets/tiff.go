package datasets

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"io"
	"slices"

	"github.com/pkg/errors"
	"golang.org/x/image/tiff"
)

// Tags of the directory of a TIFF image (TIFF 6.0, 1992).
const (
	tiffSubfile      = 254
	tiffWidth        = 256
	tiffHeight       = 257
	tiffBits         = 258
	tiffCompression  = 259
	tiffPhotometric  = 262
	tiffStrips       = 273
	tiffSamples      = 277
	tiffRowsPerStrip = 278
	tiffStripBytes   = 279
	tiffPlanar       = 284
	tiffPredictor    = 317
	tiffColours      = 320
	tiffTileWidth    = 322
	tiffTileHeight   = 323
	tiffTiles        = 324
	tiffTileBytes    = 325
	tiffExtra        = 338
	tiffFormat       = 339
)

// Photometric interpretations.
const (
	tiffWhiteIsZero = 0
	tiffBlackIsZero = 1
	tiffRGB         = 2
	tiffPalette     = 3
	tiffCMYK        = 5
)

// tiffTilePixels is the number of pixels that a tile may have beyond twice the image's: a small
// image often has one tile that is larger than itself. All tiles together, each of which takes the
// time of a whole one, may have four times this beyond eight times the image's.
const tiffTilePixels = 1 << 20

// maxTIFFBlocks is the largest number of strips or tiles, each of which takes the time of a new
// decompressor, however few pixels it has.
const maxTIFFBlocks = 1 << 16

// tiffLayout is how the pixels of a TIFF image are stored.
type tiffLayout struct {
	tiffDirectory
	width, height           int
	bits                    int // per sample
	samples                 int // per pixel: colours, and 1 for opacity
	opacity                 int // 0: none, 1: colours are multiplied by it, 2: they are not
	photometric, compressed int64
	predictor               int64
	planar                  bool // each sample has a plane of its own
	blockWidth, blockHeight int  // of a tile or strip
	tiled                   bool
}

// The names of what is not read, for errors.
var (
	tiffCompressions = map[int64]string{
		0: "", 1: "", 3: "", 4: "", 5: "", 8: "", 32946: "", 32773: "",
		2: "CCITT RLE", 6: "old JPEG", 7: "JPEG", 34712: "JPEG 2000", 34887: "LERC", 34892: "lossy JPEG",
		34925: "LZMA", 50000: "ZSTD", 50001: "WebP", 50002: "JPEG XL",
	}
	tiffPhotometrics = map[int64]string{
		tiffWhiteIsZero: "", tiffBlackIsZero: "", tiffRGB: "", tiffPalette: "", tiffCMYK: "",
		4: "a mask", 6: "YCbCr", 8: "CIELab", 9: "ICCLab", 10: "ITULab", 32803: "a colour filter array (camera raw)", 34892: "linear raw",
	}
	tiffFormats = map[int64]string{1: "", 2: "signed", 3: "floating-point", 4: "", 5: "complex whole", 6: "complex"}
)

// named returns an error unless a value is one of those with an empty name.
func named(what, advice string, value int64, names map[int64]string) error {
	name, known := names[value]
	if known && name == "" {
		return nil
	}
	if name == "" {
		name = fmt.Sprint("number ", value)
	}
	return errors.Errorf("%s must be %s, got %s", what, advice, name)
}

// readTIFFLayout reads the layout of the first image of a TIFF file. It returns an error that names
// the feature if the layout is not supported.
func readTIFFLayout(source io.ReaderAt) (tiffLayout, error) {
	d, err := readTIFFDirectory(source)
	if err == nil && d.cut {
		err = errors.Wrap(io.ErrUnexpectedEOF, "directory")
	}
	if err != nil {
		return tiffLayout{}, err
	}
	l := tiffLayout{
		tiffDirectory: d, width: int(d.value(tiffWidth, 0)), height: int(d.value(tiffHeight, 0)),
		bits: int(d.value(tiffBits, 1)), compressed: d.value(tiffCompression, 1), predictor: d.value(tiffPredictor, 1),
		photometric: d.value(tiffPhotometric, tiffWhiteIsZero),
	}
	const save = ": save the image as PNG, or as TIFF with LZW compression"
	if err := named("compression", "none, LZW, Deflate, PackBits or CCITT", l.compressed, tiffCompressions); err != nil {
		return l, errors.New(err.Error() + save)
	}
	if err := named("colours", "grey, RGB, CMYK or a palette", l.photometric, tiffPhotometrics); err != nil {
		return l, errors.New(err.Error() + ": save the image in RGB")
	}
	for _, format := range l.few(tiffFormat) {
		if err := named("samples", "whole and unsigned", format, tiffFormats); err != nil {
			return l, errors.New(err.Error() + ": scale the values to 8 or 16 bits")
		}
	}
	return l, l.readSamples()
}

// few returns the values of a tag that has one for each sample.
func (l *tiffLayout) few(tag uint16) []int64 {
	const most = 16
	v := l.values(tag)
	var few []int64
	for i := range min(v.count, most) {
		if value := l.at(v, i); value >= 0 {
			few = append(few, value)
		}
	}
	return few
}

// readSamples reads how many samples a pixel has, and what they are.
func (l *tiffLayout) readSamples() error {
	bits := l.few(tiffBits)
	if slices.ContainsFunc(bits, func(b int64) bool { return b != bits[0] }) {
		return errors.Errorf("samples must have the same bits, got %v", bits)
	}
	if !slices.Contains([]int{1, 2, 4, 8, 16}, l.bits) {
		return errors.Errorf("samples must have 1, 2, 4, 8 or 16 bits, got %d: scale the values to 8 or 16 bits", l.bits)
	}
	colours := map[int64]int{tiffRGB: 3, tiffCMYK: 4}[l.photometric]
	if colours == 0 {
		colours = 1
	}
	l.samples = int(l.value(tiffSamples, int64(max(len(bits), 1))))
	extra := l.few(tiffExtra)
	switch {
	case l.samples == colours:
	case l.samples == colours+1 && len(extra) == 1 && (extra[0] == 1 || extra[0] == 2) && l.photometric != tiffPalette && l.photometric != tiffCMYK:
		l.opacity = int(extra[0])
	default:
		return errors.Errorf("pixels must have %d samples, and may have one for opacity, got %d: keep the colours only", colours, l.samples)
	}
	if len(bits) > 1 && len(bits) != l.samples {
		return errors.Errorf("bits must be given for each of %d samples, got %d numbers", l.samples, len(bits))
	}
	l.planar = l.samples > 1 && l.value(tiffPlanar, 1) == 2
	l.blockWidth, l.blockHeight = l.width, int(min(l.value(tiffRowsPerStrip, int64(l.height)), int64(l.height)))
	if l.blockHeight < 1 {
		l.blockHeight = l.height
	}
	if width := l.value(tiffTileWidth, 0); width > 0 {
		l.tiled, l.blockWidth, l.blockHeight = true, int(width), int(l.value(tiffTileHeight, 0))
	}
	return nil
}

// ours reports whether golang.org/x/image/tiff does not read the layout, so that unpackTIFF must.
func (l *tiffLayout) ours() bool {
	common := l.bits == 8 || l.bits == 16 || l.bits == 1 && l.samples == 1
	grey := l.photometric == tiffWhiteIsZero || l.photometric == tiffBlackIsZero
	return !common || l.planar || l.photometric == tiffCMYK || grey && l.opacity > 0 || l.photometric == tiffPalette && l.bits == 16
}

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
	if rgba, ok := img.(*image.RGBA); ok && layout.opacity == 1 {
		limitToOpacity(rgba.Pix)
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

// inspectTIFF returns an error for a TIFF image with tiles much larger than the image, since a
// decoder inflates a tile to its size in the directory, and for one whose strips or tiles have
// together more bytes than its file, since it would read the same bytes for each, or too few for
// the pixels.
func inspectTIFF(content []byte, info *imageInfo) error {
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
		info.memory = l.memory()
		return nil
	}
	// The image in 8 bytes per pixel, and a strip or tile, inflated into a buffer that is doubled.
	info.memory = 8*int(pixels) + 3*8*max(int(pixels), l.blockWidth*l.blockHeight)
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
