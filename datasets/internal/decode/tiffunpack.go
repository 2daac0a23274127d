package decode

import (
	"bufio"
	"compress/zlib"
	"encoding/binary"
	"image"
	"io"

	"github.com/pkg/errors"
	"golang.org/x/image/tiff/lzw"
)

// This file reads TIFF images whose layout golang.org/x/image/tiff lacks: opacity with grey, CMYK,
// planes, 2 and 4 bits. Memory is bounded by the number of pixels: a strip or tile is inflated to
// its size, and no further.

// memory returns a bound of the bytes that unpack allocates.
func (l *tiffLayout) memory() int {
	const inflating = 128 << 10
	perSample := (l.bits + 7) / 8
	return l.height*l.width*(l.samples+4)*perSample + l.rowBytes()*l.blockHeight + inflating
}

// rowBytes returns the bytes of a row of a strip or tile.
func (l *tiffLayout) rowBytes() int { return (l.blockWidth*l.interleaved()*l.bits + 7) / 8 }

// unpack decodes the image.
func (l *tiffLayout) unpack() (image.Image, error) {
	if l.predictor != 1 && (l.predictor != 2 || l.bits < 8) {
		return nil, errors.Errorf("predictor of %d-bit samples must be none, or horizontal for 8 and 16 bits, got number %d", l.bits, l.predictor)
	}
	if l.compressed == 3 || l.compressed == 4 {
		return nil, errors.New("compression by CCITT must have 1 sample of 1 bit: save the image as PNG")
	}
	across, down := (l.width+l.blockWidth-1)/l.blockWidth, (l.height+l.blockHeight-1)/l.blockHeight
	offsets, counts := l.values(tiffStrips), l.values(tiffStripBytes)
	if l.tiled {
		offsets, counts = l.values(tiffTiles), l.values(tiffTileBytes)
	}
	perSample := (l.bits + 7) / 8
	pixels := make([]byte, l.height*l.width*l.samples*perSample)
	block := make([]byte, l.rowBytes()*l.blockHeight)
	planes := l.samples / l.interleaved()
	for i := range planes * down * across {
		plane, x, y := i/(down*across), i%across*l.blockWidth, i/across%down*l.blockHeight
		rows := l.blockHeight
		if !l.tiled {
			rows = min(rows, l.height-y)
		}
		data := block[:rows*l.rowBytes()]
		if err := l.readBlock(data, l.at(offsets, int64(i)), l.at(counts, int64(i))); err != nil {
			return nil, errors.WithMessagef(noEOF(err), "strip or tile %d", i)
		}
		for row := range min(rows, l.height-y) {
			l.unpackRow(pixels, data[row*l.rowBytes():][:l.rowBytes()], plane, x, y+row)
		}
	}
	return l.image(pixels)
}

// readBlock fills a strip or tile.
func (l *tiffLayout) readBlock(data []byte, offset, count int64) error {
	if offset < 0 || count < 0 {
		return errors.New("must have an offset and a size in the directory, got none")
	}
	section := io.NewSectionReader(l.source, offset, count)
	var r io.Reader
	switch l.compressed {
	case 0, 1:
		r = section
	case 5:
		unpacked := lzw.NewReader(section, lzw.MSB, 8)
		defer unpacked.Close()
		r = unpacked
	case 32773:
		return unpackBits(data, bufio.NewReader(section))
	default: // readTIFFLayout has accepted it
		unpacked, err := zlib.NewReader(section)
		if err != nil {
			return err
		}
		defer unpacked.Close()
		r = unpacked
	}
	_, err := io.ReadFull(r, data)
	return err
}

// unpackBits fills data from PackBits (TIFF 6.0, section 9): a byte n of 0 ... 127 comes before n+1
// bytes, one of -1 ... -127 before a byte that occurs 1-n times.
func unpackBits(data []byte, r *bufio.Reader) error {
	for len(data) > 0 {
		code, err := r.ReadByte()
		if err != nil {
			return err
		}
		switch n := int(int8(code)); {
		case n >= 0:
			n = min(n+1, len(data))
			if _, err := io.ReadFull(r, data[:n]); err != nil {
				return err
			}
			data = data[n:]
		case n > -128:
			value, err := r.ReadByte()
			if err != nil {
				return err
			}
			n = min(1-n, len(data))
			for i := range n {
				data[i] = value
			}
			data = data[n:]
		}
	}
	return nil
}

