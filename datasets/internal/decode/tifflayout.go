package decode

import (
	"cmp"
	"fmt"
	"image/color"
	"io"
	"slices"

	"github.com/pkg/errors"
)

// Photometric interpretations.
const (
	tiffWhiteIsZero = 0
	tiffBlackIsZero = 1
	tiffRGB         = 2
	tiffPalette     = 3
	tiffCMYK        = 5
)

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

// The names of unsupported features, for errors, by the value of their tag. Supported values have
// the name "".
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

// named returns an error unless names has the value with an empty name.
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

// few returns the first 16 values of a tag that has a value for each sample.
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

// readSamples reads the number of samples of a pixel, and their meaning.
func (l *tiffLayout) readSamples() error {
	bits := l.few(tiffBits)
	if slices.ContainsFunc(bits, func(b int64) bool { return b != bits[0] }) {
		return errors.Errorf("samples must have the same bits, got %v", bits)
	}
	if !slices.Contains([]int{1, 2, 4, 8, 16}, l.bits) {
		return errors.Errorf("samples must have 1, 2, 4, 8 or 16 bits, got %d: scale the values to 8 or 16 bits", l.bits)
	}
	colours := map[int64]int{tiffRGB: 3, tiffCMYK: 4}[l.photometric]
	colours = cmp.Or(colours, 1)
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

// ours reports whether unpack must decode the image, since golang.org/x/image/tiff does not read
// its layout.
func (l *tiffLayout) ours() bool {
	common := l.bits == 8 || l.bits == 16 || l.bits == 1 && l.samples == 1
	grey := l.photometric == tiffWhiteIsZero || l.photometric == tiffBlackIsZero
	return !common || l.planar || l.photometric == tiffCMYK || grey && l.opacity > 0 || l.photometric == tiffPalette && l.bits == 16
}

// interleaved returns the number of samples per pixel in a strip or tile.
func (l *tiffLayout) interleaved() int {
	if l.planar {
		return 1
	}
	return l.samples
}

// palette returns the colours of the palette: all red values, all green, all blue, of 16 bits.
func (l *tiffLayout) palette() (color.Palette, error) {
	if l.bits > 8 {
		return nil, errors.Errorf("a palette must have at most 8 bits, got %d", l.bits)
	}
	n := int64(1) << l.bits
	values := l.values(tiffColours)
	if values.count != 3*n {
		return nil, errors.Errorf("a palette must have %d values for %d bits, got %d", 3*n, l.bits, values.count)
	}
	palette := make(color.Palette, n)
	for i := range n {
		c := color.RGBA64{A: 65535}
		for plane, to := range []*uint16{&c.R, &c.G, &c.B} {
			value := l.at(values, int64(plane)*n+i)
			if value < 0 {
				return nil, errors.Wrap(io.ErrUnexpectedEOF, "palette")
			}
			*to = uint16(value)
		}
		palette[i] = c
	}
	return palette, nil
}
