package report

import (
	"math"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// curvePoints bounds the points of a drawn curve; there are fewer pixels than that worth telling apart.
const curvePoints = 600

// Curve is a quantity of one method, Y, at increasing X, such as steps.
type Curve struct {
	Method string
	X, Y   []float64
}

// Axes describes the axes of Curves.
type Axes struct {
	X, Y string
	// LogY sets the Y axis to a logarithmic scale; all values must then be positive.
	LogY bool
	// Target, when TargetName is set, is where the curves ought to be, such as temperature 1: drawn as a dashed line.
	Target     float64
	TargetName string
}

// Curves draws quantities such as loss, accuracy or temperature against the step, for several methods. A curve of more
// than 600 points is drawn as the means of equal runs of neighbours.
func Curves(axes Axes, curves []Curve) (*Figure, error) {
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
	p := newPlot(axes.X, axes.Y)
	if axes.LogY {
		p.Y.Scale = plot.LogScale{}
		p.Y.Tick.Marker = plot.TickerFunc(logTicks)
	}
	var entries []legendEntry
	for i, c := range curves {
		style := methodLine(i, 1.5)
		style.Dashes = dashes[i/len(palette)%len(dashes)]
		l := line(thinned(c), style)
		p.Add(l)
		entries = append(entries, legendEntry{c.Method, []plot.Thumbnailer{l}})
	}
	if axes.TargetName != "" {
		if math.IsNaN(axes.Target) || math.IsInf(axes.Target, 0) || axes.LogY && axes.Target <= 0 {
			return nil, errors.Errorf("report: Curves: target %q is %v, want a finite number, positive on a logarithmic axis", axes.TargetName, axes.Target)
		}
		l := line(plotter.XYs{{X: p.X.Min, Y: axes.Target}, {X: p.X.Max, Y: axes.Target}},
			draw.LineStyle{Color: ink, Width: 0.9, Dashes: []vg.Length{4, 3}})
		p.Add(l)
		entries = append(entries, legendEntry{axes.TargetName, []plot.Thumbnailer{l}})
	}
	widenY(&p.Y, axes.LogY)
	f := &Figure{width: figureWidth, height: 8.5 * vg.Centimeter}
	f.draw = func(c draw.Canvas) { p.Draw(drawLegend(c, entries)) }
	return f, nil
}

func checkCurve(c Curve, positive bool) error {
	if err := checkFinite("Curves", c.Method+": X", c.X); err != nil {
		return err
	}
	if err := checkFinite("Curves", c.Method+": Y", c.Y); err != nil {
		return err
	}
	if len(c.X) != len(c.Y) {
		return errors.Errorf("report: Curves: %s: got %d X and %d Y, want as many", c.Method, len(c.X), len(c.Y))
	}
	if !slices.IsSorted(c.X) {
		return errors.Errorf("report: Curves: %s: X decreases, want increasing values", c.Method)
	}
	if low := slices.Min(c.Y); positive && low <= 0 {
		return errors.Errorf("report: Curves: %s: Y goes down to %v, want positive values on a logarithmic axis", c.Method, low)
	}
	return nil
}

// thinned returns the points of the curve, or the means of at most curvePoints equal runs of them.
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

// widenY leaves some space above and below the data, but starts at 0 where the data nearly do.
func widenY(axis *plot.Axis, logarithmic bool) {
	if logarithmic {
		factor := math.Pow(max(axis.Max/axis.Min, 1.5), 0.04)
		axis.Min, axis.Max = axis.Min/factor, axis.Max*factor
		return
	}
	space := max(axis.Max-axis.Min, 1e-9*math.Abs(axis.Max), 1e-12) * 0.05
	if axis.Min >= 0 && axis.Min < 0.3*axis.Max {
		axis.Min = 0
	} else {
		axis.Min -= space
	}
	axis.Max += space
}
