package decode

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// jpegSegment is a marker, a length and contents.
func jpegSegment(marker byte, contents ...[]byte) []byte {
	body := slices.Concat(contents...)
	return append(binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(body)+2)), body...)
}

// progressiveJPEG is a grey image of zeros with one scan of the means and scans-1 of the other
// coefficients, of some bytes each: one code ends up to 2^15 - 1 blocks.
func progressiveJPEG(width, height, scans int) []byte {
	size := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, uint16(height)), uint16(width))
	oneCode := append([]byte{1}, make([]byte, 15)...) // of one bit
	blocks := (width + 7) / 8 * ((height + 7) / 8)
	means := make([]byte, (blocks+7)/8) // one bit for each block
	var bits []byte                     // of a scan of the others
	for left := blocks; left > 0; left -= 1<<15 - 1 {
		run := 1<<14 - 1
		bits = append(bits, 0) // the code for runs of 2^14 and more
		for bit := 13; bit >= 0; bit-- {
			bits = append(bits, byte(run>>bit&1))
		}
	}
	var others []byte
	for from := 0; from < len(bits); from += 8 {
		value := byte(0)
		for i := range 8 {
			bit := byte(1)
			if from+i < len(bits) {
				bit = bits[from+i]
			}
			value = value<<1 | bit
		}
		if others = append(others, value); value == 0xff {
			others = append(others, 0)
		}
	}
	content := slices.Concat([]byte{0xff, 0xd8}, jpegSegment(0xdb, []byte{0}, bytes.Repeat([]byte{1}, 64)),
		jpegSegment(jpegSOF2, []byte{8}, size, []byte{1, 1, 0x11, 0}),
		jpegSegment(0xc4, []byte{0}, oneCode, []byte{0}), jpegSegment(0xc4, []byte{0x10}, oneCode, []byte{0xe0}),
		jpegSegment(jpegSOS, []byte{1, 1, 0, 0, 0, 0}), means)
	scan := slices.Concat(jpegSegment(jpegSOS, []byte{1, 1, 0, 1, 63, 0}), others)
	return slices.Concat(content, bytes.Repeat(scan, scans-1), []byte{0xff, jpegEOI})
}

// A JPEG image of a few bytes cannot take the time of thousands of scans.
func TestScansAreBounded(t *testing.T) {
	const bound = "JPEG: must have at most 100 scans, got more"
	if got, err := Decode(t.Context(), progressiveJPEG(100, 90, maxScans), 1, 1, 1, false); err != nil || got[0] != 128 {
		t.Errorf("%d scans: % d, %v", maxScans, got, err)
	}
	more := progressiveJPEG(100, 90, maxScans+1)
	_, err := Decode(t.Context(), more, 1, 1, 1, false)
	wantStart(t, err, bound)
	_, err = Inspect(progressiveJPEG(5000, 5000, 2000))
	wantStart(t, err, bound)
	// The decoder skips bytes before a marker, and markers of restarts.
	between := bytes.ReplaceAll(more, []byte{0xff, jpegSOS}, []byte{1, 0xff, 0, 0xff, jpegRST0, 2, 0xff, 0xff, jpegSOS})
	_, err = Decode(t.Context(), between, 1, 1, 1, false)
	wantStart(t, err, bound)
	// Markers in a segment, as in a thumbnail, and after the end are none of the image.
	thumbnail := slices.Concat(more[:2], jpegSegment(0xe1, bytes.Repeat([]byte{0xff, jpegSOS, 0, 8}, 500)), progressiveJPEG(100, 90, 3)[2:], more)
	if _, err := Decode(t.Context(), thumbnail, 1, 1, 1, false); err != nil {
		t.Errorf("a thumbnail: %v", err)
	}
	for cut := range more { // nothing panics
		if err := inspectJPEG(more[:cut], &Info{}); err != nil && cut < len(more)-100 {
			t.Fatalf("cut at %d: %v", cut, err)
		}
	}
}

// tiffTags is a grey TIFF image of tags in ascending order, each of a type with 4 bytes per value,
// after data at offset 8.
func tiffTags(data []byte, tags map[uint16][]uint32) []byte {
	order := binary.LittleEndian
	var names []int
	for tag := range tags {
		names = append(names, int(tag))
	}
	slices.Sort(names)
	directory := 8 + len(data)
	values := directory + 2 + 12*len(names) + 4
	b := append(order.AppendUint32([]byte("II*\x00"), uint32(directory)), data...)
	b = order.AppendUint16(b, uint16(len(names)))
	var long []byte
	for _, tag := range names {
		list := tags[uint16(tag)]
		b = order.AppendUint32(order.AppendUint16(order.AppendUint16(b, uint16(tag)), 4), uint32(len(list)))
		if len(list) == 1 {
			b = order.AppendUint32(b, list[0])
			continue
		}
		b = order.AppendUint32(b, uint32(values+len(long)))
		for _, value := range list {
			long = order.AppendUint32(long, value)
		}
	}
	return append(append(b, 0, 0, 0, 0), long...)
}

