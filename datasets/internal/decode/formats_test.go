package decode

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"io"
	"slices"
	"testing"
)

// turned are pictures of quarter(24, 16), stored with an orientation, in each format and place.
func turned(t testing.TB, orientation uint16) map[string][]byte {
	img := quarter(24, 16)
	plain := encoded(t, img)
	photo := written(t, func(w io.Writer) error { return jpeg.Encode(w, img, &jpeg.Options{Quality: 100}) })
	block := exifBlock(orientation)
	named := append([]byte("Exif\x00\x00"), block...)
	exif := pngChunk("eXIf", block)
	app1 := jpegSegment(jpegAPP1, named)
	withOpacity := image.NewGray(image.Rect(0, 0, 48, 16)) // which golang.org/x/image/tiff does not read
	for i, value := range img.Pix {
		withOpacity.Pix[2*i], withOpacity.Pix[2*i+1] = value, 255
	}
	tag := []uint32{uint32(orientation)}
	profile, comment := jpegSegment(0xe2, bytes.Repeat([]byte{0xff}, 65000)), jpegSegment(0xfe, make([]byte, 65533))
	return map[string][]byte{
		"PNG":                     insertPNG(plain, "IDAT", exif),
		"PNG, behind the pixels":  insertPNG(plain, "IEND", exif),
		"PNG, named":              insertPNG(plain, "IDAT", pngChunk("eXIf", named)),
		"JPEG":                    insertJPEG(photo, app1),
		"JPEG, after XMP":         insertJPEG(photo, jpegSegment(jpegAPP1, []byte("http://ns.adobe.com/xap/1.0/\x00<x/>")), app1),
		"JPEG, after a profile":   insertJPEG(photo, profile, profile, profile, app1),
		"JPEG, after comments":    insertJPEG(photo, comment, comment, comment, app1),
		"JPEG, after fill bytes":  insertJPEG(photo, []byte{0xff, 0xff, 0xff}, app1),
		"JPEG, after other bytes": insertJPEG(photo, []byte{0, 1, 0xff, 0, 2}, app1),
		"JPEG, after a restart":   insertJPEG(photo, []byte{0xff, jpegRST0}, app1),
		"WebP":                    webpFile(webpCanvas(8, 24, 16), losslessWebP(img), webpChunk("EXIF", block)),
		"WebP, named":             webpFile(webpCanvas(8, 24, 16), losslessWebP(img), webpChunk("XMP ", []byte("odd")), webpChunk("EXIF", named)),
		"TIFF":                    greyTIFF(img, map[uint16][]uint32{tagOrientation: tag}),
		"TIFF with opacity": greyTIFF(withOpacity, map[uint16][]uint32{tagOrientation: tag,
			tiffWidth: {24}, tiffSamples: {2}, tiffBits: {8, 8}, tiffExtra: {2}}),
	}
}

// Images of every format are turned upright, wherever the orientation is stored.
func TestOrientationInEveryFormat(t *testing.T) {
	// The bright quarter: upper left, upper right, lower right, lower left.
	for orientation, want := range []int{0, 0, 1, 2, 3, 0, 1, 2, 3, 0} {
		for name, content := range turned(t, uint16(orientation)) {
			got, err := Decode(t.Context(), content, 1, 4, 6, false)
			if err != nil {
				t.Fatal(name, err)
			}
			for corner, value := range []byte{got[0], got[5], got[23], got[18]} {
				if (corner == want) != (value > 128) {
					t.Errorf("%s, orientation %d: % d, want the bright corner %d", name, orientation, got, want)
					break
				}
			}
			info, err := NewDecoder().Probe(bytes.NewReader(content))
			if high := orientation > 4 && orientation < 9; err != nil || (info.Height == 24) != high || (info.Width == 16) != high {
				t.Errorf("%s, orientation %d: %dx%d, %v", name, orientation, info.Height, info.Width, err)
			}
		}
	}
	// A damaged block turns nothing.
	wrong := pngChunk("eXIf", exifBlock(6))
	wrong[len(wrong)-1]++
	for name, content := range map[string][]byte{
		"checksum": insertPNG(encoded(t, quarter(24, 16)), "IDAT", wrong),
		"cut":      insertPNG(encoded(t, quarter(24, 16)), "IDAT", pngChunk("eXIf", exifBlock(6)[:15])),
	} {
		if m, err := Inspect(content); err != nil || m.Height != 16 {
			t.Errorf("%s: %+v, %v", name, m, err)
		}
	}
}

