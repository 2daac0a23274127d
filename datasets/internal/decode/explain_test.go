package decode

import (
	"bytes"
	"image"
	"image/color/palette"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strings"
	"testing"

	"github.com/pkg/errors"
)

// A file whose end is missing is called truncated, in every format.
func TestTruncatedFiles(t *testing.T) {
	img := image.NewPaletted(image.Rect(0, 0, 64, 64), palette.Plan9)
	draw.Draw(img, img.Rect, quarter(64, 64), image.Point{}, draw.Src)
	for i := range img.Pix {
		img.Pix[i] ^= byte(i * i >> 3)
	}
	for name, encode := range map[string]func(io.Writer) error{
		"PNG":  func(w io.Writer) error { return png.Encode(w, img) },
		"JPEG": func(w io.Writer) error { return jpeg.Encode(w, img, nil) },
		"GIF":  func(w io.Writer) error { return gif.Encode(w, img, nil) },
	} {
		var file bytes.Buffer
		if err := encode(&file); err != nil {
			t.Fatal(err)
		}
		_, err := Decode(t.Context(), file.Bytes()[:file.Len()*3/4], 1, 8, 8, false)
		if want := name + ": the file is truncated"; err == nil || !strings.HasPrefix(err.Error(), want) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
}

// The name of a format is in front of an error once.
func TestFormatIsNamedOnce(t *testing.T) {
	for text, want := range map[string]string{
		"netpbm height: must be a number": "netpbm: height: must be a number", "netpbm: value 3 of 4": "netpbm: value 3 of 4",
		"netpbmish": "netpbm: netpbmish", "unexpected EOF": "netpbm: the file is truncated: unexpected EOF", "bad": "netpbm: bad",
	} {
		if got := inFormat("netpbm", errors.New(text)).Error(); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if err := inFormat("netpbm", nil); err != nil {
		t.Error(err)
	}
}