// Strips that share bytes, and tiles that are mostly padding, take the time of much larger images.
func TestTIFFWorkIsBounded(t *testing.T) {
	const rows = 64
	nothing := bytes.Repeat([]byte{0x80}, 1<<16) // PackBits for no bytes
	base := func(width, height uint32) map[uint16][]uint32 {
		return map[uint16][]uint32{256: {width}, 257: {height}, 258: {8}, 259: {32773}, 262: {1}, 277: {1}}
	}
	shared := base(8, rows)
	shared[273], shared[278] = slices.Repeat([]uint32{8}, rows), []uint32{1}
	shared[279] = slices.Repeat([]uint32{uint32(len(nothing))}, rows)
	content := tiffTags(nothing, shared)
	_, err := Decode(t.Context(), content, 1, 8, 8, false)
	wantError(t, err, "TIFF: strips or tiles must have at most the 66170 bytes of the file, got 4194304")
	// A count beyond the end is cut by the decoder.
	at := tiffEntryAt(t, content, 279)
	binary.LittleEndian.PutUint32(content[at+4:], 1<<28)
	_, err = Decode(t.Context(), content, 1, 8, 8, false)
	wantError(t, err, "TIFF: strips or tiles must have at most")

	padded := base(1, 1<<20)
	padded[322], padded[323], padded[324], padded[325] = []uint32{1024}, []uint32{8}, []uint32{8}, []uint32{1}
	_, err = Decode(t.Context(), tiffTags(nothing, padded), 1, 8, 8, false)
	wantError(t, err, "TIFF: tiles must not have many more pixels than the image, got 1073741824 in an image of 1048576x1 pixels")
}