// A GIF frame that is smaller than its canvas lies on white, or on nothing.
func TestGIFCanvas(t *testing.T) {
	palette := color.Palette{color.Black, color.Transparent}
	frame := image.NewPaletted(image.Rect(1, 2, 3, 3), palette)
	frame.Pix[1] = 1
	content := written(t, func(w io.Writer) error {
		return gif.EncodeAll(w, &gif.GIF{Image: []*image.Paletted{frame, image.NewPaletted(image.Rect(0, 0, 4, 3), palette)}, Delay: []int{1, 1},
			Config: image.Config{Width: 4, Height: 3}})
	})
	want := []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 0, 255, 255}
	got, err := Decode(t.Context(), content, 1, 3, 4, false)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("% d, %v, want % d", got, err, want)
	}
	if got, err = Decode(t.Context(), content, 4, 3, 4, false); err != nil || !bytes.Equal(got[36:], []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 0, 0}) {
		t.Errorf("opacity % d, %v", got, err)
	}
	if got := firstGIFFrame(content); got != frame.Rect {
		t.Errorf("the first frame is %v, want %v", got, frame.Rect)
	}
	content[6] = 2 // the canvas is narrower than the frame's right side
	_, err = Decode(t.Context(), content, 1, 3, 4, false)
	wantError(t, err, "GIF: frame bounds larger than image bounds")
}

// Of an animated WebP image, the first frame lies on its canvas.
func TestAnimatedWebP(t *testing.T) {
	img := image.NewGray(image.Rect(0, 0, 3, 2))
	img.Pix[1], img.Pix[5] = 255, 255 // green, of luminance 150
	want := []byte{
		255, 255, 255, 255, 255, 255,
		255, 255, 255, 255, 255, 255,
		255, 255, 0, 150, 0, 255,
		255, 255, 0, 0, 150, 255,
	}
	content := animatedWebP(6, 4, 2, 2, img)
	got, err := Decode(t.Context(), content, 1, 4, 6, false)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("% d, %v, want % d", got, err, want)
	}
	if got, err = Decode(t.Context(), content, 4, 4, 6, false); err != nil || got[72] != 0 || got[72+14] != 255 {
		t.Errorf("opacity %v, %v", got, err)
	}
	if m, err := Inspect(content); err != nil || m.Height != 4 || m.Width != 6 {
		t.Errorf("%+v, %v", m, err)
	}
	// A lossy frame with opacity, in which chroma has half the size.
	lossy, err := base64.StdEncoding.DecodeString(clearLossyWebP)
	if err != nil {
		t.Fatal(err)
	}
	frame := []byte{2, 0, 0, 1, 0, 0, 31, 0, 0, 15, 0, 0, 40, 0, 0, 0}
	content = webpFile(webpCanvas(2|16, 40, 20), webpChunk("ANIM", make([]byte, 6)), webpChunk("ANMF", frame, lossy[30:]))
	got, err = Decode(t.Context(), content, 3, 20, 40, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		y, x int
		want []byte
	}{{0, 0, []byte{255, 255, 255}}, {6, 8, []byte{255, 0, 0}}, {6, 30, []byte{0, 0, 255}}, {16, 8, []byte{255, 255, 255}}, {19, 39, []byte{255, 255, 255}}} {
		for channel, want := range c.want {
			if d := int(got[(channel*20+c.y)*40+c.x]) - int(want); d < -2 || d > 2 {
				t.Errorf("pixel (%d, %d) has %d in channel %d, want %d", c.y, c.x, got[(channel*20+c.y)*40+c.x], channel, want)
			}
		}
	}
	for want, content := range map[string][]byte{
		"the first frame must lie on the canvas of 4x4 pixels, got 2x3 at (2, 2)": animatedWebP(4, 4, 2, 2, img),
		"unexpected EOF": animatedWebP(6, 4, 2, 2, img)[:60],
		"must have frames if and only if it is animated": webpFile(webpCanvas(2, 3, 2), losslessWebP(img)),
	} {
		_, err := Decode(t.Context(), content, 1, 4, 6, false)
		wantError(t, err, "WebP: ", want)
	}
}

