package report

import (
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// manyPoints is the number of points above which they are small and translucent, to show their
// density.
const manyPoints = 300

// Levels is a function on a grid in the plane, drawn as contour lines.
type Levels struct {
	Name   string
	X, Y   []float64 // increasing, at least two each
	Values []float64 // [len(Y) len(X)] in row-major order
	At     []float64 // values of the contour lines
}

// Track is a sequence of points in the plane, such as states of a Markov chain. If Joined, it is
// drawn as a path from the first point, marked with a ring, to the last, marked with a dot.
type Track struct {
	Method string
	X, Y   []float64
	Joined bool
}

// Plane draws a plane with axes named x and y: contour lines of functions, the first in grey,
// others in black, and over them the tracks of methods, such as paths of optimizers or states of
// chains. The axes cover all of them. Between grid points a function is interpolated along the
// edges of the cells. It returns an error for values that are not finite, lengths that do not
// match, a grid that does not increase, and names that are not distinct.
func Plane(x, y string, levels []Levels, tracks []Track) (*Figure, error) {
	var names []string
	for _, l := range levels {
		names = append(names, l.Name)
		if err := l.check(); err != nil {
			return nil, err
		}
	}
	for _, t := range tracks {
		names = append(names, t.Method)
		if err := t.check(); err != nil {
			return nil, err
		}
	}
	if err := checkMethods("Plane", names); err != nil {
		return nil, err
	}

	p := newPlot(x, y)
	var key legend
	for i, l := range levels {
		style := draw.LineStyle{Color: muted, Width: 0.7}
		if i > 0 {
			style = draw.LineStyle{Color: ink, Width: 0.9}
		}
		p.Add(levelLines{l, style})
		key = append(key, legendEntry{l.Name, []plot.Thumbnailer{line(nil, style)}})
	}
	for i, t := range tracks {
		plotters, thumb := t.plotters(i)
		p.Add(plotters...)
		key = append(key, legendEntry{t.Method, []plot.Thumbnailer{thumb}})
	}
	if p.X.Min == p.X.Max {
		p.X.Min, p.X.Max = p.X.Min-1, p.X.Max+1
	}
	if p.Y.Min == p.Y.Max {
		p.Y.Min, p.Y.Max = p.Y.Min-1, p.Y.Max+1
	}
	return &Figure{width: figureWidth, height: 9.5*vg.Centimeter + key.height(figureWidth), draw: func(c draw.Canvas) { p.Draw(key.draw(c)) }}, nil
}

func (l Levels) check() error {
	for _, axis := range [][]float64{l.X, l.Y} {
		if err := checkFinite("Plane", l.Name+": grid", axis); err != nil {
			return err
		}
		for i := range axis {
			if len(axis) < 2 || i > 0 && axis[i] <= axis[i-1] {
				return errors.Errorf("report: Plane: %s: grid must have at least 2 increasing values, got %d values with %[4]v at %[3]d", l.Name, len(axis), i, axis[i])
			}
		}
	}
	if len(l.Values) != len(l.X)*len(l.Y) {
		return errors.Errorf("report: Plane: %s: Values must have %[3]d x %[4]d values, one per grid point, got %[2]d", l.Name, len(l.Values), len(l.Y), len(l.X))
	}
	if err := checkFinite("Plane", l.Name+": Values", l.Values); err != nil {
		return err
	}
	return checkFinite("Plane", l.Name+": At", l.At)
}

func (t Track) check() error {
	if len(t.X) != len(t.Y) {
		return errors.Errorf("report: Plane: %s: X and Y must have the same length, got %d and %d", t.Method, len(t.X), len(t.Y))
	}
	if err := checkFinite("Plane", t.Method+": X", t.X); err != nil {
		return err
	}
	return checkFinite("Plane", t.Method+": Y", t.Y)
}

// plotters returns the plotters of the track of method i, and its thumbnail.
func (t Track) plotters(i int) ([]plot.Plotter, plot.Thumbnailer) {
	points := make(plotter.XYs, len(t.X))
	for j := range points {
		points[j] = plotter.XY{X: t.X[j], Y: t.Y[j]}
	}
	dot := draw.GlyphStyle{Color: methodColor(i), Radius: 2.4, Shape: draw.CircleGlyph{}}
	if t.Joined {
		style := methodLine(i, 1.2)
		path, start := line(points, style), dot
		start.Shape = draw.RingGlyph{}
		return []plot.Plotter{
			path,
			&plotter.Scatter{XYs: points[:1], GlyphStyle: start},
			&plotter.Scatter{XYs: points[len(points)-1:], GlyphStyle: dot},
		}, line(nil, style)
	}
	thumb := &plotter.Scatter{GlyphStyle: dot}
	if len(points) > manyPoints {
		dot.Radius, dot.Color = 1.1, translucent(methodColor(i), 0.45)
	}
	return []plot.Plotter{&plotter.Scatter{XYs: points, GlyphStyle: dot}}, thumb
}

// levelLines is a plotter of Levels.
type levelLines struct {
	Levels
	style draw.LineStyle
}

// Plot implements plot.Plotter.
func (l levelLines) Plot(c draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&c)
	for _, level := range l.At {
		for _, s := range l.segments(level) {
			c.StrokeLine2(l.style, toX(s[0].X), toY(s[0].Y), toX(s[1].X), toY(s[1].Y))
		}
	}
}

// DataRange implements plot.DataRanger.
func (l levelLines) DataRange() (xLow, xHigh, yLow, yHigh float64) {
	return l.X[0], l.X[len(l.X)-1], l.Y[0], l.Y[len(l.Y)-1]
}

// segments returns the segments of a contour line, cell by cell, by marching squares. If all four
// edges of a cell are crossed, as at a saddle, the mean of the corners decides which crossings are
// connected.
func (l Levels) segments(level float64) [][2]plotter.XY {
	var all [][2]plotter.XY
	columns := len(l.X)
	for i := range len(l.Y) - 1 {
		for j := range columns - 1 {
			corners := [4]plotter.XY{{X: l.X[j], Y: l.Y[i]}, {X: l.X[j+1], Y: l.Y[i]}, {X: l.X[j+1], Y: l.Y[i+1]}, {X: l.X[j], Y: l.Y[i+1]}}
			first := i*columns + j
			above := [4]float64{l.Values[first], l.Values[first+1], l.Values[first+columns+1], l.Values[first+columns]}
			mean := 0.0
			for k := range above {
				above[k] -= level
				mean += above[k] / 4
			}
			var crossings []plotter.XY
			for k, here := range above {
				next := (k + 1) % 4
				if there := above[next]; (here >= 0) != (there >= 0) {
					share := here / (here - there)
					a, b := corners[k], corners[next]
					crossings = append(crossings, plotter.XY{X: a.X + share*(b.X-a.X), Y: a.Y + share*(b.Y-a.Y)})
				}
			}
			if len(crossings) == 4 && (mean >= 0) != (above[0] >= 0) {
				crossings = slices.Concat(crossings[3:], crossings[:3])
			}
			for k := 0; k+1 < len(crossings); k += 2 {
				all = append(all, [2]plotter.XY{crossings[k], crossings[k+1]})
			}
		}
	}
	return all
}