// endingContext ends after its Err was called left times.
type endingContext struct {
	context.Context
	left int
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// A decoder stops when the context ends.
func TestDecodeStops(t *testing.T) {
	img := noisePicture(1, 300, 300)
	for name, content := range map[string][]byte{
		"PNG":  encoded(t, img),
		"JPEG": written(t, func(w io.Writer) error { return jpeg.Encode(w, img, &jpeg.Options{Quality: 100}) }),
		"GIF":  written(t, func(w io.Writer) error { return gif.Encode(w, img, nil) }),
		"BMP":  written(t, func(w io.Writer) error { return bmp.Encode(w, img) }),
		"TIFF": written(t, func(w io.Writer) error { return tiff.Encode(w, img, &tiff.Options{Compression: tiff.Deflate}) }),
		"PPM":  append([]byte("P6 300 300 255\n"), interleaved(img)...),
	} {
		for _, left := range []int{0, 10} {
			ctx := &endingContext{t.Context(), left}
			_, err := Decode(ctx, content, 3, 8, 8, false)
			if !errors.Is(err, context.DeadlineExceeded) || ctx.left < -40 {
				t.Errorf("%s: %v after %d reads more", name, err, -ctx.left)
			}
		}
	}
}

// Scaling stops, too: this image has 35 bytes to read and 9999 rows.
func TestScalingStops(t *testing.T) {
	ctx := &endingContext{t.Context(), 50}
	_, err := Decode(ctx, gifHeader(9999, 9999, false), 3, 8, 8, false)
	if !errors.Is(err, context.DeadlineExceeded) || ctx.left < -5 {
		t.Errorf("%v after %d rows more", err, -ctx.left)
	}
}

// withPanicking adds, for the time of a test, a format that panics: in its header if the content
// is long, otherwise when its image is scaled.
func withPanicking(t *testing.T) {
	before := imageFormats
	unknown := func([]byte, *Info) error { return nil }
	t.Cleanup(func() { imageFormats = before })
	size := image.Config{Width: 2, Height: 2, ColorModel: color.RGBAModel}
	imageFormats = append(slices.Clip(before),
		imageFormat{name: "Header", inspect: unknown, magics: []string{"HEADER"}, config: func(io.Reader) (image.Config, error) { panic("header") }},
		imageFormat{name: "Pixels", inspect: unknown, magics: []string{"PIXELS"}, config: func(io.Reader) (image.Config, error) { return size, nil },
			decode: func(*stoppable) (image.Image, error) { panic("pixels") }},
		imageFormat{name: "Scale", inspect: unknown, magics: []string{"SCALE"}, config: func(io.Reader) (image.Config, error) { return size, nil },
			decode: func(*stoppable) (image.Image, error) {
				// A pixel beyond its palette.
				return &image.Paletted{Pix: []byte{9, 9, 9, 9}, Stride: 2, Rect: image.Rect(0, 0, 2, 2), Palette: color.Palette{color.Black}}, nil
			}})
}

// A panic of a decoder is an error, and the decoder is used for other images.
func TestPanicsAreErrors(t *testing.T) {
	withPanicking(t)
	for content, want := range map[string]string{
		"HEADER": "the decoder failed: header", "PIXELS": "Pixels: the decoder failed: pixels", "SCALE": "Scale: the decoder failed: runtime error: index",
	} {
		d := NewDecoder()
		_, inspected := d.Inspect([]byte(content))
		_, probed := d.Probe(strings.NewReader(content))
		if content == "HEADER" {
			wantStart(t, inspected, want)
			wantStart(t, probed, want)
		} else if inspected != nil || probed != nil {
			t.Errorf("%s: %v, %v", content, inspected, probed)
		}
		to := make([]byte, 3*4*4)
		wantStart(t, d.Decode(t.Context(), to, []byte(content), 3, 4, 4), want)
		if err := d.Decode(t.Context(), to, encodedTiny(), 3, 4, 4); err != nil {
			t.Error(err)
		}
		_, err := Decode(t.Context(), []byte(content), 3, 4, 4, false)
		wantStart(t, err, want)
	}
}

// Measure bounds what Decode allocates.
func TestMeasureBoundsMemory(t *testing.T) {
	const side = 1000
	colours := noisePicture(3, side, side)
	wide := image.NewNRGBA64(colours.Rect)
	grey := image.NewGray(colours.Rect)
	for i := range wide.Pix {
		wide.Pix[i] = byte(i * i)
	}
	thin := progressiveJPEG(1, 60000, 2)
	decoders = sync.Pool{New: func() any { return NewDecoder() }} // without memory
	for name, content := range map[string][]byte{
		"PNG":              encoded(t, colours),
		"PNG grey":         encoded(t, grey),
		"PNG 16 bit":       encoded(t, wide),
		"JPEG":             written(t, func(w io.Writer) error { return jpeg.Encode(w, colours, nil) }),
		"JPEG progressive": progressiveJPEG(side, side, 4),
		"JPEG thin":        thin,
		"PNG thin":         encoded(t, image.NewGray(image.Rect(0, 0, 1, side*side))),
		"PNG flat":         encoded(t, image.NewGray(image.Rect(0, 0, side*side, 1))),
		"GIF":              written(t, func(w io.Writer) error { return gif.Encode(w, colours, nil) }),
		"BMP":              written(t, func(w io.Writer) error { return bmp.Encode(w, colours) }),
		"TIFF":             written(t, func(w io.Writer) error { return tiff.Encode(w, colours, nil) }),
		"TIFF deflate":     written(t, func(w io.Writer) error { return tiff.Encode(w, wide, &tiff.Options{Compression: tiff.Deflate}) }),
		"PPM":              append([]byte("P6 1000 1000 255\n"), interleaved(colours)...),
		"PPM 16 bit":       append([]byte("P6 1000 1000 65535\n"), make([]byte, 6*side*side)...),
		"PNG with text":    insertPNG(encoded(t, colours), "IDAT", pngChunk("tEXt", []byte("a\x00b"))),
		"JPEG without end": progressiveJPEG(side, side, 4)[:len(progressiveJPEG(side, side, 4))-2],
		"WebP":             webpFile(losslessWebP(quarter(side, side))),
		"WebP animation":   animatedWebP(side, side, 500, 500, quarter(250, 250)),
		"TIFF CMYK 16 bit": tiffTags(make([]byte, 8*side*side), map[uint16][]uint32{256: {side}, 257: {side}, 258: {16, 16, 16, 16},
			262: {5}, 273: {8}, 277: {4}, 279: {8 * side * side}}),
		"TIFF with opacity": tiffTags(deflated(make([]byte, 4*side*side)), map[uint16][]uint32{256: {side}, 257: {side}, 258: {16, 16}, 259: {8},
			262: {1}, 273: {8}, 277: {2}, 279: {uint32(len(deflated(make([]byte, 4*side*side))))}, 338: {2}}),
	} {
		m, err := Inspect(content)
		if err != nil {
			t.Fatal(name, err)
		}
		used := testenv.Allocated(func() {
			if _, err := Decode(t.Context(), content, 3, 32, 32, false); err != nil {
				t.Error(name, err)
			}
		})
		t.Logf("%s: %d bytes allocated, at most %d by Measure", name, used, m.Memory)
		if used > uint64(m.Memory)+1<<20 {
			t.Errorf("%s: %d bytes allocated, Measure = %d", name, used, m.Memory)
		}
	}
}
