package report

import (
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

var warmStartRow = figureRow{
	File: "warmstart", Title: "Warm start",
	Caption: "The loss of each chain on training images held out of its warm start, by epoch. A dot is where it is lowest: " +
		"the chain began to sample there, with all training images, or at its initial values if it had learned nothing.",
	Applies: func(subjects []Subject) bool {
		return !all(subjects, func(s Subject) bool { return len(s.warmLosses()) == 0 })
	},
	Draw: drawWarmStart,
}

// warmLosses returns the losses of the chains that have at least two finite ones.
func (s Subject) warmLosses() (curves [][]float64) {
	for _, losses := range s.WarmLosses {
		// The curve of a chain that diverged ends before its first loss that is not finite.
		if end := slices.IndexFunc(losses, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }); end >= 0 {
			losses = losses[:end]
		}
		if len(losses) > 1 {
			curves = append(curves, losses)
		}
	}
	return curves
}

// drawWarmStart draws a thin line for each chain, in the colour of its run, on a logarithmic axis
// unless a loss is 0.
func drawWarmStart(subjects []Subject) (*Figure, error) {
	scale := math.Log10
	for _, s := range subjects {
		for _, losses := range s.warmLosses() {
			if slices.Min(losses) <= 0 {
				scale = func(v float64) float64 { return v }
			}
		}
	}
	p := newPlot("epoch", "loss, nats per image")
	if scale(10) == 1 {
		p.Y.Tick.Marker = plot.TickerFunc(logTicks)
	}
	var key legend
	for i, s := range subjects {
		style, dot := methodLine(i, 0.8), draw.GlyphStyle{Color: methodColor(i), Radius: 3, Shape: draw.CircleGlyph{}}
		style.Color = mix(methodColor(i), color.RGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff}, 0.45)
		var best plotter.XYs
		for _, losses := range s.warmLosses() {
			points := make(plotter.XYs, len(losses))
			lowest := 0
			for epoch, loss := range losses {
				points[epoch] = plotter.XY{X: float64(epoch), Y: scale(loss)}
				if loss < losses[lowest] {
					lowest = epoch
				}
			}
			p.Add(line(points, style))
			best = append(best, points[lowest])
		}
		if best == nil {
			continue
		}
		p.Add(&plotter.Scatter{XYs: best, GlyphStyle: dot})
		style.Width, style.Color = 2, methodColor(i)
		key = append(key, legendEntry{s.Name, []plot.Thumbnailer{line(nil, style)}})
	}
	space := 0.05 * max(p.Y.Max-p.Y.Min, 1e-9)
	p.Y.Min, p.Y.Max = p.Y.Min-space, p.Y.Max+space
	return &Figure{width: figureWidth, height: 7.7*vg.Centimeter + key.height(figureWidth), draw: func(c draw.Canvas) { p.Draw(key.draw(c)) }}, nil
}
