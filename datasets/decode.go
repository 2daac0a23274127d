package datasets

import (
	"bufio"
	"bytes"
	"context"
	"image"
	"image/color"
	"image/draw"
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
	"golang.org/x/image/tiff"
)

// Limits of images.
const (
	// MaxPixels is the largest number of pixels of an image before scaling. A larger image is an
	// error, detected in its header before any allocation. Decoding an image of this size takes
	// several hundred megabytes; Measure returns an upper bound.
	MaxPixels = 100_000_000
	// MaxScans is the largest number of scans of a JPEG image. Encoders write some 10 for a
	// progressive image; each takes time for all pixels, however few bytes it has.
	MaxScans = 100
	// MaxSide is the largest height and width of images in a Dataset.
	MaxSide = 256
)

// imageFormat is a row of the table of image formats.
type imageFormat struct {
	name       string
	extensions []string // of image files, in lower case
	magics     []string // beginnings of the content; ? is any byte
	config     func(io.Reader) (image.Config, error)
	decode     func(io.Reader) (image.Image, error) // gets a stoppable
	// inspect, if not nil, checks the whole content before it is decoded, and sets info.memory.
	inspect func(content []byte, info *imageInfo) error
	// perPixel is the number of bytes per pixel that decode allocates at most, if inspect does not
	// set info.memory. PNG has 8 bytes per pixel, twice if it is interlaced; netpbm has 3 and 4,
	// and a buffer that is doubled.
	perPixel int
}

// imageFormats is the table of image formats. An image's format is determined by its content; the
// extension only marks a file as an image.
var imageFormats = []imageFormat{
	{"PNG", []string{".png"}, []string{"\x89PNG\r\n\x1a\n"}, png.DecodeConfig, png.Decode, nil, 16},
	{"JPEG", []string{".jpg", ".jpeg", ".jpe", ".jfif"}, []string{"\xff\xd8"}, jpeg.DecodeConfig, jpeg.Decode, inspectJPEG, 0},
	{"GIF", []string{".gif"}, []string{"GIF8"}, gif.DecodeConfig, gif.Decode, nil, 1},
	{"BMP", []string{".bmp"}, []string{"BM"}, bmp.DecodeConfig, bmp.Decode, nil, 4},
	{"WebP", []string{".webp"}, []string{"RIFF????WEBP"}, webpConfig, decodeWebP, inspectWebP, 12},
	{"TIFF", []string{".tif", ".tiff"}, []string{"II*\x00", "MM\x00*"}, tiff.DecodeConfig, decodeTIFF, inspectTIFF, 0},
	{"netpbm", []string{".ppm", ".pgm", ".pnm"}, []string{"P2", "P3", "P5", "P6"}, netpbmConfig, decodeNetpbm, nil, 12},
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
	orientation   int  // see exifOrientation
	memory        int  // upper bound of the bytes that decoding allocates; see inspect
	format        imageFormat
}

// formatReach and exifReach are the numbers of bytes at the start that are searched for the format
// and for an EXIF block.
const (
	formatReach = 64
	exifReach   = 1 << 17
)

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
	if info.format.name == "JPEG" {
		start, _ = r.Peek(exifReach) // as much as there is; an error is repeated by the header
		info.orientation = exifOrientation(start)
	}
	var config image.Config
	// TIFF's decoder reads at an offset: without a ReaderAt it allocates all bytes up to there,
	// which may be gigabytes that the file does not have.
	both := struct {
		io.Reader
		io.ReaderAt
	}{r, source}
	if config, err = info.format.config(both); err != nil {
		return info, errors.WithMessage(noEOF(err), info.format.name)
	}
	info.height, info.width = config.Height, config.Width
	if info.height < 1 || info.width < 1 || int64(info.height)*int64(info.width) > MaxPixels {
		return info, errors.Errorf("%s must have 1 to %[4]d pixels, got %[2]dx%[3]d", info.format.name, info.height, info.width, MaxPixels)
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
	if check := info.format.inspect; check != nil {
		if err := guarded(func() error { return check(content, &info) }); err != nil {
			return info, errors.WithMessage(err, info.format.name)
		}
	}
	pixels := info.height * info.width
	if info.memory == 0 {
		info.memory = info.format.perPixel * pixels
	}
	const canvas, taps = 4, 16 // bytes per pixel of colourPixels, and per row and column of newTaps
	info.memory += canvas*pixels + taps*(info.height+info.width)
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
	header  *bufio.Reader // of exifReach bytes
	turned  []byte
	content bytes.Buffer
}

// decoders is the pool of Decode's decoders.
var decoders = sync.Pool{New: func() any { return newDecoder() }}

func newDecoder() *decoder {
	return &decoder{header: bufio.NewReaderSize(nil, exifReach)}
}

// Decode decodes an image into bytes [channels height width], as Open does with each file of an
// image directory; see the package documentation. It is safe for untrusted content: an image of
// more than MaxPixels or MaxScans is an error before it is decoded, and so is a TIFF image whose
// blocks are much larger than its pixels or its file; a panic of a decoder is an error, too.
//
// Decoding stops with the context's error soon after the context ends. Some decoders read all bytes
// before they compute pixels, and do not stop in the seconds that a large image takes after that.
//
// Decode returns an error if the content is not an image, if channels is not 1, 3 or 4, or if
// height or width is not in 1 ... MaxSide.
func Decode(ctx context.Context, content []byte, channels, height, width int) ([]byte, error) {
	if err := checkShape(channels, height, width); err != nil {
		return nil, errors.WithMessage(err, "datasets: decode")
	}
	to := make([]byte, channels*height*width)
	d := decoders.Get().(*decoder)
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
	err = guarded(func() error { return d.decodeAs(info, to, &stoppable{ctx, content, 0}, channels, height, width) })
	if ctx.Err() != nil {
		return errors.Wrap(ctx.Err(), "decoding was stopped")
	}
	return errors.WithMessage(noEOF(err), info.format.name)
}

