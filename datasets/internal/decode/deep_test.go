package decode

import (
	"bytes"
	"encoding/binary"
	"image"
	"image/color"
	"strings"
	"testing"
)

// deepCopy returns a picture with 16 bits per channel, of the same colours.
func deepCopy(img *image.RGBA) *image.RGBA64 {
	deep := image.NewRGBA64(img.Rect)
	for y := range img.Rect.Dy() {
		for x := range img.Rect.Dx() {
			deep.Set(x, y, img.At(x, y))
		}
	}
	return deep
}

// Images of 16 bits are scaled in 16 bits and rounded once.
func TestDeepImagesAreScaledFromTheirDepth(t *testing.T) {
	img := noisePicture(3, 40, 30)
	shallow, deep := encoded(t, img), encoded(t, deepCopy(img))
	for _, channels := range []int{1, 3, 4} {
		for _, side := range []int{1, 7, 40, 61} {
			want, err := Decode(t.Context(), shallow, channels, side, side, false)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Decode(t.Context(), deep, channels, side, side, false)
			if err != nil {
				t.Fatal(err)
			}
			for i := range want {
				if d := int(got[i]) - int(want[i]); d < -1 || d > 1 {
					t.Fatalf("%d channels of %dx%d: byte %d is %d, in 8 bits %d", channels, side, side, i, got[i], want[i])
				}
			}
		}
	}
	// Truncated to bytes first, this would be 126.
	grey := image.NewGray16(image.Rect(0, 0, 10, 10))
	for i := range 100 {
		grey.Set(i%10, i/10, color.Gray16{Y: 32613}) // 126.9 of 255
	}
	got, err := Decode(t.Context(), encoded(t, grey), 1, 1, 1, false)
	if err != nil || got[0] != 127 {
		t.Errorf("126.9 becomes % d, %v, want 127", got, err)
	}
}

// With fewer significant bits, values are stretched: an image of 12 bits has the bytes of the same
// image in 16. The opacity is not stretched, and larger values are read as the largest.
func TestBits(t *testing.T) {
	few, all := image.NewGray16(image.Rect(0, 0, 8, 8)), image.NewGray16(image.Rect(0, 0, 8, 8))
	fewColours, allColours := image.NewNRGBA64(few.Rect), image.NewNRGBA64(few.Rect)
	for i := range 64 {
		v, wide := uint16(65*i), uint16((65*i*65535+2047)/4095)
		few.Set(i%8, i/8, color.Gray16{Y: v})
		all.Set(i%8, i/8, color.Gray16{Y: wide})
		fewColours.Set(i%8, i/8, color.NRGBA64{R: v, G: 4095, B: 0, A: 40000})
		allColours.Set(i%8, i/8, color.NRGBA64{R: wide, G: 65535, B: 0, A: 40000})
	}
	for _, channels := range []int{1, 3, 4} {
		for _, images := range [][2]image.Image{{few, all}, {fewColours, allColours}} {
			got, err := DecodeBits(t.Context(), encoded(t, images[0]), channels, 8, 8, false, 12)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Decode(t.Context(), encoded(t, images[1]), channels, 8, 8, false)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%T in %d channels: % d, want % d (%v)", images[0], channels, got, want, err)
			}
		}
	}
	d, pixel := NewDecoder(), make([]byte, 64)
	const white = "photos: images with 16 bits per channel (1) have values above 2047, the largest of 11 bits, which are read as 2047"
	for bits, want := range map[int]string{12: "", 11: white} {
		d.SetBits(bits)
		if err := d.Decode(t.Context(), pixel, encoded(t, few), 1, 8, 8); err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, remark := range Remarks("photos", []string{"a"}, []int{0}, []Notes{d.last}, bits) {
			got += remark.Text
			if remark.FewValues {
				t.Errorf("%d bits: the remark %q is about few values", bits, remark.Text)
			}
		}
		if got != want || bits == 11 && pixel[63] != 255 {
			t.Errorf("%d bits: %q and %d, want %q", bits, got, pixel[63], want)
		}
	}
	if err := d.Decode(t.Context(), pixel, encoded(t, noisePicture(1, 8, 8)), 1, 8, 8); err != nil {
		t.Fatal(err)
	}
	if got := Remarks("photos", []string{"a"}, []int{0}, []Notes{d.last}, 12); len(got) != 1 || !strings.Contains(got[0].Text, "bits has no effect") {
		t.Errorf("8 bits: %+v", got)
	}
}

