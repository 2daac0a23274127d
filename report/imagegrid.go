package report

import (
	"fmt"
	"image"
	"image/color"

	"github.com/pkg/errors"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Tile is one example image with what the methods make of it; the zero Tile is an empty place.
type Tile struct {
	Title   string // what it is, such as "7" or "glyphs: A"
	Image   image.Image
	Guesses []Guess // one per method, in the order of the methods
}

func (t Tile) empty() bool { return t.Title == "" && t.Image == nil && t.Guesses == nil }

// Guess is a method's most probable class and its probability.
type Guess struct {
	Label      string
	Confidence float64
}

// ImageGrid draws example images and below each, per method, the guess and its confidence over a
// bar as long as the confidence, in the method's colour.
func ImageGrid(methods []string, tiles []Tile, columns int) (*Figure, error) {
	if err := checkMethods("ImageGrid", methods); err != nil {
		return nil, err
	}
	if len(tiles) == 0 || columns < 1 {
		return nil, errors.Errorf("report: ImageGrid: got %d tiles in %d columns, want at least 1 of each", len(tiles), columns)
	}
	tallest := 0.0
	for i, t := range tiles {
		if t.empty() {
			continue
		}
		if t.Image == nil || t.Image.Bounds().Empty() {
			return nil, errors.Errorf("report: ImageGrid: tile %d has no image", i)
		}
		size := t.Image.Bounds().Size()
		tallest = max(tallest, float64(size.Y)/float64(size.X))
		if len(t.Guesses) != len(methods) {
			return nil, errors.Errorf("report: ImageGrid: tile %d has %d guesses, want one for each of %d methods", i, len(t.Guesses), len(methods))
		}
		for _, g := range t.Guesses {
			if !(g.Confidence >= 0 && g.Confidence <= 1+1e-4) {
				return nil, errors.Errorf("report: ImageGrid: tile %d: confidence %v, want one in [0, 1]", i, g.Confidence)
			}
		}
	}
	key := make(legend, len(methods))
	for i, m := range methods {
		key[i] = legendEntry{m, []plot.Thumbnailer{bar(methodColor(i))}}
	}
	const gap, titleHeight, rowHeight = vg.Length(14), vg.Length(15), vg.Length(18)
	columns = min(columns, len(tiles))
	rows := (len(tiles) + columns - 1) / columns
	tileWidth := min((figureWidth-2*marginX+gap)/vg.Length(columns)-gap, 3*vg.Centimeter)
	imageHeight := tileWidth * vg.Length(min(tallest, 2)) // of a taller image, the width is less
	tileHeight := titleHeight + imageHeight + rowHeight*vg.Length(len(methods))
	total := max(vg.Length(columns)*(tileWidth+gap)-gap+2*marginX, 8*vg.Centimeter)
	f := &Figure{width: total, height: vg.Length(rows)*(tileHeight+gap) - gap + 2*marginY + key.height(total)}
	f.draw = func(c draw.Canvas) {
		c = key.draw(c)
		for i, t := range tiles {
			if t.empty() {
				continue
			}
			x := c.Min.X + vg.Length(i%columns)*(tileWidth+gap)
			y := c.Max.Y - vg.Length(i/columns)*(tileHeight+gap)
			c.FillText(textStyle(labelSize, ink, text.XCenter, text.YCenter), vg.Point{X: x + tileWidth/2, Y: y - titleHeight/2},
				shortened(t.Title, textStyle(labelSize, ink, text.XCenter, text.YCenter), tileWidth+gap/2))
			y -= titleHeight + imageHeight
			frame := inside(vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + tileWidth, Y: y + imageHeight}}, t.Image)
			c.DrawImage(frame, t.Image)
			c.SetLineStyle(draw.LineStyle{Color: mix(faint, muted, 0.4), Width: 0.6})
			c.Stroke(frame.Path())
			for m, g := range t.Guesses {
				top := y - vg.Length(m)*rowHeight
				drawGuess(c, vg.Rectangle{Min: vg.Point{X: x, Y: top - rowHeight}, Max: vg.Point{X: x + tileWidth, Y: top}}, g, methodColor(m))
			}
		}
	}
	return f, nil
}

// drawGuess draws the label at the left and the confidence at the right of a row, and the bar on its track below them.
func drawGuess(c draw.Canvas, row vg.Rectangle, g Guess, of color.RGBA) {
	const thickness = 3.5
	middle := (row.Min.Y + thickness + row.Max.Y) / 2
	label := bold(textStyle(tickSize, mix(of, ink, 0.3), text.XLeft, text.YCenter))
	number := textStyle(tickSize, ink, text.XRight, text.YCenter)
	confidence := fmt.Sprintf("%.2f", g.Confidence)
	room := row.Size().X - number.Width(confidence) - 3
	c.FillText(label, vg.Point{X: row.Min.X, Y: middle}, shortened(g.Label, label, room))
	c.FillText(number, vg.Point{X: row.Max.X, Y: middle}, confidence)
	track := vg.Rectangle{Min: row.Min, Max: vg.Point{X: row.Max.X, Y: row.Min.Y + thickness}}
	c.SetColor(faint)
	c.Fill(track.Path())
	track.Max.X = row.Min.X + row.Size().X*vg.Length(min(g.Confidence, 1))
	c.SetColor(of)
	c.Fill(track.Path())
}

// inside returns the largest rectangle of the image's proportions in the middle of a frame.
func inside(frame vg.Rectangle, img image.Image) vg.Rectangle {
	size := img.Bounds().Size()
	room := frame.Size()
	scale := min(room.X/vg.Length(size.X), room.Y/vg.Length(size.Y))
	left := (room.X - scale*vg.Length(size.X)) / 2
	below := (room.Y - scale*vg.Length(size.Y)) / 2
	return vg.Rectangle{
		Min: vg.Point{X: frame.Min.X + left, Y: frame.Min.Y + below},
		Max: vg.Point{X: frame.Max.X - left, Y: frame.Max.Y - below},
	}
}

// bar is a thumbnail: a filled bar of a colour.
type bar color.RGBA

// Thumbnail implements plot.Thumbnailer.
func (b bar) Thumbnail(c *draw.Canvas) {
	c.SetColor(color.RGBA(b))
	c.Fill(vg.Rectangle{Min: vg.Point{X: c.Min.X, Y: c.Center().Y - 2.5}, Max: vg.Point{X: c.Max.X, Y: c.Center().Y + 2.5}}.Path())
}
