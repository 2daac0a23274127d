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

// tile is an example image with the methods' guesses.
type tile struct {
	Group   string // drawn above the first tile of a group, which begins a row; may be ""
	Title   string // such as the image's class
	Image   image.Image
	Guesses []guess // one per method, in the order of the methods
}

// guess is a method's predicted class and its probability.
type guess struct {
	Label      string
	Confidence float64
}

// Sizes within a grid of images.
const (
	tileGap     = vg.Length(14)
	tileTitle   = vg.Length(15)
	guessHeight = vg.Length(18)
	groupHeight = vg.Length(18)
)

// imageGrid draws example images. Below each image it draws, for each method, the predicted class
// and the confidence over a bar of that length, in the method's colour.
func imageGrid(methods []string, tiles []tile, columns int) (*Figure, error) {
	tallest, err := checkTiles(methods, tiles, columns)
	if err != nil {
		return nil, err
	}
	key := make(legend, len(methods))
	for i, m := range methods {
		key[i] = legendEntry{m, []plot.Thumbnailer{bar(methodColor(i))}}
	}
	columns = min(columns, len(tiles))
	width := min((figureWidth-2*marginX+tileGap)/vg.Length(columns)-tileGap, 3*vg.Centimeter)
	imageHeight := width * vg.Length(min(tallest, 2)) // taller images are drawn narrower
	height := tileTitle + imageHeight + guessHeight*vg.Length(len(methods))
	places, depth := tilePlaces(tiles, columns, vg.Point{X: width + tileGap, Y: height + tileGap})
	total := max(vg.Length(columns)*(width+tileGap)-tileGap+2*marginX, 8*vg.Centimeter)
	f := &Figure{width: total, height: depth - tileGap + 2*marginY + key.height(total)}
	f.draw = func(c draw.Canvas) {
		c = key.draw(c)
		title := textStyle(labelSize, ink, text.XCenter, text.YCenter)
		for i, t := range tiles {
			x, y := c.Min.X+places[i].X, c.Max.Y-places[i].Y
			if t.Group != "" && (i == 0 || t.Group != tiles[i-1].Group) {
				style := bold(textStyle(labelSize, ink, text.XLeft, text.YCenter))
				c.FillText(style, vg.Point{X: x, Y: y + groupHeight/2}, shortened(t.Group, style, c.Size().X))
			}
			c.FillText(title, vg.Point{X: x + width/2, Y: y - tileTitle/2}, shortened(t.Title, title, width+tileGap/2))
			y -= tileTitle + imageHeight
			frame := inside(vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + width, Y: y + imageHeight}}, t.Image)
			c.DrawImage(frame, t.Image)
			c.SetLineStyle(draw.LineStyle{Color: mix(faint, muted, 0.4), Width: 0.6})
			c.Stroke(frame.Path())
			for m, g := range t.Guesses {
				top := y - vg.Length(m)*guessHeight
				drawGuess(c, vg.Rectangle{Min: vg.Point{X: x, Y: top - guessHeight}, Max: vg.Point{X: x + width, Y: top}}, g, methodColor(m))
			}
		}
	}
	return f, nil
}

// checkTiles returns the largest ratio of an image's height to its width.
func checkTiles(methods []string, tiles []tile, columns int) (tallest float64, err error) {
	if err := checkMethods("examples", methods); err != nil {
		return 0, err
	}
	if len(tiles) == 0 || columns < 1 {
		return 0, errors.Errorf("report: examples: tiles and columns must be at least 1, got %d and %d", len(tiles), columns)
	}
	for i, t := range tiles {
		if t.Image == nil || t.Image.Bounds().Empty() {
			return 0, errors.Errorf("report: examples: tile %d must have an image", i)
		}
		size := t.Image.Bounds().Size()
		tallest = max(tallest, float64(size.Y)/float64(size.X))
		if len(t.Guesses) != len(methods) {
			return 0, errors.Errorf("report: examples: tile %d must have %[3]d guesses, one per method, got %[2]d", i, len(t.Guesses), len(methods))
		}
		for _, g := range t.Guesses {
			if !(g.Confidence >= 0 && g.Confidence <= 1+1e-4) {
				return 0, errors.Errorf("report: examples: tile %d: confidence must be in [0, 1], got %v", i, g.Confidence)
			}
		}
	}
	return tallest, nil
}

// tilePlaces returns the upper left corner of each tile, relative to the grid's, to the right
// and down, and the depth of the grid. Each group begins a row.
func tilePlaces(tiles []tile, columns int, step vg.Point) (places []vg.Point, depth vg.Length) {
	column := 0
	for i, t := range tiles {
		begins := i == 0 || t.Group != tiles[i-1].Group
		if i > 0 && (begins || column == columns) {
			column, depth = 0, depth+step.Y
		}
		if begins && t.Group != "" {
			depth += groupHeight
		}
		places = append(places, vg.Point{X: vg.Length(column) * step.X, Y: depth})
		column++
	}
	return places, depth + step.Y
}

// drawGuess draws the label at the left and the confidence at the right of a row, and a bar below
// them.
func drawGuess(c draw.Canvas, row vg.Rectangle, g guess, of color.RGBA) {
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

// bar is a legend thumbnail: a filled bar of a colour.
type bar color.RGBA

// Thumbnail implements plot.Thumbnailer.
func (b bar) Thumbnail(c *draw.Canvas) {
	c.SetColor(color.RGBA(b))
	c.Fill(vg.Rectangle{Min: vg.Point{X: c.Min.X, Y: c.Center().Y - 2.5}, Max: vg.Point{X: c.Max.X, Y: c.Center().Y + 2.5}}.Path())
}
