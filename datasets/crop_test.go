package datasets

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"testing"
)

// TestCrop: a wide image with dark borders left and right, and a tall one with borders at the top
// and the bottom, are scaled without the borders if they are cropped, and with them otherwise. One
// decoder handles both kinds in turn.
func TestCrop(t *testing.T) {
	for _, bounds := range []image.Rectangle{image.Rect(0, 0, 60, 20), image.Rect(0, 0, 20, 60)} {
		img := image.NewRGBA(bounds)
		for y := range bounds.Dy() {
			for x := range bounds.Dx() {
				img.Set(x, y, color.RGBA{A: 255})
				if max(bounds.Dx(), bounds.Dy()) == 60 && x+y >= 0 && (bounds.Dx() == 20 || x >= 20 && x < 40) && (bounds.Dy() == 20 || y >= 20 && y < 40) {
					img.Set(x, y, color.RGBA{R: 200, G: 100, B: 50, A: 255})
				}
			}
		}
		var file bytes.Buffer
		if err := png.Encode(&file, img); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			cropped, err := Decode(context.Background(), file.Bytes(), Options{Channels: 3, Height: 8, Width: 8, Crop: true})
			if err != nil {
				t.Fatal(err)
			}
			whole, err := Decode(context.Background(), file.Bytes(), Options{Channels: 3, Height: 8, Width: 8})
			if err != nil {
				t.Fatal(err)
			}
			dark := 0
			for i, v := range cropped {
				if want := []byte{200, 100, 50}[i/64]; v != want {
					t.Fatalf("%v, cropped: value %d is %d, want %d", bounds, i, v, want)
				}
				if whole[i] < 10 {
					dark++
				}
			}
			if dark < 3*64/2 {
				t.Errorf("%v: of the whole image %d values are dark, want more than half", bounds, dark)
			}
		}
	}
}
