package datasets

import (
	"bufio"
	"bytes"
	"context"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/pkg/errors"
	"golang.org/x/image/bmp"
)

// Limits of images.
const (
	// MaxPixels is the largest number of pixels of an image before scaling. Colour images with 16
	// bits per channel decode to 8 bytes per pixel, and may have half as many pixels. A larger
	// image is an error, detected in its header before any allocation. Decoding an image of this
	// size takes several hundred megabytes; Measure returns an upper bound.
	MaxPixels = 100_000_000
	// MaxScans is the largest number of scans of a JPEG image. Encoders write some 10 for a
	// progressive image; each takes time for all pixels, however few bytes it has.
	MaxScans = 100
	// MaxSide is the largest height and width of images in a Dataset.
	MaxSide = 512
	// maxOwnSide is the largest height and width that images keep without a requested shape.
	maxOwnSide = 256
)

// imageFormat is a row of the table of image formats.
type imageFormat struct {
	name       string
	extensions []string // of image files, in lower case
	magics     []string // beginnings of the content; ? is any byte
	config     func(io.Reader) (image.Config, error)
	// decode returns the image. Its bounds lie within the size in the config, the canvas.
	decode func(*stoppable) (image.Image, error)
	// orientation, if not nil, returns the EXIF orientation.
	orientation func(io.ReaderAt) int
	// inspect checks the whole content before it is decoded, and sets info.memory.
	inspect func(content []byte, info *imageInfo) error
}

// imageFormats is the table of image formats. An image's format is determined by its content; the
// extension only marks a file as an image.
var imageFormats = []imageFormat{
	{"PNG", []string{".png"}, []string{pngMagic}, png.DecodeConfig, decodePNG, pngOrientation, inspectPNG},
	{"JPEG", []string{".jpg", ".jpeg", ".jpe", ".jfif"}, []string{"\xff\xd8"}, jpeg.DecodeConfig, decodeJPEG, jpegOrientation, inspectJPEG},
	{"GIF", []string{".gif"}, []string{"GIF8"}, gif.DecodeConfig, decodeGIF, nil, inspectGIF},
	{"BMP", []string{".bmp"}, []string{"BM"}, bmp.DecodeConfig, decodeBMP, nil, inspectBMP},
	{"WebP", []string{".webp"}, []string{"RIFF????WEBP"}, webpConfig, decodeWebP, webpOrientation, inspectWebP},
	{"TIFF", []string{".tif", ".tiff"}, []string{"II*\x00", "MM\x00*"}, tiffConfig, decodeTIFF, orientation, inspectTIFF},
	{"netpbm", []string{".ppm", ".pgm", ".pnm"}, []string{"P2", "P3", "P5", "P6"}, netpbmConfig, decodeNetpbm, nil, inspectNetpbm},
}

// IsImage reports whether a file name has an extension of images.
func IsImage(name string) bool {
	extension := strings.ToLower(filepath.Ext(name))
	return slices.ContainsFunc(imageFormats, func(f imageFormat) bool {
		return slices.Contains(f.extensions, extension)
	})
}

// formatOf returns the format of a content by its first bytes.
func formatOf(start []byte) (imageFormat, error) {
	var names []string
	for _, format := range imageFormats {
		for _, magic := range format.magics {
			if matches(magic, start) {
				return format, nil
			}
		}
		names = append(names, format.name)
	}
	if name := foreign(start); name != "" {
		return imageFormat{}, errors.Errorf("offset 0: must begin like an image (%[2]s), got %[1]s", name, strings.Join(names, ", "))
	}
	return imageFormat{}, errors.Errorf("offset 0: must begin like an image (%[2]s), got % [1]x",
		start[:min(len(start), 8)], strings.Join(names, ", "))
}

func matches(magic string, start []byte) bool {
	if len(start) < len(magic) {
		return false
	}
	for i := range magic {
		if magic[i] != '?' && magic[i] != start[i] {
			return false
		}
	}
	return true
}

// imageInfo describes an image, upright, from its header.
type imageInfo struct {
	height, width int
	grey          bool // stored in grey
	orientation   int  // of EXIF: 1 (upright) to 8, see upright
	memory        int  // upper bound of the bytes that decoding allocates; see inspect
	pages         bool // there are more pages; see inspect
	format        imageFormat
}

// formatReach is the number of bytes at the start that are searched for the format.
const formatReach = 160

// imageSource is a file, or content in memory.
type imageSource interface {
	io.Reader
	io.ReaderAt
}

