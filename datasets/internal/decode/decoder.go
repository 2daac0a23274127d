package decode

import (
	"bufio"
	"bytes"
	"context"
	"image"
	"image/color"
	"io"
	"slices"

	"github.com/pkg/errors"
)

// Decoder decodes images into bytes. It reuses its memory, and must be used by one goroutine at a
// time.
type Decoder struct {
	resizer Resizer
	header  *bufio.Reader
	turned  []byte
	last    Notes
}

// NewDecoder returns a decoder that scales whole images.
func NewDecoder() *Decoder {
	return &Decoder{header: bufio.NewReader(nil)}
}

// SetBits sets the number of significant bits of the values of images with 16 bits per channel; 0
// is all.
func (d *Decoder) SetBits(bits int) { d.resizer.bits = bits }

// SetCrop sets whether only the largest part in the middle of an image that has the requested
// aspect ratio is scaled, or the whole image.
func (d *Decoder) SetCrop(crop bool) { d.resizer = d.resizer.cropping(crop) }

// Notes returns notes on the image that was decoded last.
func (d *Decoder) Notes() Notes { return d.last }

// Source is a file, or content in memory.
type Source interface {
	io.Reader
	io.ReaderAt
}

// formatReach is the number of bytes at the start that are searched for the format.
const formatReach = 160

// Probe reads the header of an image from the start of the source.
func (d *Decoder) Probe(source Source) (info Info, err error) {
	err = guarded(func() (err error) { info, err = d.readHeader(source); return err })
	return info, err
}

// readHeader reads the format, the size and the orientation of an image, without its pixels, and
// refuses one that is too large to decode.
func (d *Decoder) readHeader(source Source) (Info, error) {
	r := d.header
	r.Reset(source)
	start, err := r.Peek(formatReach)
	if err != nil && err != io.EOF {
		return Info{}, err
	}
	if len(start) == 0 {
		return Info{}, errors.New("offset 0: must be an image, got an empty file")
	}
	info := Info{orientation: 1}
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
		return info, inFormat(info.format.name, err)
	}
	info.Height, info.Width = config.Height, config.Width
	limit, of := MaxPixels, ""
	if config.ColorModel == color.RGBA64Model || config.ColorModel == color.NRGBA64Model {
		limit, of = MaxPixels/2, " of 16 bits per channel"
	}
	if info.Height < 1 || info.Width < 1 || info.Height > limit/info.Width {
		return info, errors.Errorf("%s must have 1 to %[4]d pixels%[5]s, got %[2]dx%[3]d", info.format.name, info.Height, info.Width, limit, of)
	}
	info.Grey = greyPNG || isGrey(config.ColorModel)
	if info.orientation > 4 {
		info.Height, info.Width = info.Width, info.Height
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

// Inspect reads the header of an encoded image and rejects, before anything of its size is
// allocated, images that are too slow or too large to decode. It sets Info.Memory.
func (d *Decoder) Inspect(content []byte) (Info, error) {
	info, err := d.Probe(bytes.NewReader(content))
	if err != nil {
		return info, err
	}
	if err := guarded(func() error { return info.format.inspect(content, &info) }); err != nil {
		return info, inFormat(info.format.name, err)
	}
	const row, taps = 10, 16 // bytes per pixel of a row (see rows.go), and per row and column of newTaps
	info.Memory += row*max(info.Height, info.Width) + taps*(info.Height+info.Width)
	return info, nil
}

// Decode decodes an image into to, [channels height width]. All image files are decoded by it.
func (d *Decoder) Decode(ctx context.Context, to, content []byte, channels, height, width int) error {
	info, err := d.Inspect(content)
	if err != nil {
		return err
	}
	return d.DecodeInspected(ctx, info, to, content, channels, height, width)
}

// DecodeInspected decodes an image that Inspect has accepted.
func (d *Decoder) DecodeInspected(ctx context.Context, info Info, to, content []byte, channels, height, width int) error {
	d.last = Notes{pages: info.pages, frames: info.frames}
	d.resizer.stopped = func() bool { return ctx.Err() != nil }
	defer func() { d.resizer.stopped = nil }()
	err := guarded(func() error { return d.decodeAs(info, to, &stoppable{ctx, content, 0}, channels, height, width) })
	if ctx.Err() != nil {
		return errors.Wrap(ctx.Err(), "decoding was stopped")
	}
	return inFormat(info.format.name, err)
}

// decodeAs decodes an image whose header was read. It does not recover from panics of a decoder.
func (d *Decoder) decodeAs(info Info, to []byte, source *stoppable, channels, height, width int) error {
	img, err := info.format.decode(source)
	if err != nil {
		return err
	}
	canvas := image.Rect(0, 0, info.Width, info.Height)
	if info.orientation > 4 {
		canvas = image.Rect(0, 0, info.Height, info.Width)
	}
	if bounds := img.Bounds(); !bounds.In(canvas) || bounds.Empty() {
		return errors.Errorf("pixels must be within %dx%d, got them at %v", canvas.Dy(), canvas.Dx(), bounds)
	}
	if info.orientation == 1 {
		scale(&d.resizer, &d.last.deep, to, img, canvas, channels, height, width)
		return nil
	}
	if info.orientation > 4 {
		height, width = width, height
	}
	if cap(d.turned) < len(to) {
		d.turned = make([]byte, len(to))
	}
	scale(&d.resizer, &d.last.deep, d.turned[:len(to)], img, canvas, channels, height, width)
	upright(to, d.turned[:len(to)], info.orientation, height, width)
	return nil
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
