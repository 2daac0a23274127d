package report

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// legendEntry is one name with the thumbnails that explain it.
type legendEntry struct {
	name   string
	thumbs []plot.Thumbnailer
}

// drawLegend writes the entries in rows along the top of the canvas, where they cannot cover data, and returns the canvas
// that remains below them.
func drawLegend(c draw.Canvas, entries []legendEntry) draw.Canvas {
	const thumbWidth, rowHeight, space, between = vg.Length(22), vg.Length(14), vg.Length(5), vg.Length(16)
	style := textStyle(labelSize, ink, text.XLeft, text.YCenter)
	x, y := c.Min.X, c.Max.Y-rowHeight/2
	for i, e := range entries {
		width := thumbWidth + space + style.Width(e.name)
		if i > 0 && x+width > c.Max.X {
			x, y = c.Min.X, y-rowHeight
		}
		thumb := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: x, Y: y - 4}, Max: vg.Point{X: x + thumbWidth, Y: y + 4},
		}}
		for _, t := range e.thumbs {
			t.Thumbnail(&thumb)
		}
		c.FillText(style, vg.Point{X: x + thumbWidth + space, Y: y}, e.name)
		x += width + between
	}
	return draw.Crop(c, 0, 0, 0, y-rowHeight/2-8-c.Max.Y)
}