// probe reads the header of an image from the start of the source.
func (d *decoder) probe(source imageSource) (info imageInfo, err error) {
	err = guarded(func() (err error) { info, err = d.readHeader(source); return err })
	return info, err
}

// readHeader reads the format, the size and the orientation of an image, without its pixels, and
// refuses one that is too large to decode.
func (d *decoder) readHeader(source imageSource) (imageInfo, error) {
	r := d.header
	r.Reset(source)
	start, err := r.Peek(formatReach)
	if err != nil && err != io.EOF {
		return imageInfo{}, err
	}
	if len(start) == 0 {
		return imageInfo{}, errors.New("offset 0: must be an image, got an empty file")
	}
	info := imageInfo{orientation: 1}
	if info.format, err = formatOf(start); err != nil {
		return info, err
	}
	greyPNG := info.format.name == "PNG" && len(start) > 25 && start[25] == 4 // grey with alpha
	if info.format.orientation != nil {
		info.orientation = info.format.orientation(source)
	}
	var config image.Config
	// TIFF's decoder reads at an offset: without a ReaderAt it allocates all bytes up to there,
	// which may be gigabytes that the file does not have.
	both := struct {
		io.Reader
		io.ReaderAt
	}{r, source}
	if config, err = info.format.config(both); err != nil {
		return info, errors.WithMessage(explained(noEOF(err)), info.format.name)
	}
	info.height, info.width = config.Height, config.Width
	limit, of := MaxPixels, ""
	if config.ColorModel == color.RGBA64Model || config.ColorModel == color.NRGBA64Model {
		limit, of = MaxPixels/2, " of 16 bits per channel"
	}
	if info.height < 1 || info.width < 1 || info.height > limit/info.width {
		return info, errors.Errorf("%s must have 1 to %[4]d pixels%[5]s, got %[2]dx%[3]d", info.format.name, info.height, info.width, limit, of)
	}
	info.grey = greyPNG || isGrey(config.ColorModel)
	if info.orientation > 4 {
		info.height, info.width = info.width, info.height
	}
	return info, nil
}

func isGrey(model color.Model) bool {
	if palette, ok := model.(color.Palette); ok {
		return !slices.ContainsFunc(palette, func(c color.Color) bool {
			r, g, b, _ := c.RGBA()
			return r != g || g != b
		})
	}
	return model == color.GrayModel || model == color.Gray16Model
}

// inspect reads the header of an encoded image and checks, before anything of its size is
// allocated, what makes decoding slow or large. It sets info.memory.
func (d *decoder) inspect(content []byte) (imageInfo, error) {
	info, err := d.probe(bytes.NewReader(content))
	if err != nil {
		return info, err
	}
	if err := guarded(func() error { return info.format.inspect(content, &info) }); err != nil {
		return info, errors.WithMessage(err, info.format.name)
	}
	const row, taps = 10, 16 // bytes per pixel of a row (see rows.go), and per row and column of newTaps
	info.memory += row*max(info.height, info.width) + taps*(info.height+info.width)
	return info, nil
}

// stoppable is an encoded image in memory as a file. Reading returns the error of a context that
// has ended. This is the only way to stop a decoder, so reads are short: a JPEG image can have
// three scans in 128 bytes, of tens of milliseconds each.
type stoppable struct {
	context context.Context
	content []byte
	at      int
}

const stoppableRead = 128

// with returns another content that stops with the same context.
func (s *stoppable) with(content []byte) *stoppable { return &stoppable{s.context, content, 0} }

// Read implements io.Reader.
func (s *stoppable) Read(to []byte) (int, error) {
	if err := s.context.Err(); err != nil {
		return 0, err
	}
	if s.at == len(s.content) && len(to) > 0 {
		return 0, io.EOF
	}
	n := copy(to[:min(len(to), stoppableRead)], s.content[s.at:])
	s.at += n
	return n, nil
}

// ReadAt implements io.ReaderAt.
func (s *stoppable) ReadAt(to []byte, at int64) (int, error) {
	if err := s.context.Err(); err != nil {
		return 0, err
	}
	return bytes.NewReader(s.content).ReadAt(to, at)
}

// guarded calls a decoder and turns a panic into an error, so that an image cannot crash a program.
func guarded(decode func() error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = errors.Errorf("the decoder failed: %v", reason)
		}
	}()
	return decode()
}

// decoder decodes images into bytes. It reuses its memory, and must be used by one goroutine at a
// time.
type decoder struct {
	resizer resizer
	header  *bufio.Reader
	turned  []byte
	content bytes.Buffer
	last    imageNotes
}