// Errors outside of the pixels of a PNG image are ignored, errors in the pixels are not.
func TestPNGErrorsOutsideOfPixels(t *testing.T) {
	img := noisePicture(4, 9, 7)
	content := encoded(t, img)
	end := len(content) - 12
	text := pngChunk("tEXt", []byte("a\x00b"))
	text[len(text)-1]++
	endSum, endName := slices.Clone(content), slices.Clone(content)
	endSum[len(content)-1]++
	endName[end+7]++
	for name, odd := range map[string][]byte{
		"a checksum of a text":       insertPNG(content, "IDAT", text),
		"one behind the pixels":      insertPNG(content, "IEND", text),
		"no end":                     content[:end],
		"a cut end":                  content[:end+5],
		"a checksum of the end":      endSum,
		"another name of the end":    endName,
		"a cut text behind":          slices.Concat(content[:end], text[:6]),
		"bytes behind":               append(slices.Clone(content), "junk"...),
		"a chunk that nobody knows":  insertPNG(content, "IDAT", pngChunk("abCd", []byte("odd"))),
		"an animation's other frame": insertPNG(content, "IEND", pngChunk("fdAT", content)),
	} {
		got, err := Decode(t.Context(), odd, 3, 7, 9, false)
		if err != nil || !bytes.Equal(got, planes(img)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	content[end-1]++ // of the pixels' checksum
	_, err := Decode(t.Context(), content, 3, 7, 9, false)
	wantError(t, err, "PNG: invalid format: invalid checksum")
	content[end-1]--
	for cut := range end - 4 { // no image without all pixels
		if _, err := Decode(t.Context(), content[:cut], 3, 7, 9, false); err == nil {
			t.Fatalf("cut at %d of %d: no error", cut, len(content))
		}
	}
}

// progressiveGrey is a progressive picture of Pillow's encoder, of 16x16 pixels, black on the left
// and white on the right, in ten scans. cmykJPEG is one in CMYK, of 16x8 pixels: cyan, and magenta
// with half of black.
const (
	progressiveGrey = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAA0JCgsKCA0LCgsODg0PEyAVExISEyccHhcgLikxMC4pLSwzOko+MzZGNywtQFdBRkxOUlNSMj5aYVpQYEpRUk//wgAL" +
		"CAAQABABAREA/8QAFQABAQAAAAAAAAAAAAAAAAAABwb/2gAIAQEAAAABl08wT//EABQQAQAAAAAAAAAAAAAAAAAAACD/2gAIAQEAAQUCH//EABQQAQAAAAAAAAAAAAAA" +
		"AAAAACD/2gAIAQEABj8CH//EABQQAQAAAAAAAAAAAAAAAAAAACD/2gAIAQEAAT8hH//aAAgBAQAAABCv/8QAFBABAAAAAAAAAAAAAAAAAAAAIP/aAAgBAQABPxAf/9k="
	cmykJPEG = "/9j/7gAOQWRvYmUAZAAAAAAA/9sAQwACAQEBAQECAQEBAgICAgIEAwICAgIFBAQDBAYFBgYGBQYGBgcJCAYHCQcGBggLCAkKCgoKCgYICwwLCgwJCgoK/8AAFAgA" +
		"CAAQBEMRAE0RAFkRAEsRAP/EABYAAQEBAAAAAAAAAAAAAAAAAAoJAP/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAOBEMATQBZAEsAAD8AP+v4v4v4f4AGw/7/2Q=="
)

// A JPEG image without its end is read if all scans are there.
func TestJPEGWithoutEnd(t *testing.T) {
	sequential := written(t, func(w io.Writer) error { return jpeg.Encode(w, noisePicture(5, 19, 23), nil) })
	progressive, err := base64.StdEncoding.DecodeString(progressiveGrey)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"sequential": sequential, "progressive": progressive} {
		want, err := Decode(t.Context(), content, 3, 23, 19, false)
		if err != nil {
			t.Fatal(err)
		}
		read := 0
		for cut := range content {
			got, err := Decode(t.Context(), content[:cut], 3, 23, 19, false)
			if err != nil {
				continue
			}
			read++
			if !bytes.Equal(got, want) {
				t.Errorf("%s: cut at %d of %d: another picture", name, cut, len(content))
			}
		}
		if _, err := Decode(t.Context(), content[:len(content)-2], 3, 23, 19, false); err != nil || read > 4 {
			t.Errorf("%s: without the end: %v; %d cuts are read", name, err, read)
		}
	}
}

// Four components without Adobe's segment are read as CMYK, as with it.
func TestCMYKWithoutAdobe(t *testing.T) {
	content, err := base64.StdEncoding.DecodeString(cmykJPEG)
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"with": content, "without": slices.Concat(content[:2], content[18:])} {
		got, err := Decode(t.Context(), content, 3, 8, 16, false)
		if err != nil {
			t.Fatal(name, err)
		}
		for x, want := range map[int][]byte{2: {0, 255, 255}, 13: {127, 0, 127}} {
			for c := range 3 {
				if d := int(got[c*128+64+x]) - int(want[c]); d < -3 || d > 3 {
					t.Errorf("%s: channel %d of column %d is %d, want %d", name, c, x, got[c*128+64+x], want[c])
				}
			}
		}
	}
}

// Features that image/jpeg does not read are named in the error, with advice.
func TestJPEGRefused(t *testing.T) {
	content := written(t, func(w io.Writer) error { return jpeg.Encode(w, noisePicture(5, 16, 16), nil) })
	at := bytes.Index(content, []byte{0xff, jpegSOF0}) + 4
	for _, c := range []struct {
		offset int
		value  byte
		want   string
	}{
		{7, 0x31, "luma/chroma subsampling ratio: save the image with 4:2:0 or 4:4:4 subsampling, or as PNG"},
		{13, 0x12, "luma/chroma subsampling ratio: save the image with"},
		{0, 12, "unsupported JPEG feature: precision: save the image as baseline or progressive JPEG with 8 bits, or as PNG"},
		{-3, 0xc3, "unsupported JPEG feature: unknown marker: save the image as"}, // lossless
		{-3, 0xc9, "unsupported JPEG feature: unknown marker: save the image as"}, // arithmetic
	} {
		odd := slices.Clone(content)
		odd[at+c.offset] = c.value
		_, err := Decode(t.Context(), odd, 3, 4, 4, false)
		wantError(t, err, "JPEG: ", c.want)
	}
}
