package strange

import (
	"image"

	"github.com/pkg/errors"
	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goitalic"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// readFonts returns the fonts that letters are drawn with.
func readFonts() ([]*sfnt.Font, error) {
	var fonts []*sfnt.Font
	for _, file := range [][]byte{goregular.TTF, gobold.TTF, goitalic.TTF, gomono.TTF} {
		f, err := opentype.Parse(file)
		if err != nil {
			return nil, errors.Wrap(err, "strange: fonts")
		}
		fonts = append(fonts, f)
	}
	return fonts, nil
}

// letter draws a letter that fills most of the image, dark on light, light on dark, or in colours.
func (c *canvas) letter() error {
	text := string(rune('A' + int(26*c.fraction())))
	size := max(4, float64(min(c.height, c.width))*(0.8+0.5*c.fraction()))
	face, err := opentype.NewFace(c.fonts[c.number%len(c.fonts)], &opentype.FaceOptions{Size: size, DPI: 72})
	if err != nil {
		return errors.WithStack(err)
	}
	mask := image.NewAlpha(image.Rect(0, 0, c.width, c.height))
	bounds, _ := font.BoundString(face, text)
	middle := fixed.P(c.width/2, c.height/2).Sub(bounds.Min.Add(bounds.Max).Div(fixed.I(2)))
	(&font.Drawer{Dst: mask, Src: image.Opaque, Face: face, Dot: middle}).DrawString(text)
	from, to := c.colour(), c.colour()
	switch c.number % 3 {
	case 0:
		from, to = c.extremes(0), c.extremes(7)
	case 1:
		from, to = c.extremes(7), c.extremes(0)
	}
	c.fill(from, to, func(y, x int) float64 { return float64(mask.AlphaAt(x, y).A) / 255 })
	return nil
}
