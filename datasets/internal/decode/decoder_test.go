package decode

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// written returns the bytes that an encoder writes.
func written(t testing.TB, encode func(w io.Writer) error) []byte {
	t.Helper()
	var buffer bytes.Buffer
	if err := encode(&buffer); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// planes returns the planes [3 H W] of a picture, rounded to bytes.
func planes(img image.Image) []byte {
	bounds := img.Bounds()
	plane := bounds.Dx() * bounds.Dy()
	values := make([]byte, 3*plane)
	for i := range plane {
		r, g, b, _ := img.At(bounds.Min.X+i%bounds.Dx(), bounds.Min.Y+i/bounds.Dx()).RGBA()
		values[i], values[plane+i], values[2*plane+i] = byte((r+128)/257), byte((g+128)/257), byte((b+128)/257)
	}
	return values
}

// Lossless formats give the bytes that went in.
func TestDecodeFormats(t *testing.T) {
	colours := noisePicture(2, 9, 7)
	grey := greyPicture(9, 7, 40)
	paletted := image.NewPaletted(image.Rect(0, 0, 9, 7), color.Palette{color.RGBA{9, 8, 7, 255}, color.RGBA{200, 100, 50, 255}})
	wide := image.NewRGBA64(image.Rect(0, 0, 9, 7))
	wideGrey := image.NewGray16(image.Rect(0, 0, 9, 7))
	for i := range paletted.Pix {
		paletted.Pix[i] = byte(i % 2)
		wide.Set(i%9, i/9, color.RGBA64{uint16(i * 900), uint16(i * 500), 65535, 65535})
		wideGrey.Set(i%9, i/9, color.Gray16{uint16(i * 1000)})
	}
	ppm := append([]byte("P6\n# a comment\n9 7 255\n"), interleaved(colours)...)
	for _, test := range []struct {
		name    string
		img     image.Image
		content []byte
	}{
		{"PNG", colours, encoded(t, colours)},
		{"PNG grey", grey, encoded(t, grey)},
		{"PNG palette", paletted, encoded(t, paletted)},
		{"PNG 16 bit", wide, encoded(t, wide)},
		{"PNG grey 16 bit", wideGrey, encoded(t, wideGrey)},
		{"GIF", paletted, written(t, func(w io.Writer) error { return gif.Encode(w, paletted, nil) })},
		{"BMP", colours, written(t, func(w io.Writer) error { return bmp.Encode(w, colours) })},
		{"TIFF", colours, written(t, func(w io.Writer) error {
			return tiff.Encode(w, colours, &tiff.Options{Compression: tiff.Deflate})
		})},
		{"PPM", colours, ppm},
	} {
		got, err := Decode(t.Context(), test.content, 3, 7, 9, false)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if want := planes(test.img); !bytes.Equal(got, want) {
			t.Errorf("%s: got % d ..., want % d", test.name, got[:9], want[:9])
		}
	}
	content := written(t, func(w io.Writer) error { return jpeg.Encode(w, colourPicture(9, 7, color.RGBA{200, 90, 10, 255}), nil) })
	got, err := Decode(t.Context(), content, 3, 7, 9, false)
	if err != nil || got[30] < 195 || got[30] > 205 || got[63+30] < 85 || got[63+30] > 95 {
		t.Errorf("JPEG: % d, %v", got[:9], err)
	}
}

// interleaved returns the values [H W 3] of a picture.
func interleaved(img *image.RGBA) []byte {
	var values []byte
	for i := range len(img.Pix) / 4 {
		values = append(values, img.Pix[4*i:4*i+3]...)
	}
	return values
}

// tinyWebP is a lossless WebP picture of 1x1 pixels: there is no encoder to make one.
const tinyWebP = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="

func TestDecodeWebP(t *testing.T) {
	content, err := base64.StdEncoding.DecodeString(tinyWebP)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Decode(t.Context(), content, 4, 1, 1, false)
	if err != nil || !slices.Equal(got, []byte{0, 0, 0, 0}) {
		t.Errorf("a clear pixel is % d, %v", got, err)
	}
	if got, err = Decode(t.Context(), content, 1, 2, 1, false); err != nil || !slices.Equal(got, []byte{255, 255}) {
		t.Errorf("a clear pixel over white is % d, %v", got, err)
	}
}

func TestDecodeChannels(t *testing.T) {
	half := image.NewNRGBA(image.Rect(0, 0, 2, 1))
	half.Set(0, 0, color.NRGBA{100, 150, 200, 128})
	half.Set(1, 0, color.NRGBA{100, 150, 200, 255})
	content := encoded(t, half)
	for channels, want := range map[int][]byte{
		1: {198, 141}, // .299 R + .587 G + .114 B
		3: {177, 100, 202, 150, 227, 200},
		4: {100, 100, 149, 150, 199, 200, 128, 255},
	} {
		got, err := Decode(t.Context(), content, channels, 1, 2, false)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if difference := int(got[i]) - int(want[i]); difference < -1 || difference > 1 {
				t.Errorf("%d channels: % d, want % d", channels, got, want)
				break
			}
		}
	}
	got, err := Decode(t.Context(), encoded(t, greyPicture(2, 1, 7)), 4, 1, 2, false)
	if err != nil || !slices.Equal(got, []byte{7, 8, 7, 8, 7, 8, 255, 255}) {
		t.Errorf("grey in four channels: % d, %v", got, err)
	}
}

