package decode

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// bomb is an image that attacks its decoder.
type bomb struct {
	name    string
	content func() []byte
	want    string // in the error; "" is decoded
	memory  int    // MiB that it may take
	slow    bool   // takes more than some 100 ms
}

// zerosPNG is a PNG image of zeros, whose pixels are followed by more.
func zerosPNG(width, height uint32, depth, kind, interlaced byte, rows, more int) []byte {
	header := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height)
	perRow := 1 + (int(width)*int(depth)*map[byte]int{0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]+7)/8
	content := slices.Concat([]byte(pngMagic), pngChunk("IHDR", append(header, depth, kind, 0, 0, interlaced)))
	if kind == 3 {
		content = append(content, pngChunk("PLTE", make([]byte, 6))...)
	}
	return slices.Concat(content, pngChunk("IDAT", deflated(make([]byte, rows*perRow+more))), pngChunk("IEND", nil))
}

// bmpHeader is a BMP image without pixels.
func bmpHeader(width, height int32, bits uint16) []byte {
	b := append([]byte("BM"), make([]byte, 52)...)
	order := binary.LittleEndian
	order.PutUint32(b[10:], 54)
	order.PutUint32(b[14:], 40)
	order.PutUint32(b[18:], uint32(width))
	order.PutUint32(b[22:], uint32(height))
	order.PutUint16(b[26:], 1)
	order.PutUint16(b[28:], bits)
	return b
}

// gifHeader is a GIF image with an empty frame of the canvas' size, or of one pixel.
func gifHeader(width, height uint16, whole bool, before ...[]byte) []byte {
	size := binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(nil, width), height)
	b := slices.Concat([]byte("GIF89a"), size, []byte{0x80, 0, 0}, make([]byte, 6), slices.Concat(before...), []byte{0x2c, 0, 0, 0, 0})
	if !whole {
		size = []byte{1, 0, 1, 0}
	}
	return append(append(b, size...), 0, 2, 2, 0x44, 1, 0, 0x3b)
}

// jpegHeader is a JPEG image with an empty scan.
func jpegHeader(width, height uint16, marker byte) []byte {
	size := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, height), width)
	return slices.Concat([]byte{0xff, 0xd8}, jpegSegment(marker, []byte{8}, size, []byte{3, 1, 0x22, 0, 2, 0x11, 0, 3, 0x11, 0}),
		jpegSegment(jpegSOS, []byte{3, 1, 0, 2, 0, 3, 0, 0, 63, 0}), make([]byte, 50))
}

// huffmanGroups is a WebP image of 8x8 pixels that announces 65536 groups of trees. Each tree has
// one symbol, or all if there are trees of many; none follows if there are no trees.
func huffmanGroups(trees, many bool) []byte {
	var w bitWriter
	one, zero := func(symbol uint32) { w.put(1|1<<2|symbol<<3, 3+8) }, func() { w.put(1, 4) }
	w.put(0x2f, 8)
	w.put(7, 14)
	w.put(7, 14)
	w.put(0, 1+3+1)
	w.put(0, 1) // no cache
	w.put(1, 1) // groups, in tiles of 4x4 pixels
	w.put(0, 3+1)
	one(255)
	one(255)
	zero()
	zero()
	zero()
	for range 65536 * 5 {
		switch {
		case many:
			w.put(0, 1+4) // code lengths of four symbols, which are missing
			w.put(0xfff, 12)
		case trees:
			zero()
		}
	}
	return webpFile(webpChunk("VP8L", w.bytes))
}

// manyStrips is a TIFF image of strips of one pixel, compressed by deflate.
func manyStrips(n int) []byte {
	pixel := deflated([]byte{1})
	tags := map[uint16][]uint32{256: {1}, 257: {uint32(n)}, 258: {8}, 259: {8}, 262: {1}, 277: {1}, 278: {1}}
	for i := range n {
		tags[273], tags[279] = append(tags[273], uint32(8+i*len(pixel))), append(tags[279], uint32(len(pixel)))
	}
	return tiffTags(bytes.Repeat(pixel, n), tags)
}

