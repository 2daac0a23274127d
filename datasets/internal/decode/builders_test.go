package decode

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// Decode decodes an image whose bits are all significant.
func Decode(ctx context.Context, content []byte, channels, height, width int, crop bool) ([]byte, error) {
	return DecodeBits(ctx, content, channels, height, width, crop, 0)
}

// wantError fails the test unless err contains all the given parts.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one with %q", parts)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error is\n%v\nwant it to have %q", err, part)
		}
	}
}

// wantStart fails the test unless err begins with a text.
func wantStart(t *testing.T, err error, start string) {
	t.Helper()
	if err == nil || !strings.HasPrefix(err.Error(), start) {
		t.Errorf("error is\n%v\nwant it to begin with %q", err, start)
	}
}

// randomBytes returns n bytes that do not compress.
func randomBytes(seed uint64, n int) []byte {
	random := rand.New(rand.NewPCG(seed, 0))
	values := make([]byte, n)
	for i := range values {
		values[i] = byte(random.Uint32())
	}
	return values
}

// encoded returns a picture as PNG.
func encoded(t testing.TB, img image.Image) []byte {
	t.Helper()
	var buffer bytes.Buffer
	if err := png.Encode(&buffer, img); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// greyPicture returns a picture whose pixels count up from first.
func greyPicture(width, height int, first byte) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, width, height))
	for i := range img.Pix {
		img.Pix[i] = first + byte(i)
	}
	return img
}

// colourPicture returns a picture of one colour.
func colourPicture(width, height int, c color.Color) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.Set(x, y, c)
		}
	}
	return img
}

// quarter is a grey picture whose upper left quarter is bright.
func quarter(width, height int) *image.Gray {
	img := image.NewGray(image.Rect(0, 0, width, height))
	for y := range height / 2 {
		for x := range width / 2 {
			img.Pix[y*width+x] = 255
		}
	}
	return img
}

// exifBlock is a TIFF structure with an orientation.
func exifBlock(orientation uint16) []byte {
	return []byte{'M', 'M', 0, '*', 0, 0, 0, 8, 0, 1, 1, 0x12, 0, 3, 0, 0, 0, 1, 0, byte(orientation), 0, 0, 0, 0, 0, 0}
}

// pngChunk is a chunk of a PNG image.
func pngChunk(kind string, content []byte) []byte {
	body := append([]byte(kind), content...)
	chunk := append(binary.BigEndian.AppendUint32(nil, uint32(len(content))), body...)
	return binary.BigEndian.AppendUint32(chunk, crc32.ChecksumIEEE(body))
}

// insertPNG puts bytes before the first chunk of a kind.
func insertPNG(content []byte, kind string, inserted []byte) []byte {
	at := bytes.Index(content, []byte(kind)) - 4
	return slices.Concat(content[:at], inserted, content[at:])
}

// insertJPEG puts bytes after the start of a JPEG image.
func insertJPEG(content []byte, inserted ...[]byte) []byte {
	return slices.Concat(content[:2], slices.Concat(inserted...), content[2:])
}

// bitWriter writes bits, the lowest first.
type bitWriter struct {
	bytes []byte
	n     int
}

func (w *bitWriter) put(value uint32, n int) {
	for i := range n {
		if w.n%8 == 0 {
			w.bytes = append(w.bytes, 0)
		}
		w.bytes[w.n/8] |= byte(value>>i&1) << (w.n % 8)
		w.n++
	}
}

// webpChunk is a chunk of a WebP image.
func webpChunk(kind string, content ...[]byte) []byte {
	body := slices.Concat(content...)
	chunk := append(binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(body))), body...)
	if len(body)%2 == 1 {
		chunk = append(chunk, 0)
	}
	return chunk
}

// webpFile is a WebP image of chunks.
func webpFile(chunks ...[]byte) []byte {
	body := slices.Concat(chunks...)
	return slices.Concat(binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body)+4)), []byte("WEBP"), body)
}

// losslessWebP is a chunk VP8L of pixels that are black or green.
func losslessWebP(img *image.Gray) []byte {
	var w bitWriter
	width, height := img.Rect.Dx(), img.Rect.Dy()
	w.put(0x2f, 8)
	w.put(uint32(width-1), 14)
	w.put(uint32(height-1), 14)
	w.put(0, 1+3+1+1+1)             // no opacity, version 0, no transform, no cache, no groups
	w.put(1|1<<1|1<<2|0<<3, 3+8)    // green: two symbols of eight bits, 0
	w.put(255, 8)                   // and 255
	w.put(1, 4)                     // red: one symbol of one bit, 0
	w.put(1, 4)                     // blue
	w.put(1|0<<1|1<<2|255<<3, 3+8)  // opacity: 255
	w.put(1, 4)                     // distances
	for _, value := range img.Pix { // a bit each
		w.put(uint32(value>>7), 1)
	}
	return webpChunk("VP8L", w.bytes)
}

// webpCanvas is a chunk VP8X.
func webpCanvas(flags byte, width, height int) []byte {
	return webpChunk("VP8X", []byte{flags, 0, 0, 0, byte(width - 1), byte((width - 1) >> 8), 0, byte(height - 1), byte((height - 1) >> 8), 0})
}

// animatedWebP has one frame at an even place and another that is not read.
func animatedWebP(canvasWidth, canvasHeight, x, y int, img *image.Gray) []byte {
	frame := []byte{byte(x / 2), 0, 0, byte(y / 2), 0, 0, byte(img.Rect.Dx() - 1), 0, 0, byte(img.Rect.Dy() - 1), 0, 0, 40, 0, 0, 0}
	return webpFile(webpCanvas(2, canvasWidth, canvasHeight), webpChunk("ANIM", make([]byte, 6)),
		webpChunk("ANMF", frame, losslessWebP(img)), webpChunk("ANMF", frame, losslessWebP(quarter(img.Rect.Dx(), img.Rect.Dy()))))
}

// deflated compresses bytes as in TIFF.
func deflated(content []byte) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	w.Write(content)
	w.Close()
	return b.Bytes()
}

// greyTIFF is an uncompressed TIFF image with other tags.
func greyTIFF(img *image.Gray, tags map[uint16][]uint32) []byte {
	all := map[uint16][]uint32{tiffWidth: {uint32(img.Rect.Dx())}, tiffHeight: {uint32(img.Rect.Dy())}, tiffBits: {8}, tiffCompression: {1},
		tiffPhotometric: {tiffBlackIsZero}, tiffStrips: {8}, tiffSamples: {1}, tiffStripBytes: {uint32(len(img.Pix))}}
	maps.Copy(all, tags)
	return tiffTags(img.Pix, all)
}
