package decode

import (
	"bufio"
	"bytes"
	"image"
	"image/color"
	"io"

	"github.com/pkg/errors"
)

// netpbmHeader is the header of a PGM or PPM image: P2 and P5 are grey, P3 and P6 red, green and
// blue. P2 and P3 are written in digits, P5 and P6 in bytes, two per value, big-endian, if the
// largest value is above 255 (see the manual pages pgm(5) and ppm(5)).
type netpbmHeader struct {
	width, height, largest int
	channels               int
	digits                 bool
}

// netpbmConfig is DecodeConfig for PGM and PPM.
func netpbmConfig(r io.Reader) (image.Config, error) {
	header, err := readNetpbmHeader(bufio.NewReader(r))
	if err != nil {
		return image.Config{}, err
	}
	config := image.Config{Width: header.width, Height: header.height, ColorModel: color.RGBAModel}
	if header.channels == 1 {
		config.ColorModel = color.GrayModel
	}
	return config, nil
}

// decodeNetpbm reads a PGM or PPM image. Memory grows with the data that arrive. Values are scaled
// to 0 ... 255, or to 0 ... 65535 if the largest is above 255, and rounded.
func decodeNetpbm(source *stoppable) (image.Image, error) {
	buffered := bufio.NewReader(source)
	header, err := readNetpbmHeader(buffered)
	if err != nil {
		return nil, err
	}
	values, err := header.readValues(buffered, len(source.content))
	if err != nil {
		return nil, err
	}
	bounds := image.Rect(0, 0, header.width, header.height)
	perValue := header.bytesPerValue()
	if header.channels == 3 {
		values = fourSamples(values, 3, perValue)
	}
	stride := len(values) / header.height
	switch {
	case header.channels == 1 && perValue == 1:
		return &image.Gray{Pix: values, Stride: stride, Rect: bounds}, nil
	case header.channels == 1:
		return &image.Gray16{Pix: values, Stride: stride, Rect: bounds}, nil
	case perValue == 1:
		return &image.RGBA{Pix: values, Stride: stride, Rect: bounds}, nil
	default:
		return &image.RGBA64{Pix: values, Stride: stride, Rect: bounds}, nil
	}
}

// inspectNetpbm sets the memory: the values, each at least a byte of the file, and, for three
// channels, a copy with opacity.
func inspectNetpbm(content []byte, info *Info) error {
	header, err := readNetpbmHeader(bufio.NewReader(bytes.NewReader(content)))
	if err != nil {
		return err
	}
	values := min(header.width*header.height*header.channels, len(content)) * header.bytesPerValue()
	info.Memory = values
	if header.channels == 3 {
		info.Memory += values / 3 * 4
	}
	return nil
}

// bytesPerValue returns the bytes of a value, in memory and in P5 and P6.
func (h netpbmHeader) bytesPerValue() int {
	if h.largest > 255 {
		return 2
	}
	return 1
}

func readNetpbmHeader(r *bufio.Reader) (netpbmHeader, error) {
	var magic [2]byte
	if _, err := io.ReadFull(r, magic[:]); err != nil {
		return netpbmHeader{}, errors.Wrap(noEOF(err), "offset 0: netpbm magic number")
	}
	header := netpbmHeader{channels: 1}
	switch string(magic[:]) {
	case "P2":
		header.digits = true
	case "P3":
		header.channels, header.digits = 3, true
	case "P5":
	case "P6":
		header.channels = 3
	default:
		return netpbmHeader{}, errors.Errorf("offset 0: netpbm magic number must be P2, P3, P5 or P6, got %q", magic[:])
	}
	for _, field := range []struct {
		name  string
		value *int
		limit int
	}{{"width", &header.width, MaxPixels}, {"height", &header.height, MaxPixels}, {"largest value", &header.largest, 65535}} {
		value, err := readNumber(r, field.limit)
		if err != nil {
			return netpbmHeader{}, errors.WithMessagef(err, "netpbm %s", field.name)
		}
		if value < 1 {
			return netpbmHeader{}, errors.Errorf("netpbm %s must be at least 1, got 0", field.name)
		}
		*field.value = value
	}
	if pixels := int64(header.width) * int64(header.height); pixels > MaxPixels {
		return netpbmHeader{}, errors.Errorf("netpbm: must have at most %[2]d pixels, got %[1]d", pixels, MaxPixels)
	}
	return header, nil
}

// readNumber reads a decimal number of at most limit after white space and comments (# to the end
// of the line), and one byte of white space after it.
func readNumber(r *bufio.Reader, limit int) (int, error) {
	value, digits, comment := 0, false, false
	for {
		b, err := r.ReadByte()
		space := b == ' ' || b >= '\t' && b <= '\r'
		switch {
		case err == io.EOF && digits:
			return value, nil
		case err != nil:
			return 0, errors.Wrap(noEOF(err), "must be a number")
		case comment:
			comment = b != '\n' && b != '\r'
		case b == '#' && !digits:
			comment = true
		case b >= '0' && b <= '9':
			digits = true
			if value = 10*value + int(b-'0'); value > limit {
				return 0, errors.Errorf("number must be at most %[2]d, got %[1]d...", value, limit)
			}
		case space && digits:
			return value, nil
		case !space:
			return 0, errors.Errorf("must be a number, got byte %q", b)
		}
	}
}

// readValues reads all values, of bytesPerValue bytes, big-endian. Each takes a byte of the file's
// size at least.
func (h netpbmHeader) readValues(r *bufio.Reader, size int) ([]byte, error) {
	count := h.width * h.height * h.channels
	if !h.digits && h.largest == 255 {
		values := make([]byte, min(count, size))
		n, err := io.ReadFull(r, values)
		if n < count && err == nil {
			err = io.ErrUnexpectedEOF
		}
		return values, errors.Wrapf(noEOF(err), "netpbm: got %d of %d values", n, count)
	}
	full := 1<<(8*h.bytesPerValue()) - 1
	values := make([]byte, 0, min(count, size)*h.bytesPerValue())
	for i := range count {
		value, err := h.readValue(r)
		if err == nil && value > h.largest {
			err = errors.Errorf("must be at most %[2]d, got %[1]d", value, h.largest)
		}
		if err != nil {
			return nil, errors.WithMessagef(err, "netpbm: value %d of %d", i, count)
		}
		value = (value*full + h.largest/2) / h.largest
		if full > 255 {
			values = append(values, byte(value>>8))
		}
		values = append(values, byte(value))
	}
	return values, nil
}

// readValue reads one value, unscaled.
func (h netpbmHeader) readValue(r *bufio.Reader) (int, error) {
	if h.digits {
		return readNumber(r, 65535)
	}
	high, err := r.ReadByte()
	if err != nil || h.largest < 256 {
		return int(high), noEOF(err)
	}
	low, err := r.ReadByte()
	return int(high)<<8 | int(low), noEOF(err)
}
