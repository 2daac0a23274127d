package report

import (
	"image/color"
	"strings"

	xfont "golang.org/x/image/font"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// Type sizes in points.
const (
	labelSize = 10
	tickSize  = 9
)

var (
	ink   = color.RGBA{R: 0x22, G: 0x22, B: 0x22, A: 0xff}
	muted = color.RGBA{R: 0x6b, G: 0x6b, B: 0x6b, A: 0xff}
	white = color.RGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff}
	faint = color.RGBA{R: 0xe4, G: 0xe4, B: 0xe4, A: 0xff}
)

// palette has the colours of Okabe and Ito (2008) that are visible on white, the most distant pair
// first.
var palette = []color.RGBA{
	{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}, // blue
	{R: 0xd5, G: 0x5e, B: 0x00, A: 0xff}, // vermilion
	{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}, // bluish green
	{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff}, // reddish purple
	{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}, // orange
	{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff}, // sky blue
	{R: 0x00, G: 0x00, B: 0x00, A: 0xff}, // black
	{R: 0x8c, G: 0x8c, B: 0x8c, A: 0xff}, // grey, not one of theirs
}

var dashes = [][]vg.Length{nil, {5, 2}, {1.5, 1.5}, {7, 2, 1.5, 2}}

func methodColor(i int) color.RGBA { return palette[i%len(palette)] }

// placed returns the i-th of the positions that determine colours. nil means 0, 1, ...
func placed(places []int, i int) int {
	if places == nil {
		return i
	}
	return places[i]
}

func methodLine(i int, width vg.Length) draw.LineStyle {
	return draw.LineStyle{Color: methodColor(i), Width: width, Dashes: dashes[i%len(dashes)]}
}

// mix interpolates from colour a to b by a fraction.
func mix(a, b color.RGBA, fraction float64) color.RGBA {
	channel := func(x, y uint8) uint8 { return uint8(float64(x) + fraction*(float64(y)-float64(x)) + 0.5) }
	return color.RGBA{R: channel(a.R, b.R), G: channel(a.G, b.G), B: channel(a.B, b.B), A: 0xff}
}

// translucent returns the colour with an opacity in [0, 1].
func translucent(c color.RGBA, opacity float64) color.NRGBA {
	return color.NRGBA{R: c.R, G: c.G, B: c.B, A: uint8(255*opacity + 0.5)}
}

func textStyle(size vg.Length, c color.Color, x text.XAlignment, y text.YAlignment) text.Style {
	return text.Style{
		Color: c, XAlign: x, YAlign: y, Handler: figureText,
		Font: font.Font{Typeface: "Liberation", Variant: "Sans", Size: size},
	}
}

func bold(style text.Style) text.Style {
	style.Font.Weight = xfont.WeightBold
	return style
}

// shortened returns the text, or the longest prefix with an ellipsis that fits the width.
func shortened(s string, style text.Style, width vg.Length) string {
	if style.Width(s) <= width {
		return s
	}
	letters := []rune(s)
	for len(letters) > 0 && style.Width(string(letters)+"…") > width {
		letters = letters[:len(letters)-1]
	}
	return strings.TrimSpace(string(letters)) + "…"
}

// newPlot returns an empty plot in the package's style, with a light grid.
func newPlot(x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = nil
	p.X.Label.Text, p.Y.Label.Text = x, y
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle = textStyle(labelSize, ink, text.XCenter, text.YBottom)
		axis.Label.Padding = 3
		axis.LineStyle = draw.LineStyle{Color: muted, Width: 0.6}
		axis.Padding = 0
		axis.Tick.LineStyle = axis.LineStyle
		axis.Tick.Length = 3
		axis.Tick.Marker = plot.TickerFunc(linearTicks)
	}
	p.X.Tick.Label = textStyle(tickSize, ink, text.XCenter, text.YTop)
	p.Y.Tick.Label = textStyle(tickSize, ink, text.XRight, text.YCenter)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = nil, faint
	grid.Horizontal.Width = 0.5
	p.Add(grid)
	return p
}

// line returns a plotter of a line through points.
func line(points plotter.XYs, style draw.LineStyle) *plotter.Line {
	return &plotter.Line{XYs: points, LineStyle: style}
}

// heading is a plotter that writes a line just above the data area: a name in bold, then remarks.
// Panels with a heading must be drawn with headingHeight of space above.
type heading struct {
	name    string
	color   color.Color
	remarks []remark
}

type remark struct {
	text  string
	color color.Color
}

const headingHeight = 15

// Plot implements plot.Plotter.
func (h heading) Plot(c draw.Canvas, _ *plot.Plot) {
	style := bold(textStyle(labelSize, h.color, text.XLeft, text.YBottom))
	at := vg.Point{X: c.Min.X, Y: c.Max.Y + 5}
	c.FillText(style, at, h.name)
	at.X += style.Width(h.name) + 8
	for _, r := range h.remarks {
		style = textStyle(tickSize, r.color, text.XLeft, text.YBottom)
		c.FillText(style, at, r.text)
		at.X += style.Width(r.text) + 8
	}
}

// drawPanels draws plots with headings below each other, with aligned data areas of equal size.
func drawPanels(c draw.Canvas, plots ...*plot.Plot) {
	rows := make([][]*plot.Plot, len(plots))
	for i, p := range plots {
		rows[i] = []*plot.Plot{p}
	}
	tiles := draw.Tiles{Rows: len(plots), Cols: 1, PadY: headingHeight + 5, PadTop: headingHeight}
	canvases := plot.Align(rows, tiles, c)
	for i, p := range plots {
		p.Draw(canvases[i][0])
	}
}

// hideTickLabels removes the tick labels and the label of an axis, and keeps the ticks.
func hideTickLabels(axis *plot.Axis) {
	axis.Label.Text = ""
	marker := axis.Tick.Marker
	length := axis.Tick.Length
	axis.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		ticks := marker.Ticks(low, high)
		for i := range ticks {
			ticks[i].Label = ""
		}
		return ticks
	})
	axis.Tick.Length = 2 * length // gonum draws ticks without a label at half their length
}