// hugeTIFF is a TIFF image of a few bytes with the tags.
func hugeTIFF(tags map[uint16][]uint32) []byte {
	all := map[uint16][]uint32{256: {9999}, 257: {9999}, 258: {8}, 259: {1}, 262: {1}, 273: {8}, 277: {1}, 278: {9999}, 279: {50}}
	maps.Copy(all, tags)
	return tiffTags(make([]byte, 50), all)
}

// packBits is a TIFF of 8 pixels a row whose strips have n bytes that become 64 n.
func packBits(n, rows int) []byte {
	return tiffTags(bytes.Repeat([]byte{0x81, 0}, n/2), map[uint16][]uint32{256: {8}, 257: {uint32(rows)}, 258: {8}, 259: {32773}, 262: {1}, 277: {1}, 278: {1},
		273: slices.Repeat([]uint32{8}, max(rows, 1)), 279: slices.Repeat([]uint32{uint32(n)}, rows)})
}

// bombs is every kind of image that is known to take much more than its size: headers that promise
// pixels, blocks that are shared or padded, compressed zeros, chunks and scans without end.
func bombs(t testing.TB) []bomb {
	fixed := func(content []byte) func() []byte { return func() []byte { return content } }
	block := written(t, func(w io.Writer) error { return jpeg.Encode(w, image.NewGray(image.Rect(0, 0, 8, 8)), nil) })
	const pixels, data = "must have 1 to 100000000 pixels", "must have enough data"
	return []bomb{
		{"PNG of 65535x65535", fixed(zerosPNG(65535, 65535, 8, 0, 0, 0, 0)), pixels, 1, false},
		{"PNG header, 16 bits", fixed(zerosPNG(9999, 9999, 16, 6, 0, 0, 0)), "must have 1 to 50000000 pixels of 16 bits per channel", 1, false},
		{"PNG header", fixed(zerosPNG(7000, 7000, 16, 6, 0, 0, 0)), data, 1, false},
		{"PNG header, interlaced", fixed(zerosPNG(7000, 7000, 16, 6, 1, 0, 0)), data, 1, false},
		{"PNG of zeros", func() []byte { return zerosPNG(4000, 4000, 16, 6, 0, 4000, 0) }, "", 140, true},
		{"PNG of zeros of one bit", func() []byte { return zerosPNG(9999, 9999, 1, 3, 0, 9999, 0) }, "", 110, true},
		{"PNG with more behind the pixels", func() []byte { return zerosPNG(28, 28, 8, 0, 0, 28, 50<<20) }, "too much pixel data", 1, false},
		{"PNG with a compressed text", func() []byte {
			return insertPNG(zerosPNG(28, 28, 8, 0, 0, 28, 0), "IDAT", pngChunk("zTXt", append([]byte("a\x00\x00"), deflated(make([]byte, 50<<20))...)))
		}, "", 1, false},
		{"PNG of empty chunks", func() []byte {
			return insertPNG(encodedTiny(), "IDAT", bytes.Repeat(pngChunk("teXt", nil), 200_000))
		}, "", 1, false},
		{"PNG with a long EXIF block", fixed(insertPNG(encodedTiny(), "IDAT", []byte("\x7f\xff\xff\xffeXIf"))), "PNG", 1, false},

		{"JPEG of 65500x65500", fixed(jpegHeader(65500, 65500, jpegSOF0)), pixels, 1, false},
		{"JPEG header", fixed(jpegHeader(9999, 9999, jpegSOF0)), data, 1, false},
		{"JPEG header, progressive", fixed(jpegHeader(9999, 9999, jpegSOF2)), data, 1, false},
		{"JPEG of 50 scans", func() []byte { return progressiveJPEG(5000, 5000, 50) }, "", 125, true},
		{"JPEG of 2000 scans", func() []byte { return progressiveJPEG(5000, 5000, 2000) }, "at most 100 scans", 1, false},
		{"JPEG of 300 000 scans of a block", func() []byte { return progressiveJPEG(8, 8, 300_000) }, "at most 100 scans", 1, false},
		{"JPEG of empty segments", func() []byte {
			return insertJPEG(block, bytes.Repeat(jpegSegment(0xfe), 200_000))
		}, "", 2, false},
		{"JPEG of other bytes before a segment", func() []byte {
			return insertJPEG(block, make([]byte, 4<<20))
		}, "", 2, false},

		{"GIF of 65535x65535", fixed(gifHeader(65535, 65535, true)), pixels, 1, false},
		{"GIF header", fixed(gifHeader(9999, 9999, true)), data, 1, false},
		{"GIF of a pixel on a large canvas", fixed(gifHeader(9999, 9999, false)), "", 1, true},
		{"GIF of 20 000 frames", func() []byte {
			return append(gifHeader(400, 400, false), bytes.Repeat([]byte{0x2c, 0, 0, 0, 0, 1, 0, 1, 0, 0, 2, 2, 0x44, 1, 0}, 20_000)...)
		}, "", 1, false},
		{"GIF of comments", func() []byte { return gifHeader(4, 4, false, bytes.Repeat([]byte{0x21, 0xfe, 1, 0, 0}, 200_000)) }, "", 1, false},

		{"BMP of 65535x65535", fixed(bmpHeader(65535, 65535, 24)), pixels, 1, false},
		{"BMP of minus 2^31 rows", fixed(bmpHeader(100, -1<<31, 24)), pixels, 1, false},
		{"BMP of 2^31 x 2^31", fixed(bmpHeader(1<<31-1, 1<<31-1, 24)), "BMP: unsupported BMP image", 1, false},
		{"BMP header", fixed(bmpHeader(9999, 9999, 24)), "must have 299970000 bytes of pixels for 9999x9999 pixels of 24 bits, got 0", 1, false},
		{"BMP with pixels beyond its palette", func() []byte {
			b := bmpHeader(8, 8, 8)
			b[10], b[46] = 62, 2
			return slices.Concat(b, make([]byte, 8), bytes.Repeat([]byte{255}, 64))
		}, "BMP: invalid palette index", 1, false},

		{"WebP of 16384x16384", fixed(webpOf(0, 16384, 16384, true, "")), pixels, 1, false},
		{"WebP of 65536 groups without trees", fixed(huffmanGroups(false, false)), "WebP: vp8l", 2, false},
		{"WebP of 65536 groups of trees", func() []byte { return huffmanGroups(true, false) }, "WebP: vp8l", 2, false},
		{"WebP of 65536 groups of long trees", func() []byte { return huffmanGroups(true, true) }, "WebP: vp8l", 2, false},
		{"WebP whose frame is larger than its canvas", fixed(webpOf(1, 16383, 6000, true, "")), "canvas and frame must have the same size", 1, false},
		{"WebP animation of 2^24 x 2^24", fixed(webpFile(webpChunk("VP8X", []byte("\x02\x00\x00\x00\xff\xff\xff\xff\xff\xff")),
			webpChunk("ANMF", make([]byte, 16), losslessWebP(quarter(1, 1))))), pixels, 1, false},
		{"WebP of empty chunks", func() []byte {
			return webpFile(webpCanvas(0, 24, 16), bytes.Repeat(webpChunk("odd "), 200_000), losslessWebP(quarter(24, 16)))
		}, "", 3, false},

		{"TIFF with a directory at 4 GB", fixed([]byte("II*\x00\xf0\xff\xff\xff")), "offset 4294967280: TIFF directory", 1, false},
		{"TIFF header", fixed(hugeTIFF(nil)), data, 1, false},
		{"TIFF of 2^32 x 2^32", fixed(hugeTIFF(map[uint16][]uint32{256: {1<<32 - 1}, 257: {1<<32 - 1}})), "TIFF", 1, false},
		{"TIFF of CMYK, 2^32 x 2^32", fixed(hugeTIFF(map[uint16][]uint32{256: {1<<32 - 1}, 257: {1<<32 - 1},
			258: {8, 8, 8, 8}, 262: {5}, 277: {4}})), pixels, 1, false},
		{"TIFF header, CMYK", fixed(hugeTIFF(map[uint16][]uint32{258: {16, 16, 16, 16}, 262: {5}, 277: {4}})), data, 1, false},
		{"TIFF header, planes", fixed(hugeTIFF(map[uint16][]uint32{258: {16, 16, 16}, 262: {2}, 277: {3}, 284: {2}})), data, 1, false},
		{"TIFF of 65535 samples", fixed(hugeTIFF(map[uint16][]uint32{258: {8, 8}, 277: {65535}})), "got 65535: keep the colours only", 1, false},
		{"TIFF of a strip longer than the file", fixed(hugeTIFF(map[uint16][]uint32{279: {1<<32 - 1}})), "strips or tiles must have at most", 1, false},
		{"TIFF in a tile of 60000x60000", fixed(hugeTIFF(map[uint16][]uint32{256: {1}, 257: {1}, 322: {60000}, 323: {60000}, 324: {8}, 325: {50}})),
			"tiles must not be much larger than the image", 1, false},
		{"TIFF in padded tiles", fixed(hugeTIFF(map[uint16][]uint32{256: {1}, 257: {1 << 20}, 322: {1024}, 323: {8}, 324: {8}, 325: {1}})),
			"tiles must not have many more pixels than the image", 1, false},
		{"TIFF of zeros in a strip of 64 times its size", func() []byte { return packBits(1<<20, 1) }, "decompressed data too large", 1, false},
		{"TIFF of rows that share their bytes", func() []byte { return packBits(1<<20, 64) }, "strips or tiles must have at most", 1, false},
		{"TIFF of strips of a pixel", func() []byte { return manyStrips(100_000) }, "must have at most 65536 strips or tiles, got 100000", 1, false},

		{"PPM of 65535x65535", fixed([]byte("P6 65535 65535 255\n")), "must have at most 100000000 pixels", 1, false},
		{"PPM header", fixed([]byte("P6 9999 9999 255\n")), "got 0 of 299940003 values", 1, false},
		{"PPM header, digits", fixed([]byte("P3 9999 9999 65535\n0 0 ")), "value 2 of 299940003", 1, false},
		{"PGM of white space", func() []byte { return []byte("P2 " + strings.Repeat(" ", 4<<20)) }, "unexpected EOF", 1, false},
	}
}