// In a TIFF file whose value 0 is white, the largest value of the significant bits is black, or
// 65535 if all values are close to it. The range has values of few bits in both cases.
func TestBitsOfWhiteIsZero(t *testing.T) {
	content := func(photometric, black uint16) []byte {
		var data []byte
		for i := range uint16(64) {
			value := 65 * i
			if photometric == tiffWhiteIsZero {
				value = black - value
			}
			data = binary.LittleEndian.AppendUint16(data, value)
		}
		return tiffTags(data, map[uint16][]uint32{tiffWidth: {8}, tiffHeight: {8}, tiffBits: {16}, tiffCompression: {1}, tiffPhotometric: {uint32(photometric)},
			tiffStrips: {8}, tiffSamples: {1}, tiffRowsPerStrip: {8}, tiffStripBytes: {128}})
	}
	for _, c := range []struct {
		bits  int
		black uint16
	}{{0, 65535}, {12, 4095}, {12, 65535}} {
		want, err := DecodeBits(t.Context(), content(tiffBlackIsZero, 0), 1, 8, 8, false, c.bits)
		if err != nil {
			t.Fatal(err)
		}
		got, err := DecodeBits(t.Context(), content(tiffWhiteIsZero, c.black), 1, 8, 8, false, c.bits)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%d bits, black is %d: % d, want % d (%v)", c.bits, c.black, got, want, err)
		}
	}
	d := NewDecoder()
	for _, black := range []uint16{4095, 65535} {
		err := d.Decode(t.Context(), make([]byte, 64), content(tiffWhiteIsZero, black), 1, 8, 8)
		if err != nil || d.last.deep != (valueRange{1, 0, 4095, false}) {
			t.Errorf("black is %d: range %+v, want 0 to 4095 (%v)", black, d.last.deep, err)
		}
	}
}

// The decoder has the range of 16-bit values, from which a remark can be made.
func TestDeepRange(t *testing.T) {
	grey := image.NewGray16(image.Rect(0, 0, 9, 7))
	colours := image.NewNRGBA64(grey.Rect)
	for i := range 63 {
		grey.Set(i%9, i/9, color.Gray16{Y: uint16(40 + i)})
		colours.Set(i%9, i/9, color.NRGBA64{R: uint16(300 + i), G: 4000, B: 50, A: 65535})
	}
	d := NewDecoder()
	var all valueRange
	for _, c := range []struct {
		img      image.Image
		channels int
		want     valueRange
	}{
		{grey, 1, valueRange{1, 40, 102, false}},
		{grey, 3, valueRange{1, 40, 102, false}},
		{colours, 1, valueRange{1, 50, 4000, false}},
		{colours, 3, valueRange{1, 50, 4000, false}},
		{colours, 4, valueRange{1, 50, 4000, false}},
		{noisePicture(1, 5, 5), 3, valueRange{}},
	} {
		if err := d.Decode(t.Context(), make([]byte, c.channels*8*8), encoded(t, c.img), c.channels, 8, 8); err != nil {
			t.Fatal(err)
		}
		if d.last.deep != c.want {
			t.Errorf("%T in %d channels: %+v, want %+v", c.img, c.channels, d.last.deep, c.want)
		}
		all.add(d.last.deep)
	}
	if want := (valueRange{5, 40, 4000, false}); all != want {
		t.Errorf("together %+v, want %+v", all, want)
	}
}
