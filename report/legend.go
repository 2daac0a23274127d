package report

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Sizes within a legend.
const (
	legendRow   = vg.Length(14)
	legendThumb = vg.Length(22)
	legendSpace = vg.Length(8) // between the legend and what is below it
)

// legendEntry is a name with its thumbnails.
type legendEntry struct {
	name   string
	thumbs []plot.Thumbnailer
}

// legend is drawn in rows along the top of a figure, where it cannot cover data.
type legend []legendEntry

// places returns the position of each entry in a legend of the given width, relative to the left
// end of the first row, and the height of the legend with the space below it.
func (l legend) places(width vg.Length) (at []vg.Point, height vg.Length) {
	const between = 16
	style := textStyle(labelSize, ink, text.XLeft, text.YCenter)
	var next vg.Point
	for i, e := range l {
		entry := legendThumb + 5 + style.Width(e.name)
		if i > 0 && next.X+entry > width {
			next = vg.Point{Y: next.Y - legendRow}
		}
		at = append(at, next)
		next.X += entry + between
	}
	return at, legendRow + legendSpace - next.Y
}

// height returns the height of the legend in a figure of the given width.
func (l legend) height(width vg.Length) vg.Length {
	_, height := l.places(width - marginX*2)
	return height
}

// draw draws the legend and returns the canvas below it.
func (l legend) draw(c draw.Canvas) draw.Canvas {
	style := textStyle(labelSize, ink, text.XLeft, text.YCenter)
	places, height := l.places(c.Size().X)
	for i, e := range l {
		at := places[i].Add(vg.Point{X: c.Min.X, Y: c.Max.Y - legendRow/2})
		thumb := draw.Canvas{Canvas: c.Canvas, Rectangle: vg.Rectangle{
			Min: vg.Point{X: at.X, Y: at.Y - 4}, Max: vg.Point{X: at.X + legendThumb, Y: at.Y + 4},
		}}
		for _, t := range e.thumbs {
			t.Thumbnail(&thumb)
		}
		c.FillText(style, vg.Point{X: at.X + legendThumb + 5, Y: at.Y}, e.name)
	}
	return draw.Crop(c, 0, 0, 0, -height)
}