// Every bomb is decoded, or is an error that names the problem, in bounded time and memory. Most
// of the memory is for pixels. There is a bomb for each format.
func TestBombs(t *testing.T) {
	formats := map[string]int{}
	for _, b := range bombs(t) {
		format, _, _ := strings.Cut(b.name, " ")
		formats[format]++
		t.Run(b.name, func(t *testing.T) {
			if b.slow {
				testenv.NeedsAll(t, fmt.Sprintf("decodes an image of %d MiB", b.memory))
			}
			content := b.content()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // on a busy machine
			defer cancel()
			var m Info
			var measureErr, err error
			used := testenv.Allocated(func() {
				m, measureErr = Inspect(content)
				_, err = Decode(ctx, content, 3, 28, 28, false)
			})
			t.Logf("%d bytes: %.1f MiB, Measure %.1f MiB: %v", len(content), float64(used)/(1<<20), float64(m.Memory)/(1<<20), err)
			if b.want == "" && (err != nil || measureErr != nil) {
				t.Errorf("%v, %v", err, measureErr)
			}
			if b.want != "" {
				wantError(t, err, b.want)
			}
			if bound := b.memory<<20 + 1<<18 + 2*len(content); used > uint64(bound) {
				t.Errorf("%d bytes allocated, want at most %d", used, bound)
			}
		})
	}
	for _, format := range imageFormats {
		if n := formats[format.name] + formats[map[string]string{"netpbm": "PPM"}[format.name]]; n < 3 {
			t.Errorf("bombs has %d images of %s, want at least 3", n, format.name)
		}
	}
}