// decodeAs decodes an image whose header was read. It panics where a decoder does.
func (d *decoder) decodeAs(info imageInfo, to []byte, source *stoppable, channels, height, width int) error {
	img, err := info.format.decode(source)
	if err != nil {
		return err
	}
	size := img.Bounds().Size()
	if size.X < 1 || size.Y < 1 {
		return errors.Errorf("must have at least 1x1 pixels, got %dx%d", size.Y, size.X)
	}
	if info.orientation == 1 {
		d.scale(to, img, channels, height, width)
		return nil
	}
	if info.orientation > 4 {
		height, width = width, height
	}
	if cap(d.turned) < len(to) {
		d.turned = make([]byte, len(to))
	}
	d.scale(d.turned[:len(to)], img, channels, height, width)
	upright(to, d.turned[:len(to)], info.orientation, height, width)
	return nil
}

// scale scales an image into to, [channels height width].
func (d *decoder) scale(to []byte, img image.Image, channels, height, width int) {
	size, plane := img.Bounds().Size(), height*width
	if pixels := greyPixels(img, channels); pixels != nil {
		d.resizer.grey(to[:plane], height, width, pixels, size.Y, size.X)
		for c := 1; c < channels; c++ {
			copy(to[c*plane:(c+1)*plane], to[:plane])
		}
		if channels == 4 {
			fill(to[3*plane:], 255)
		}
		return
	}
	pixels := colourPixels(img, channels)
	if channels == 1 {
		luminance(pixels)
		d.resizer.grey(to, height, width, pixels[:size.X*size.Y], size.Y, size.X)
		return
	}
	d.resizer.colour(to, channels, height, width, pixels, size.Y, size.X)
	if channels == 4 {
		separateOpacity(to, plane)
	}
}

// greyPixels returns the values [H W] of an image that is grey, or that stores its luminance if one
// channel is requested; otherwise nil.
func greyPixels(img image.Image, channels int) []byte {
	bounds := img.Bounds()
	height, width := bounds.Dy(), bounds.Dx()
	packed := func(pixels []byte, stride, step int) []byte {
		if stride == width && step == 1 {
			return pixels[:height*width]
		}
		values := make([]byte, 0, height*width)
		for y := range height {
			for x := range width {
				values = append(values, pixels[y*stride+x*step])
			}
		}
		return values
	}
	switch img := img.(type) {
	case *image.Gray:
		return packed(img.Pix[img.PixOffset(bounds.Min.X, bounds.Min.Y):], img.Stride, 1)
	case *image.Gray16: // the high bytes
		return packed(img.Pix[img.PixOffset(bounds.Min.X, bounds.Min.Y):], img.Stride, 2)
	case *image.YCbCr: // Y is the luminance
		if channels == 1 {
			return packed(img.Y[img.YOffset(bounds.Min.X, bounds.Min.Y):], img.YStride, 1)
		}
	}
	return nil
}

// colourPixels returns the pixels [H W 4] of an image, drawn over white, or with premultiplied
// opacity if four channels are requested.
func colourPixels(img image.Image, channels int) []byte {
	bounds := img.Bounds()
	if rgba, ok := img.(*image.RGBA); ok && rgba.Stride == 4*bounds.Dx() && (channels == 4 || rgba.Opaque()) {
		return rgba.Pix[rgba.PixOffset(bounds.Min.X, bounds.Min.Y):][:4*bounds.Dx()*bounds.Dy()]
	}
	canvas := image.NewRGBA(image.Rect(0, 0, bounds.Dx(), bounds.Dy()))
	operation := draw.Src
	if opaque, ok := img.(interface{ Opaque() bool }); channels != 4 && !(ok && opaque.Opaque()) {
		fill(canvas.Pix, 255)
		operation = draw.Over
	}
	draw.Draw(canvas, canvas.Rect, img, bounds.Min, operation)
	return canvas.Pix
}

func fill(values []byte, value byte) {
	for i := range values {
		values[i] = value
	}
}

// luminance converts pixels [H W 4] to grey [H W] in place, with the weights .299, .587 and .114
// (ITU-R BT.601).
func luminance(pixels []byte) {
	for i := range len(pixels) / 4 {
		pixel := pixels[4*i : 4*i+3]
		sum := 19595*uint32(pixel[0]) + 38470*uint32(pixel[1]) + 7471*uint32(pixel[2])
		pixels[i] = byte((sum + 1<<15) >> 16)
	}
}

// separateOpacity divides the premultiplied colours of planes [4 H W] by their opacity.
func separateOpacity(planes []byte, plane int) {
	for i := range plane {
		opacity := int(planes[3*plane+i])
		for c := range 3 {
			value := &planes[c*plane+i]
			if opacity == 0 {
				*value = 0
				continue
			}
			*value = byte(min((int(*value)*255+opacity/2)/opacity, 255))
		}
	}
}
