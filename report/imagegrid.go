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

// Tile is one example image with what the methods make of it.
type Tile struct {
	Title   string  // what it is, such as "digit 7" or "letter A"
	Pixels  []byte  // height x width, 0 background to 255 ink
	Guesses []Guess // one per method, in the order of the methods
}

// Guess is a method's most probable class and its probability.
type Guess struct {
	Label      string
	Confidence float64
}

// ImageGrid draws example images, dark on white, and below each, per method, the guess and its confidence over
// a bar as long as the confidence, in the method's colour.
func ImageGrid(methods []string, tiles []Tile, height, width, columns int) (*Figure, error) {
	if err := checkMethods("ImageGrid", methods); err != nil {
		return nil, err
	}
	if len(tiles) == 0 || height < 1 || width < 1 || columns < 1 {
		return nil, errors.Errorf("report: ImageGrid: got %d tiles of %d x %d pixels in %d columns, want at least 1 of each",
			len(tiles), height, width, columns)
	}
	for i, t := range tiles {
		if len(t.Pixels) != height*width {
			return nil, errors.Errorf("report: ImageGrid: tile %d has %d pixels, want %d x %d = %d", i, len(t.Pixels), height, width, height*width)
		}
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
	imageHeight := tileWidth * vg.Length(height) / vg.Length(width)
	tileHeight := titleHeight + imageHeight + rowHeight*vg.Length(len(methods))
	total := max(vg.Length(columns)*(tileWidth+gap)-gap+2*marginX, 8*vg.Centimeter)
	f := &Figure{width: total, height: vg.Length(rows)*(tileHeight+gap) - gap + 2*marginY + key.height(total)}
	f.draw = func(c draw.Canvas) {
		c = key.draw(c)
		for i, t := range tiles {
			x := c.Min.X + vg.Length(i%columns)*(tileWidth+gap)
			y := c.Max.Y - vg.Length(i/columns)*(tileHeight+gap)
			c.FillText(textStyle(labelSize, ink, text.XCenter, text.YCenter), vg.Point{X: x + tileWidth/2, Y: y - titleHeight/2}, t.Title)
			y -= titleHeight + imageHeight
			frame := vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + tileWidth, Y: y + imageHeight}}
			c.DrawImage(frame, enlarged(t.Pixels, height, width))
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
	c.FillText(bold(textStyle(tickSize, mix(of, ink, 0.3), text.XLeft, text.YCenter)), vg.Point{X: row.Min.X, Y: middle}, g.Label)
	c.FillText(textStyle(tickSize, ink, text.XRight, text.YCenter), vg.Point{X: row.Max.X, Y: middle}, fmt.Sprintf("%.2f", g.Confidence))
	track := vg.Rectangle{Min: row.Min, Max: vg.Point{X: row.Max.X, Y: row.Min.Y + thickness}}
	c.SetColor(faint)
	c.Fill(track.Path())
	track.Max.X = row.Min.X + row.Size().X*vg.Length(min(g.Confidence, 1))
	c.SetColor(of)
	c.Fill(track.Path())
}

// enlarged draws the pixels as squares, dark ink on white, so large that no renderer's smoothing shows.
func enlarged(pixels []byte, height, width int) *image.Gray {
	const scale = 8
	img := image.NewGray(image.Rect(0, 0, width*scale, height*scale))
	for y := range height * scale {
		for x := range width * scale {
			img.Pix[y*img.Stride+x] = 255 - pixels[y/scale*width+x/scale]
		}
	}
	return img
}

// bar is a thumbnail: a filled bar of a colour.
type bar color.RGBA

// Thumbnail implements plot.Thumbnailer.
func (b bar) Thumbnail(c *draw.Canvas) {
	c.SetColor(color.RGBA(b))
	c.Fill(vg.Rectangle{Min: vg.Point{X: c.Min.X, Y: c.Center().Y - 2.5}, Max: vg.Point{X: c.Max.X, Y: c.Center().Y + 2.5}}.Path())
}
