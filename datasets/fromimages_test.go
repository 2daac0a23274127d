package datasets

import (
	"bytes"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"slices"
	"strings"
	"testing"
)

// gradientImage returns an image with a colour gradient, partly transparent.
func gradientImage(height, width int) *image.NRGBA {
	img := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			img.SetNRGBA(x, y, color.NRGBA{byte(7 * x), byte(11 * y), byte(x * y), byte(255 - x)})
		}
	}
	return img
}

// TestPixels: an image in memory gives the bytes of its file, whatever Go's type for it, with and
// without cropping.
func TestPixels(t *testing.T) {
	grey, deep := image.NewGray(image.Rect(0, 0, 31, 20)), image.NewGray16(image.Rect(0, 0, 31, 20))
	for i := range grey.Pix {
		grey.Pix[i], deep.Pix[2*i], deep.Pix[2*i+1] = byte(i), byte(i), byte(3*i)
	}
	for name, encode := range map[string]func(w io.Writer) error{
		"PNG":         func(w io.Writer) error { return png.Encode(w, gradientImage(20, 31)) },
		"grey PNG":    func(w io.Writer) error { return png.Encode(w, grey) },
		"16-bit PNG":  func(w io.Writer) error { return png.Encode(w, deep) },
		"JPEG":        func(w io.Writer) error { return jpeg.Encode(w, gradientImage(20, 31), nil) },
		"palette GIF": func(w io.Writer) error { return gif.Encode(w, grey, nil) },
	} {
		var file bytes.Buffer
		if err := encode(&file); err != nil {
			t.Fatal(err)
		}
		img, _, err := image.Decode(bytes.NewReader(file.Bytes()))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []Options{
			{Channels: 1, Height: 20, Width: 31}, {Channels: 3, Height: 8, Width: 8}, {Channels: 4, Height: 40, Width: 9},
			{Channels: 3, Height: 8, Width: 8, Crop: true},
		} {
			got, err := Pixels(img, o)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Decode(t.Context(), file.Bytes(), o)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("%s (%T) as %dx%dx%d: bytes differ from the file's", name, img, o.Channels, o.Height, o.Width)
			}
		}
	}
}

// TestPixelsPart: a part of an image has the pixels of the part.
func TestPixelsPart(t *testing.T) {
	o := Options{Channels: 3, Height: 5, Width: 6}
	whole := gradientImage(20, 31)
	part := image.NewNRGBA(image.Rect(0, 0, 6, 5))
	for y := range 5 {
		for x := range 6 {
			part.Set(x, y, whole.At(x+10, y+7))
		}
	}
	got, err := Pixels(whole.SubImage(image.Rect(10, 7, 16, 12)), o)
	if err != nil {
		t.Fatal(err)
	}
	if want, err := Pixels(part, o); err != nil || !bytes.Equal(got, want) {
		t.Errorf("a part: got %v, want %v, %v", got, want, err)
	}
}

// TestFromImages: the shape is chosen as for files, and labels and classes are New's.
func TestFromImages(t *testing.T) {
	grey := image.NewGray(image.Rect(0, 0, 6, 5))
	copy(grey.Pix, []byte{1, 2, 3})
	for name, c := range map[string]struct {
		images                  []image.Image
		options                 Options
		channels, height, width int
	}{
		"grey":        {[]image.Image{grey, grey}, Options{}, 1, 5, 6},
		"mixed":       {[]image.Image{grey, gradientImage(5, 6)}, Options{}, 3, 5, 6},
		"sizes":       {[]image.Image{grey, gradientImage(100, 80)}, Options{}, 3, 64, 64},
		"small sizes": {[]image.Image{grey, gradientImage(10, 60)}, Options{}, 3, 32, 32},
		"given":       {[]image.Image{grey, grey}, Options{Channels: 3, Height: 8, Width: 9, Crop: true}, 3, 8, 9},
	} {
		d, err := FromImages("things", c.images, []int32{1, 0}, []string{"cup", "pen"}, c.options)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d.Channels != c.channels || d.Height != c.height || d.Width != c.width || d.Len() != 2 || d.Cropped != c.options.Crop {
			t.Errorf("%s: %d images %dx%dx%d, cropped %v", name, d.Len(), d.Channels, d.Height, d.Width, d.Cropped)
		}
		if !slices.Equal(d.Labels, []int32{1, 0}) || d.ClassNames[1] != "pen" {
			t.Errorf("%s: labels %v of classes %v", name, d.Labels, d.ClassNames)
		}
		if name == "grey" && !bytes.Equal(d.Image(1), grey.Pix) {
			t.Errorf("grey: got %v, want %v", d.Image(1), grey.Pix)
		}
	}
}

// TestFromImagesErrors: errors name the image and what it must be.
func TestFromImagesErrors(t *testing.T) {
	good := image.Image(gradientImage(4, 4))
	shape := Options{Channels: 3, Height: 4, Width: 4}
	for name, c := range map[string]struct {
		images  []image.Image
		labels  []int32
		options Options
		want    string
	}{
		"none":           {nil, nil, Options{}, "at least 1 image"},
		"nil":            {[]image.Image{good, nil}, nil, Options{}, "image 1: the image must not be nil"},
		"empty":          {[]image.Image{image.NewGray(image.Rect(3, 3, 3, 9))}, nil, Options{}, "1 to 100000000 pixels, got 6x0"},
		"huge":           {[]image.Image{image.NewUniform(color.White)}, nil, shape, "1 to 100000000 pixels"},
		"two channels":   {[]image.Image{good}, nil, Options{Channels: 2}, "got 2"},
		"a single side":  {[]image.Image{good}, nil, Options{Height: 3}, "Width"},
		"too few labels": {[]image.Image{good, good}, []int32{0}, Options{}, "label"},
	} {
		if _, err := FromImages("things", c.images, c.labels, nil, c.options); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
	if _, err := Pixels(good, Options{Channels: 3, Height: 4}); err == nil || !strings.Contains(err.Error(), "4x0") {
		t.Errorf("no width: %v, want an error with 4x0", err)
	}
}
