package decode

import (
	"image"
	"image/color"
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
		{grey, 1, valueRange{1, 40, 102}},
		{grey, 3, valueRange{1, 40, 102}},
		{colours, 1, valueRange{1, 50, 4000}},
		{colours, 3, valueRange{1, 50, 4000}},
		{colours, 4, valueRange{1, 50, 4000}},
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
	if want := (valueRange{5, 40, 4000}); all != want {
		t.Errorf("together %+v, want %+v", all, want)
	}
}
