package report

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// A PNG file has the pixels that it was made of, rows that repeat included, and is no larger than
// package image/png's for drawings.
func TestPNGHasThePixels(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, size := range []image.Point{{1, 1}, {3, 1}, {1, 4}, {17, 9}, {300, 200}} {
		for repeats := 1; repeats <= size.Y; repeats += 3 {
			// A part of a larger image, whose stride is not the width.
			whole := image.NewRGBA(image.Rect(-2, -1, size.X+3, size.Y+1))
			for i := range whole.Pix {
				whole.Pix[i] = byte(r.Uint32())
				if i%4 == 3 {
					whole.Pix[i] = 255
				}
				if above := i - whole.Stride; above >= 0 && i/whole.Stride%repeats != 0 {
					whole.Pix[i] = whole.Pix[above]
				}
			}
			img := whole.SubImage(image.Rect(0, 0, size.X, size.Y)).(*image.RGBA)
			file, err := encodePNG(img)
			if err != nil {
				t.Fatal(err)
			}
			compareFile(t, file, img)
		}
	}
	for _, img := range []*image.RGBA{image.NewRGBA(image.Rect(0, 0, 2, 2)), image.NewRGBA(image.Rectangle{})} {
		if _, err := encodePNG(img); err == nil {
			t.Errorf("a transparent or empty image of %v pixels is no error", img.Rect)
		}
	}
}

// A figure's file has the pixels that gonum's canvas has, which copies its image first.
func TestPNGIsGonums(t *testing.T) {
	for name, f := range smallFigures(t) {
		canvas := vgimg.NewWith(vgimg.UseWH(f.width, f.height), vgimg.UseDPI(dotsPerInch), vgimg.UseBackgroundColor(color.White))
		f.drawOn(draw.New(canvas))
		file, err := f.PNG()
		if err != nil {
			t.Fatal(err)
		}
		img := canvas.Image().(*image.RGBA)
		compareFile(t, file, img)
		var usual bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&usual, img); err != nil {
			t.Fatal(err)
		}
		if len(file) > usual.Len() {
			t.Errorf("%s: %d bytes, by package image/png %d", name, len(file), usual.Len())
		}
	}
}

// compareFile reports a PNG file that has not the pixels of an image.
func compareFile(t *testing.T, file []byte, want *image.RGBA) {
	t.Helper()
	got, err := png.Decode(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if got.Bounds().Size() != want.Bounds().Size() {
		t.Fatalf("a file of %v pixels, want %v", got.Bounds().Size(), want.Bounds().Size())
	}
	for y := range want.Rect.Dy() {
		for x := range want.Rect.Dx() {
			g, w := color.RGBAModel.Convert(got.At(x, y)), want.RGBAAt(want.Rect.Min.X+x, want.Rect.Min.Y+y)
			if g != w {
				t.Fatalf("pixel %d, %d of %v is %v, want %v", x, y, want.Rect, g, w)
			}
		}
	}
}
