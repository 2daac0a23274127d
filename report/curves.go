package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pollen-ml/pollen/evaluate"
)

// curvePoints is the maximum number of points of a drawn curve. A figure cannot show more.
const curvePoints = 600

// markedPoints is the maximum number of points, such as one per epoch, that get markers.
const markedPoints = 30

// Curve is a quantity of one method, Y, at increasing X, such as steps.
type Curve struct {
	Method string
	X, Y   []float64
}

// Axes describes the axes of Curves.
type Axes struct {
	X, Y string
	// LogY selects a logarithmic Y axis. All values must then be positive.
	LogY bool
	// Target is drawn as a dashed line if TargetName is not "": the value that curves should have,
	// such as temperature 1.
	Target     float64
	TargetName string
	// bounded is true if X is in [0, 1]. Y then extends to at least 1, from 0 or, if that is above
	// 0.8, from its lowest value.
	bounded bool
}

// Curves draws quantities such as loss, accuracy or temperature against the step, for several
// methods. A curve of more than 600 points is averaged over blocks of equal length. It returns an
// error for curves without points, different lengths of X and Y, decreasing X, values that are not
// finite, and methods without distinct names.
func Curves(axes Axes, curves []Curve) (*Figure, error) {
	return curvesOf(axes, curves, nil)
}

// curvesOf is Curves with the methods' positions, which determine their colours. nil means 0, 1,
// ...
func curvesOf(axes Axes, curves []Curve, places []int) (*Figure, error) {
	names := make([]string, len(curves))
	for i, c := range curves {
		names[i] = c.Method
		if err := checkCurve(c, axes.LogY); err != nil {
			return nil, err
		}
	}
	if err := checkMethods("Curves", names); err != nil {
		return nil, err
	}
	if axes.TargetName != "" && (math.IsNaN(axes.Target) || math.IsInf(axes.Target, 0) || axes.LogY && axes.Target <= 0) {
		return nil, errors.Errorf("report: Curves: target %q must be finite, and positive on a logarithmic axis, got %v", axes.TargetName, axes.Target)
	}
	// A logarithmic axis is a linear one of logarithms, with ticks labelled in the original values.
	scale := func(y float64) float64 { return y }
	p := newPlot(axes.X, axes.Y)
	if axes.LogY {
		scale = math.Log10
		p.Y.Tick.Marker = plot.TickerFunc(logTicks)
	}
	var key legend
	for i, c := range curves {
		place := placed(places, i)
		style := methodLine(place, 1.2)
		style.Dashes = dashes[place/len(palette)%len(dashes)]
		points := thinned(c)
		for j := range points {
			points[j].Y = scale(points[j].Y)
		}
		p.Add(line(points, style))
		if len(points) <= markedPoints {
			p.Add(&plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: style.Color, Radius: 2.2, Shape: draw.CircleGlyph{}}})
		}
		p.X.Min, p.X.Max = min(p.X.Min, c.X[0]), max(p.X.Max, c.X[len(c.X)-1])
		style.Width = 2
		key = append(key, legendEntry{c.Method, []plot.Thumbnailer{line(nil, style)}})
	}
	if p.X.Min == p.X.Max {
		p.X.Min, p.X.Max = p.X.Min-1, p.X.Max+1
	}
	if p.X.Min > 0 && p.X.Min < 0.05*p.X.Max {
		p.X.Min = 0
	}
	if axes.TargetName != "" {
		y := scale(axes.Target)
		l := line(plotter.XYs{{X: p.X.Min, Y: y}, {X: p.X.Max, Y: y}}, draw.LineStyle{Color: ink, Width: 0.9, Dashes: []vg.Length{4, 3}})
		p.Add(l)
		key = append(key, legendEntry{axes.TargetName, []plot.Thumbnailer{l}})
	}
	axes.extend(p)
	return &Figure{width: figureWidth, height: 7.7*vg.Centimeter + key.height(figureWidth), draw: func(c draw.Canvas) { p.Draw(key.draw(c)) }}, nil
}

