package decode

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// seeds are small images of each kind that a decoder distinguishes, by the format's name.
func seeds(t testing.TB) map[string][][]byte {
	img := noisePicture(1, 13, 9)
	grey, dots := quarter(24, 16), quarter(5, 4)
	clear := image.NewNRGBA(img.Rect)
	palette := image.NewPaletted(img.Rect, color.Palette{color.Black, color.White, color.Transparent})
	for i := range palette.Pix {
		palette.Pix[i] = byte(i % 3)
		clear.Pix[4*i], clear.Pix[4*i+3] = byte(i), byte(200*i)
	}
	text := func(s string) []byte {
		content, err := base64.StdEncoding.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	all := map[string][][]byte{}
	for name, content := range turned(t, 6) {
		format, _, _ := strings.Cut(name, " ")
		format = strings.TrimSuffix(format, ",")
		if len(content) < 4000 { // without long segments
			all[format] = append(all[format], content)
		}
	}
	plain := encoded(t, img)
	photo := written(t, func(w io.Writer) error { return jpeg.Encode(w, img, nil) })
	all["PNG"] = append(all["PNG"], plain, encoded(t, deepCopy(img)), encoded(t, clear), encoded(t, palette), encoded(t, grey),
		interlacedPNG(), insertPNG(plain, "IDAT", []byte("\x00\x00\x00\x02tEXtab\x00\x00\x00\x00")), plain[:len(plain)-12])
	all["JPEG"] = append(all["JPEG"], photo, photo[:len(photo)-2], text(progressiveGrey), text(cmykJPEG), progressiveJPEG(17, 30, 5),
		written(t, func(w io.Writer) error { return jpeg.Encode(w, grey, nil) }))
	animation := &gif.GIF{Image: []*image.Paletted{palette, palette}, Delay: []int{0, 5}, Config: image.Config{Width: 20, Height: 11}}
	all["GIF"] = append(all["GIF"], written(t, func(w io.Writer) error { return gif.Encode(w, img, nil) }),
		written(t, func(w io.Writer) error { return gif.EncodeAll(w, animation) }),
		written(t, func(w io.Writer) error {
			return gif.EncodeAll(w, &gif.GIF{Image: animation.Image[:1], Delay: []int{0}, LoopCount: -1})
		}))
	for _, img := range []image.Image{img, grey, clear, palette} {
		all["BMP"] = append(all["BMP"], written(t, func(w io.Writer) error { return bmp.Encode(w, img) }))
	}
	all["WebP"] = append(all["WebP"], text(tinyWebP), text(greyLossyWebP), text(clearLossyWebP), webpFile(losslessWebP(grey)), animatedWebP(9, 9, 2, 4, dots))
	for _, l := range layouts() {
		l.compression = max(l.compression, 1)
		all["TIFF"] = append(all["TIFF"], l.content())
	}
	predicted := &tiff.Options{Compression: tiff.Deflate, Predictor: true}
	all["TIFF"] = append(all["TIFF"], written(t, func(w io.Writer) error { return tiff.Encode(w, img, predicted) }),
		tiffTags([]byte{0xf8, 0x02, 0x00, 0x20}, map[uint16][]uint32{256: {9}, 257: {5}, 259: {4}, 262: {0}, 273: {8}, 277: {1}, 279: {4}}),
		tiffTags([]byte{0x80, 0x0b, 0x60, 0x50, 0x10}, map[uint16][]uint32{256: {3}, 257: {1}, 258: {8}, 259: {5}, 262: {1}, 273: {8}, 277: {1}, 279: {5}}))
	for _, content := range []string{"P2\n# c\n3 1\n255\n0 7 255", "P3 1 1 10 0 5 10", "P5 3 1 65535\n\x00\x00\x80\x00\xff\xff", "P6 1 1 255\n\x00\x01\x00",
		"P6 99999999 1 255\n", "P3 2 1 900 0 1 2 700 800 900"} {
		all["netpbm"] = append(all["netpbm"], []byte(content))
	}
	return all
}

// interlacedPNG is a grey picture of 3x3 pixels, all 7, in the passes of Adam7.
func interlacedPNG() []byte {
	var rows []byte
	for _, pass := range [][2]int{{1, 1}, {1, 1}, {1, 2}, {2, 1}, {1, 3}} { // rows and columns of passes 1, 4, 5, 6 and 7
		for range pass[0] {
			rows = append(append(rows, 0), bytes.Repeat([]byte{7}, pass[1])...)
		}
	}
	header := []byte{0, 0, 0, 3, 0, 0, 0, 3, 8, 0, 0, 0, 1}
	return slices.Concat([]byte(pngMagic), pngChunk("IHDR", header), pngChunk("IDAT", deflated(rows)), pngChunk("IEND", nil))
}

// Each seed is decoded as the kind that it stands for, so that mutations start from valid images.
func TestSeedsAreRead(t *testing.T) {
	all := seeds(t)
	for _, format := range imageFormats {
		for i, content := range all[format.name] {
			_, err := Decode(t.Context(), content, 3, 4, 4, false)
			if m, _ := Inspect(content); err != nil && m.Width != 99999999 {
				t.Errorf("%s %d: %v", format.name, i, err)
			}
		}
		if len(all[format.name]) < 3 {
			t.Errorf("seeds has %d images of %s, want at least 3", len(all[format.name]), format.name)
		}
	}
}

// checkDecoding fails if decoding panics, takes more memory than Measure returns, or does not end.
func checkDecoding(t *testing.T, content []byte) {
	const slack, maxMemory, maxTime = 8 << 20, 32 << 20, time.Minute
	m, measureErr := Inspect(content)
	if measureErr == nil && m.Memory > maxMemory {
		return // it may take that much
	}
	ctx, cancel := context.WithTimeout(t.Context(), maxTime)
	defer cancel()
	var got []byte
	var err error
	used := testenv.Allocated(func() { got, err = Decode(ctx, content, 3, 4, 4, false) })
	switch {
	case ctx.Err() != nil:
		t.Errorf("an image of %dx%d pixels in %d bytes takes more than %v", m.Height, m.Width, len(content), maxTime)
	case err == nil && (len(got) != 48 || measureErr != nil):
		t.Errorf("%d bytes, though Measure returns %v", len(got), measureErr)
	case err != nil && strings.Contains(err.Error(), "the decoder failed"):
		t.Errorf("panic: %v", err)
	case used > uint64(m.Memory)+slack:
		t.Errorf("an image of %dx%d pixels in %d bytes takes %d bytes of memory, Measure = %d: %v", m.Height, m.Width, len(content), used, m.Memory, err)
	}
}

// mutated returns a content with random changes: bits and bytes, extreme numbers, pieces that are
// removed, repeated or inserted, and an end.
func mutated(content []byte, r *rand.Rand) []byte {
	b := slices.Clone(content)
	for range 1 + r.IntN(4) {
		if len(b) == 0 {
			return b
		}
		at := r.IntN(len(b))
		if r.IntN(2) == 0 { // mostly in the header
			at = r.IntN(min(len(b), 64))
		}
		end := at + r.IntN(min(len(b)-at, 32)+1)
		switch r.IntN(8) {
		case 0, 1:
			b[at] ^= 1 << r.IntN(8)
		case 2:
			b[at] = byte(r.Uint32())
		case 3:
			number := []byte{0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0, 1}[r.IntN(10):]
			copy(b[at:], number[:min(len(number), 1+r.IntN(4))])
		case 4:
			b = slices.Delete(b, at, end)
		case 5:
			b = slices.Insert(b, at, b[at:end]...)
		case 6:
			b = slices.Insert(b, at, make([]byte, r.IntN(9))...)
		case 7:
			if r.IntN(4) == 0 {
				b = b[:at]
			}
		}
	}
	return b
}

// A thousand mutations of each kind of image give an image or an error, in bounded memory.
func TestMutations(t *testing.T) {
	each := 50
	if testenv.All(t) {
		each = 1000
	}
	all := seeds(t)
	for _, format := range slices.Sorted(maps.Keys(all)) {
		for i, content := range all[format] {
			t.Run(fmt.Sprint(format, " ", i), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(i), 1))
				for range each/len(all[format]) + 1 {
					if b := mutated(content, r); !t.Failed() {
						if checkDecoding(t, b); t.Failed() {
							t.Logf("%q", b)
						}
					}
				}
			})
		}
	}
}

func fuzzFormat(f *testing.F, format string) {
	for _, content := range seeds(f)[format] {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) { checkDecoding(t, content) })
}

func FuzzPNG(f *testing.F)    { fuzzFormat(f, "PNG") }
func FuzzJPEG(f *testing.F)   { fuzzFormat(f, "JPEG") }
func FuzzGIF(f *testing.F)    { fuzzFormat(f, "GIF") }
func FuzzBMP(f *testing.F)    { fuzzFormat(f, "BMP") }
func FuzzWebP(f *testing.F)   { fuzzFormat(f, "WebP") }
func FuzzTIFF(f *testing.F)   { fuzzFormat(f, "TIFF") }
func FuzzNetpbm(f *testing.F) { fuzzFormat(f, "netpbm") }

// FuzzDecode begins with files that are no images, or in formats that are not read.
func FuzzDecode(f *testing.F) {
	for _, content := range foreignContents {
		f.Add([]byte(content))
	}
	f.Fuzz(func(t *testing.T, content []byte) { checkDecoding(t, content) })
}