func encodedTiny() []byte {
	var buffer bytes.Buffer
	_ = png.Encode(&buffer, image.NewGray(image.Rect(0, 0, 1, 1)))
	return buffer.Bytes()
}

// A header may promise gigabytes; memory is allocated only for the data that exist.
func TestDecodeHostileTIFF(t *testing.T) {
	content := written(t, func(w io.Writer) error { return tiff.Encode(w, noisePicture(1, 5, 4), nil) })
	binary.LittleEndian.PutUint32(content[4:], 0xfffffff0) // where the directory is
	var err error
	used := testenv.Allocated(func() { _, err = Decode(t.Context(), content, 3, 4, 4, false) })
	wantError(t, err, "TIFF: ")
	if used > 1<<22 {
		t.Errorf("decoding allocated %d bytes, want at most %d", used, 1<<22)
	}
}

// The header of a TIFF cannot make a strip or a tile larger than the picture.
func TestBoundedTIFF(t *testing.T) {
	img := noisePicture(1, 5, 4)
	content := written(t, func(w io.Writer) error {
		return tiff.Encode(w, img, &tiff.Options{Compression: tiff.Deflate})
	})
	at := tiffEntryAt(t, content, tiffRowsPerStrip)
	binary.LittleEndian.PutUint16(content[at+2:], 4)
	binary.LittleEndian.PutUint32(content[at+8:], 0xffffffff)
	if got, err := Decode(t.Context(), content, 3, 4, 5, false); err != nil || !bytes.Equal(got, planes(img)) {
		t.Error("one strip of any height: ", err)
	}
}

// tiffEntryAt returns the offset of a tag's entry in a little-endian TIFF.
func tiffEntryAt(t *testing.T, content []byte, tag uint16) int {
	t.Helper()
	from := int(binary.LittleEndian.Uint32(content[4:]))
	for at := from + 2; at+12 <= len(content); at += 12 {
		if binary.LittleEndian.Uint16(content[at:]) == tag {
			return at
		}
	}
	t.Fatalf("no tag %d", tag)
	return 0
}

// withOrientation puts an EXIF block with an orientation into a JPEG.
func withOrientation(content []byte, orientation byte, order binary.AppendByteOrder) []byte {
	block := []byte("Exif\x00\x00II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		block = []byte("Exif\x00\x00MM\x00*")
	}
	block = order.AppendUint32(block, 8)
	block = order.AppendUint16(block, 2)
	for _, tag := range [][2]uint16{{0x0100, 3}, {0x0112, uint16(orientation)}} {
		block = order.AppendUint16(order.AppendUint16(block, tag[0]), 3)
		block = order.AppendUint16(order.AppendUint32(block, 1), tag[1])
		block = append(block, 0, 0)
	}
	header := binary.BigEndian.AppendUint16([]byte{0xff, 0xe1}, uint16(len(block)+2))
	return slices.Concat(content[:2], header, block, content[2:])
}