// extend extends the ranges of the axes beyond the curves.
func (axes Axes) extend(p *plot.Plot) {
	if axes.bounded {
		p.X.Min, p.X.Max, p.Y.Max = 0, 1, max(p.Y.Max, 1)
		if p.Y.Min <= 0.8 {
			p.Y.Min = 0
		}
	}
	space := 0.05 * (p.Y.Max - p.Y.Min)
	if space < 1e-9*math.Abs(p.Y.Max) || space == 0 {
		space = 0.05 * max(math.Abs(p.Y.Max), 1)
	}
	if !axes.LogY && p.Y.Min >= 0 && p.Y.Min < 0.3*p.Y.Max {
		p.Y.Min = 0
	} else {
		p.Y.Min -= space
	}
	p.Y.Max += space
}

func checkCurve(c Curve, positive bool) error {
	if err := checkFinite("Curves", c.Method+": X", c.X); err != nil {
		return err
	}
	if err := checkFinite("Curves", c.Method+": Y", c.Y); err != nil {
		return err
	}
	if len(c.X) != len(c.Y) {
		return errors.Errorf("report: Curves: %s: X and Y must have the same length, got %d and %d", c.Method, len(c.X), len(c.Y))
	}
	if !slices.IsSorted(c.X) {
		return errors.Errorf("report: Curves: %s: X must not decrease", c.Method)
	}
	if low := slices.Min(c.Y); positive && low <= 0 {
		return errors.Errorf("report: Curves: %s: Y must be positive on a logarithmic axis, got %v", c.Method, low)
	}
	return nil
}

// thinned returns the points of the curve, or the means of at most curvePoints blocks of equal
// length.
func thinned(c Curve) plotter.XYs {
	run := (len(c.X) + curvePoints - 1) / curvePoints
	var points plotter.XYs
	for begin := 0; begin < len(c.X); begin += run {
		end := min(begin+run, len(c.X))
		var mean plotter.XY
		for i := begin; i < end; i++ {
			mean.X += c.X[i] / float64(end-begin)
			mean.Y += c.Y[i] / float64(end-begin)
		}
		points = append(points, mean)
	}
	return points
}

// selection is the risk-coverage curve of one method.
type selection struct {
	Method string
	With   string // name of the out-of-distribution data mixed in, or ""
	Curve  evaluate.SelectiveRisk
}

// riskCoverage draws the error rate among the examples that a method answers against the fraction
// that it answers, with the area under the curve in the legend. Lower curves are better.
func riskCoverage(methods []selection) (*Figure, error) {
	curves := make([]Curve, len(methods))
	for i, m := range methods {
		percent := make([]float64, len(m.Curve.Risk))
		for j, r := range m.Curve.Risk {
			percent[j] = 100 * r
		}
		name := fmt.Sprintf("%s, AURC %.2g %%", m.Method, 100*m.Curve.AURC)
		if m.With != "" {
			name += " with " + m.With
		}
		curves[i] = Curve{Method: name, X: m.Curve.Coverage, Y: percent}
	}
	return Curves(Axes{X: "coverage (fraction of examples answered)", Y: "error rate of the answers, %", bounded: true}, curves)
}

var coverageRow = figureRow{
	File: "coverage", Title: "Selective prediction",
	Caption: "The risk-coverage curve: the error rate if only the answers with the lowest entropy are given. " +
		"Out-of-distribution data, if any, are mixed in, and every answer to them counts as an error.",
	Applies: func(subjects []Subject) bool {
		return all(subjects, Subject.labelledEnough) && sameOut(subjects)
	},
	Draw: func(subjects []Subject) (*Figure, error) {
		methods := make([]selection, len(subjects))
		for i, s := range subjects {
			correct, err := s.In.Correct()
			if err != nil {
				return nil, err
			}
			entropy, with := s.In.Entropy, ""
			if s.Out != nil {
				with = s.Out.Name
				entropy = slices.Concat(entropy, s.Out.Entropy)
				correct = append(correct, make([]bool, s.Out.Len())...)
			}
			curve, err := evaluate.RiskCoverage(entropy, correct)
			if err != nil {
				return nil, err
			}
			methods[i] = selection{s.Name, with, curve}
		}
		return riskCoverage(methods)
	},
}
