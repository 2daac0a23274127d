package report

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"

	"github.com/pkg/errors"
)

// Filter types of the PNG specification, section 9.2: a row's bytes as they are, or minus those of
// the row above.
const (
	filterNone = 0
	filterUp   = 2
)

// encodePNG returns an opaque image as a PNG file with 8 bits per channel and no transparency.
//
// Figures are areas of one colour, and most rows are equal to the one above. Those become zeros,
// and the others stay as they are. Package image/png chooses each row's filter by trying all five,
// which suits photographs: it takes almost three times as long, for files that are a tenth larger.
func encodePNG(img *image.RGBA) ([]byte, error) {
	width, height := img.Rect.Dx(), img.Rect.Dy()
	if width < 1 || height < 1 || !img.Opaque() {
		return nil, errors.Errorf("report: PNG: an image must be opaque and have pixels, got %v", img.Rect)
	}
	var data bytes.Buffer
	if err := compressRows(&data, img, width, height); err != nil {
		return nil, errors.Wrap(err, "report: PNG")
	}
	const bitsPerChannel, trueColour = 8, 2 // the rest of the header, 0, has no alternative but interlacing
	header := binary.BigEndian.AppendUint32(nil, uint32(width))
	header = binary.BigEndian.AppendUint32(header, uint32(height))
	header = append(header, bitsPerChannel, trueColour, 0, 0, 0)
	file := []byte("\x89PNG\r\n\x1a\n")
	file = appendChunk(file, "IHDR", header)
	file = appendChunk(file, "IDAT", data.Bytes())
	return appendChunk(file, "IEND", nil), nil
}

// compressRows writes the filtered rows. Compression is fast: files get 6 % smaller in twice the
// time.
func compressRows(to *bytes.Buffer, img *image.RGBA, width, height int) error {
	w, err := zlib.NewWriterLevel(to, zlib.BestSpeed)
	if err != nil {
		return err
	}
	zeros, row := make([]byte, 1+3*width), make([]byte, 1+3*width)
	zeros[0], row[0] = filterUp, filterNone
	var above []byte
	for y := range height {
		pixels := img.Pix[y*img.Stride:][:4*width]
		filtered := zeros
		if y == 0 || !bytes.Equal(pixels, above) {
			filtered = row
			for i, to := 0, row[1:]; i < len(pixels) && len(to) >= 3; i, to = i+4, to[3:] {
				copy(to[:3], pixels[i:i+3])
			}
		}
		if _, err := w.Write(filtered); err != nil {
			return err
		}
		above = pixels
	}
	return w.Close()
}

// appendChunk appends a chunk of a PNG file: length, type, content and checksum.
func appendChunk(file []byte, kind string, content []byte) []byte {
	file = binary.BigEndian.AppendUint32(file, uint32(len(content)))
	start := len(file)
	file = append(append(file, kind...), content...)
	return binary.BigEndian.AppendUint32(file, crc32.ChecksumIEEE(file[start:]))
}