// unpackRow copies a row of a strip or tile into the pixels [H W samples], where 16 bits are
// big-endian and fewer than 8 are scaled to 8, except palette indices.
func (l *tiffLayout) unpackRow(pixels, row []byte, plane, x, y int) {
	n, perSample := l.interleaved(), (l.bits+7)/8
	if l.predictor == 2 {
		l.undoPredictor(row)
	}
	mask := 1<<min(l.bits, 8) - 1
	scale := 1
	if l.photometric != tiffPalette {
		scale = 255 / mask
	}
	to := (y*l.width+x)*l.samples + plane
	for i := range min(l.blockWidth, l.width-x) * n {
		at := to + i
		if l.planar {
			at = to + i*l.samples
		}
		switch l.bits {
		case 16:
			binary.BigEndian.PutUint16(pixels[perSample*at:], l.order.Uint16(row[2*i:]))
		default:
			shift := 8 - l.bits - i*l.bits%8
			pixels[at] = byte(int(row[i*l.bits/8]) >> shift & mask * scale)
		}
	}
}

// undoPredictor adds to each sample the one of the pixel before.
func (l *tiffLayout) undoPredictor(row []byte) {
	n := l.interleaved()
	if l.bits == 8 {
		for i := n; i < len(row); i++ {
			row[i] += row[i-n]
		}
		return
	}
	for i := 2 * n; i+2 <= len(row); i += 2 {
		l.order.PutUint16(row[i:], l.order.Uint16(row[i:])+l.order.Uint16(row[i-2*n:]))
	}
}

// image returns the pixels [H W samples] as an image.
func (l *tiffLayout) image(pixels []byte) (image.Image, error) {
	bounds := image.Rect(0, 0, l.width, l.height)
	perSample := (l.bits + 7) / 8
	if l.photometric == tiffWhiteIsZero {
		for i := range pixels {
			if opacity := l.opacity > 0 && i/perSample%2 == 1; !opacity {
				pixels[i] = ^pixels[i]
			}
		}
	}
	if l.photometric == tiffPalette {
		palette, err := l.palette()
		return &image.Paletted{Pix: pixels, Stride: l.width, Rect: bounds, Palette: palette}, err
	}
	if l.photometric == tiffCMYK {
		if perSample == 2 {
			pixels = highBytes(pixels)
		}
		return &image.CMYK{Pix: pixels, Stride: 4 * l.width, Rect: bounds}, nil
	}
	if l.samples > 1 {
		pixels = fourSamples(pixels, l.samples, perSample)
	}
	stride := len(pixels) / l.height
	switch {
	case l.samples == 1 && perSample == 1:
		return &image.Gray{Pix: pixels, Stride: stride, Rect: bounds}, nil
	case l.samples == 1:
		return &image.Gray16{Pix: pixels, Stride: stride, Rect: bounds}, nil
	case l.opacity == 1 && perSample == 1:
		return &image.RGBA{Pix: pixels, Stride: stride, Rect: bounds}, nil
	case l.opacity == 1:
		return &image.RGBA64{Pix: pixels, Stride: stride, Rect: bounds}, nil
	case perSample == 1:
		return &image.NRGBA{Pix: pixels, Stride: stride, Rect: bounds}, nil
	default:
		return &image.NRGBA64{Pix: pixels, Stride: stride, Rect: bounds}, nil
	}
}

// highBytes keeps the high byte of each value, in place.
func highBytes(pixels []byte) []byte {
	for i := range len(pixels) / 2 {
		pixels[i] = pixels[2*i]
	}
	return pixels[:len(pixels)/2]
}

// fourSamples returns pixels of red, green, blue and opacity. Two samples are grey and opacity.
func fourSamples(pixels []byte, samples, perSample int) []byte {
	if samples == 4 {
		return pixels
	}
	n := len(pixels) / samples / perSample
	four := make([]byte, 0, 4*n*perSample)
	opaque := []byte{255, 255}[:perSample]
	for i := range n {
		pixel := pixels[i*samples*perSample:][:samples*perSample]
		if samples == 3 {
			four = append(append(four, pixel...), opaque...)
			continue
		}
		grey, opacity := pixel[:perSample], pixel[perSample:]
		four = append(append(append(append(four, grey...), grey...), grey...), opacity...)
	}
	return four
}
