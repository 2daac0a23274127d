package report

import (
	"math"

	"github.com/mattn/go-runewidth"
	"golang.org/x/image/font/sfnt"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// textHandler is a text.Plain for single lines that also measures the letters that the font lacks.
// In SVG, browsers draw these in another font.
type textHandler struct{ text.Plain }

// Box implements text.Handler.
func (h textHandler) Box(line string, f font.Font) (width, height, depth vg.Length) {
	_, height, depth = h.Plain.Box("", f)
	return textWidth(h.Fonts.Lookup(f, f.Size), line), height, depth
}

// Draw implements text.Handler.
func (h textHandler) Draw(c vg.Canvas, line string, style text.Style, at vg.Point) {
	if face := h.Fonts.Lookup(style.Font, style.Font.Size); missing(face, line) > 0 {
		// Plain would align by its own width.
		sin, cos := math.Sincos(style.Rotation)
		shift := vg.Length(style.XAlign) * textWidth(face, line)
		at = at.Add(vg.Point{X: shift * vg.Length(cos), Y: shift * vg.Length(sin)})
		style.XAlign = text.XLeft
	}
	h.Plain.Draw(c, line, style, at)
}

var figureText = textHandler{text.Plain{Fonts: font.DefaultCache}}

// writable reports whether the figures' font has all letters of a text, regular and bold.
func writable(line string) bool {
	style := textStyle(labelSize, ink, text.XLeft, text.YBottom)
	lookup := func(s text.Style) font.Face { return figureText.Fonts.Lookup(s.Font, labelSize) }
	return missing(lookup(style), line) == 0 && missing(lookup(bold(style)), line) == 0
}

// missing returns how many letters of a text a font lacks.
func missing(face font.Face, line string) (letters int) {
	var buffer sfnt.Buffer
	for _, r := range line {
		if glyph, err := face.Face.GlyphIndex(&buffer, r); err != nil || glyph == 0 {
			letters++
		}
	}
	return letters
}

// cells counts the cells of a terminal that a text takes: two for a Chinese character or an emoji,
// none for a mark on the letter before, on every machine.
var cells = &runewidth.Condition{StrictEmojiNeutral: true}

// textWidth returns the width of a text. A letter that the font lacks is as wide as its size for
// each two cells: right for Chinese, Japanese and Korean, and close for others.
func textWidth(face font.Face, line string) vg.Length {
	if missing(face, line) == 0 {
		return face.Width(line)
	}
	return vg.Length(cells.StringWidth(line)) * face.Font.Size / 2
}

// cellWidth returns the number of cells of a terminal that a text takes.
func cellWidth(text string) int { return cells.StringWidth(text) }