// A picture whose bright corner shows its orientation is turned upright.
func TestOrientation(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 24, 16))
	for y := range 8 {
		for x := range 12 {
			img.Pix[y*24+x] = 255 // the upper left quarter
		}
	}
	content := written(t, func(w io.Writer) error { return jpeg.Encode(w, img, &jpeg.Options{Quality: 100}) })
	// The bright quarter by orientation: upper left, upper right, lower right, lower left.
	for orientation, want := range []int{1: 0, 2: 1, 3: 2, 4: 3, 5: 0, 6: 1, 7: 2, 8: 3, 9: 0} {
		if orientation == 0 {
			continue
		}
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			turned := withOrientation(content, byte(orientation), order)
			got, err := Decode(t.Context(), turned, 1, 4, 6, false)
			if err != nil {
				t.Fatal(err)
			}
			corners := []byte{got[0], got[5], got[23], got[18]}
			for corner, value := range corners {
				if (corner == want) != (value > 128) {
					t.Errorf("orientation %d: corners % d, want the bright one at %d", orientation, corners, want)
					break
				}
			}
			info, err := NewDecoder().Probe(bytes.NewReader(turned))
			if high := orientation > 4 && orientation < 9; err != nil || (info.Height == 24) != high || (info.Width == 16) != high {
				t.Errorf("orientation %d: %dx%d, %v", orientation, info.Height, info.Width, err)
			}
		}
	}
	// Unreadable blocks turn nothing.
	for cut := 2; cut < 60; cut++ {
		if got := jpegOrientation(bytes.NewReader(withOrientation(content, 6, binary.LittleEndian)[:cut])); got != 1 && got != 6 {
			t.Errorf("cut at %d: orientation %d", cut, got)
		}
	}
}

func TestNetpbm(t *testing.T) {
	for content, want := range map[string][]byte{
		"P2 3 1 255 0 7 255":                        {0, 7, 255},
		"P2\n# made by hand\n3 1\n15\n0 7\n# x\n15": {0, 119, 255},
		"P5 3 1 255\n\x00\x07\xff":                  {0, 7, 255},
		"P5 3 1 65535\n\x00\x00\x80\x00\xff\xff":    {0, 128, 255},
		"P5 3 1 65535\n\x00\x80\x00\x81\x7f\x7f":    {0, 1, 127}, // the nearest, not the higher bits
		"P3 1 1 10 0 5 10":                          {0, 128, 255},
		"P6 1 1 1\n\x00\x01\x00":                    {0, 255, 0},
	} {
		channels, width := 1, 3
		if content[1] == '3' || content[1] == '6' {
			channels, width = 3, 1
		}
		got, err := Decode(t.Context(), []byte(content), channels, 1, width, false)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: % d, %v, want % d", content, got, err, want)
		}
	}
	for content, want := range map[string]string{
		"P1 1 1 0":             imageWanted + ", got PBM: convert it to PNG or JPEG",
		"P2 3":                 "netpbm: height: must be a number: unexpected EOF",
		"P2 0 1 255 0":         "netpbm: width must be at least 1, got 0",
		"P2 x":                 "netpbm: width: must be a number, got byte 'x'",
		"P2 3 1 70000 0 0 0":   "netpbm: largest value: number must be at most 65535, got 70000...",
		"P2 3 1 255 0 256 0":   "netpbm: value 1 of 3: must be at most 255, got 256",
		"P5 3 1 255\n\x00\x00": "netpbm: got 2 of 3 values: unexpected EOF",
		"P6 1 1 300\n\x00\x00": "netpbm: value 1 of 3: unexpected EOF",
		"P3 9999 9999 255\n":   "netpbm: value 0 of 299940003: must be a number: unexpected EOF",
	} {
		_, err := Decode(t.Context(), []byte(content), 3, 1, 1, false)
		wantError(t, err, want)
	}
}
