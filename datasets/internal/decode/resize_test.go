package decode

import (
	"bytes"
	"image"
	"testing"

	"golang.org/x/image/draw"
)

// noisePicture returns an opaque picture of random colours on a gradient.
func noisePicture(seed uint64, width, height int) *image.RGBA {
	img, noise := image.NewRGBA(image.Rect(0, 0, width, height)), randomBytes(seed, 3*width*height)
	for i := range width * height {
		for c := range 3 {
			img.Pix[4*i+c] = byte((int(noise[3*i+c]) + 255*(i%width)/width) / 2)
		}
		img.Pix[4*i+3] = 255
	}
	return img
}

// rowsOf returns the rows of a plane.
func rowsOf(plane []byte, width int) func(y int) []byte {
	return func(y int) []byte { return plane[y*width:][:width] }
}

// Pictures are resized as by golang.org/x/image/draw, up to rounding.
func TestResize(t *testing.T) {
	for _, size := range [][4]int{
		{32, 32, 32, 32}, {64, 64, 32, 32}, {100, 77, 32, 31}, {33, 400, 64, 64}, {9, 5, 17, 40}, {1, 1, 3, 2}, {257, 31, 31, 1}, {40, 33, 33, 40},
	} {
		height, width, toHeight, toWidth := size[0], size[1], size[2], size[3]
		img := noisePicture(1, width, height)
		want := image.NewRGBA(image.Rect(0, 0, toWidth, toHeight))
		draw.CatmullRom.Scale(want, want.Rect, img, img.Rect, draw.Src, nil)
		var r Resizer
		got, plane := make([]byte, 3*toHeight*toWidth), toHeight*toWidth
		r.colour(got, 3, toHeight, toWidth, height, width, func(y int) []byte { return img.Pix[y*img.Stride:][:img.Stride] })
		worst := 0
		for i := range plane {
			for c := range 3 {
				difference := int(got[c*plane+i]) - int(want.Pix[4*i+c])
				worst = max(worst, difference, -difference)
			}
		}
		if worst > 1 {
			t.Errorf("%v: a value is %d away from that of golang.org/x/image/draw, want at most 1", size, worst)
		}
		// A plane resized on its own gives the same.
		red, one := make([]byte, height*width), make([]byte, plane)
		for i := range red {
			red[i] = img.Pix[4*i]
		}
		r.Grey(one, toHeight, toWidth, height, width, rowsOf(red, width))
		if !bytes.Equal(one, got[:plane]) {
			t.Errorf("%v: a plane on its own gives other bytes", size)
		}
	}
}

// A uniform colour is kept, and resizing to the same size changes nothing.
func TestResizeKeeps(t *testing.T) {
	var r Resizer
	for _, value := range []byte{0, 1, 127, 254, 255} {
		from, to := bytes.Repeat([]byte{value}, 37*91), make([]byte, 32*31)
		r.Grey(to, 32, 31, 37, 91, rowsOf(from, 91))
		if want := bytes.Repeat([]byte{value}, 32*31); !bytes.Equal(to, want) {
			t.Errorf("an even plane of %d becomes % d", value, to[:9])
		}
	}
	from, to := randomBytes(5, 31*33), make([]byte, 31*33)
	if r.Grey(to, 31, 33, 31, 33, rowsOf(from, 33)); !bytes.Equal(to, from) {
		t.Error("the same size changes values")
	}
}

func TestCentre(t *testing.T) {
	if h, w := centre(30, 40, 10, 20); h != 20 || w != 40 {
		t.Errorf("the centre of 30x40 for 10x20 is %dx%d, want 20x40", h, w)
	}
}