// decoders is the pool of Decode's decoders.
var decoders = sync.Pool{New: func() any { return newDecoder() }}

func newDecoder() *decoder {
	return &decoder{header: bufio.NewReader(nil)}
}

// Decode decodes an image into bytes [channels height width], as Open does with each file of an
// image directory; see the package documentation. It is safe for untrusted content: an image of
// more than MaxPixels or MaxScans is an error before it is decoded, and so are a file that is too
// short for its pixels and a TIFF image whose blocks are much larger than its pixels or its file; a
// panic of a decoder is an error, too.
//
// Decoding stops with the context's error soon after the context ends. Some decoders read all bytes
// before they compute pixels, and do not stop in the seconds that a large image takes after that.
//
// Decode returns an error if the content is not an image, if channels is not 1, 3 or 4, or if
// height or width is not in 1 ... MaxSide.
func Decode(ctx context.Context, content []byte, channels, height, width int) ([]byte, error) {
	return decodeImage(ctx, content, channels, height, width, false)
}

// DecodeCropped is Decode with Options.Crop.
func DecodeCropped(ctx context.Context, content []byte, channels, height, width int) ([]byte, error) {
	return decodeImage(ctx, content, channels, height, width, true)
}

func decodeImage(ctx context.Context, content []byte, channels, height, width int, crop bool) ([]byte, error) {
	if err := checkShape(channels, height, width); err != nil {
		return nil, errors.WithMessage(err, "datasets: decode")
	}
	to := make([]byte, channels*height*width)
	d := decoders.Get().(*decoder)
	d.resizer = d.resizer.cropping(crop)
	if err := d.decode(ctx, to, content, channels, height, width); err != nil {
		return nil, errors.WithMessage(err, "datasets: decode")
	}
	decoders.Put(d) // not after a panic, whose memory may be in an unknown state
	return to, nil
}

// checkShape checks the requested shape of images.
func checkShape(channels, height, width int) error {
	if channels != 1 && channels != 3 && channels != 4 {
		return errors.Errorf("must be 1 (grey), 3 (red, green, blue) or 4 (and opacity), got %d", channels)
	}
	if height < 1 || height > MaxSide || width < 1 || width > MaxSide {
		return errors.Errorf("images must be 1x1 to %[3]dx%[4]d, got %[1]dx%[2]d", height, width, MaxSide, MaxSide)
	}
	return nil
}

// decode decodes an image into to, [channels height width]. All image files are decoded by it.
func (d *decoder) decode(ctx context.Context, to, content []byte, channels, height, width int) error {
	info, err := d.inspect(content)
	if err != nil {
		return err
	}
	return d.decodeInspected(ctx, info, to, content, channels, height, width)
}

// decodeInspected decodes an image that inspect has accepted.
func (d *decoder) decodeInspected(ctx context.Context, info imageInfo, to, content []byte, channels, height, width int) error {
	d.last = imageNotes{pages: info.pages}
	d.resizer.stopped = func() bool { return ctx.Err() != nil }
	defer func() { d.resizer.stopped = nil }()
	err := guarded(func() error { return d.decodeAs(info, to, &stoppable{ctx, content, 0}, channels, height, width) })
	if ctx.Err() != nil {
		return errors.Wrap(ctx.Err(), "decoding was stopped")
	}
	return errors.WithMessage(explained(noEOF(err)), info.format.name)
}

// decodeAs decodes an image whose header was read. It panics where a decoder does.
func (d *decoder) decodeAs(info imageInfo, to []byte, source *stoppable, channels, height, width int) error {
	img, err := info.format.decode(source)
	if err != nil {
		return err
	}
	canvas := image.Rect(0, 0, info.width, info.height)
	if info.orientation > 4 {
		canvas = image.Rect(0, 0, info.height, info.width)
	}
	if bounds := img.Bounds(); !bounds.In(canvas) || bounds.Empty() {
		return errors.Errorf("pixels must be within %dx%d, got them at %v", canvas.Dy(), canvas.Dx(), bounds)
	}
	if info.orientation == 1 {
		d.scale(to, img, canvas, channels, height, width)
		return nil
	}
	if info.orientation > 4 {
		height, width = width, height
	}
	if cap(d.turned) < len(to) {
		d.turned = make([]byte, len(to))
	}
	d.scale(d.turned[:len(to)], img, canvas, channels, height, width)
	upright(to, d.turned[:len(to)], info.orientation, height, width)
	return nil
}
