package report

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// densityWindows is the number of windows of a trace that are drawn: enough to see movement, few
// enough to distinguish. The length of a window is 1/windowShare of the trace.
const densityWindows, windowShare = 7, 6

// trace is the history of one weight under one method.
type trace struct {
	Method      string
	Values      []float64
	First, Last int // of Subject
}

// step returns the number of steps before the value at an index.
func (t trace) step(at int) int {
	if t.Last == 0 {
		return at
	}
	return t.First + int(int64(t.Last-t.First)*int64(at)/int64(len(t.Values)))
}

// weightDensity draws the density of one weight over time: a panel per method, all on one axis,
// with densities over rolling windows of a sixth of the trace, early ones light, late ones dark.
// Each density is a Gaussian kernel estimate divided by its own maximum, so that the spike of an
// optimizer does not flatten the density of a posterior.
//
// weight is the name of the axis. Traces must have at least shortestTrace values. places are the
// methods' positions, which determine their colours; nil means 0, 1, ...
func weightDensity(weight string, traces []trace, places []int) (*Figure, error) {
	names := make([]string, len(traces))
	for i, t := range traces {
		names[i] = t.Method
		if err := checkFinite("weightDensity", t.Method, t.Values); err != nil {
			return nil, err
		}
		if len(t.Values) < shortestTrace {
			return nil, errors.Errorf("report: weightDensity: %s must have at least %[3]d values, got %[2]d", t.Method, len(t.Values), shortestTrace)
		}
	}
	if err := checkMethods("weightDensity", names); err != nil {
		return nil, err
	}
	panels := densityPanels(weight, traces, places)
	f := &Figure{width: figureWidth, height: vg.Length(len(traces))*2.8*vg.Centimeter + 2*vg.Centimeter}
	f.draw = func(c draw.Canvas) {
		c = drawWindowKey(c)
		side := textStyle(labelSize, ink, text.XCenter, text.YTop)
		side.Rotation = math.Pi / 2
		c.FillText(side, vg.Point{X: c.Min.X, Y: c.Center().Y + headingHeight/2}, "relative density")
		drawPanels(draw.Crop(c, 16, 0, 0, 0), panels...)
	}
	return f, nil
}

// densityPanels returns one panel per trace, all with the same axes.
func densityPanels(weight string, traces []trace, places []int) []*plot.Plot {
	smallest, largest := math.Inf(1), math.Inf(-1)
	for _, t := range traces {
		smallest, largest = min(smallest, slices.Min(t.Values)), max(largest, slices.Max(t.Values))
	}
	// A constant trace has no width: it is drawn as a line.
	narrowest := cmp.Or((largest-smallest)/1000, max(1e-6, math.Abs(largest)/1000))
	low, high := smallest-30*narrowest, largest+30*narrowest
	panels := make([]*plot.Plot, len(traces))
	for i, t := range traces {
		panels[i] = newPlot(weight, "")
		panels[i].Y.Tick.Marker = plot.ConstantTicks{{Value: 0, Label: "0"}, {Value: 0.5, Label: "0.5"}, {Value: 1, Label: "1"}}
		length := len(t.Values)
		window := length / windowShare
		starts := windowStarts(length, window)
		for w, start := range starts {
			curve := relativeDensity(t.Values[start:start+window], narrowest)
			low, high = min(low, curve[0].X), max(high, curve[len(curve)-1].X)
			c := windowColor(methodColor(placed(places, i)), w, len(starts))
			density := line(curve, draw.LineStyle{Color: c, Width: 1.1})
			density.FillColor = translucent(c, 0.08)
			panels[i].Add(density)
		}
		mean, std := stat.MeanStdDev(t.Values[length-window:], nil)
		last := remark{fmt.Sprintf("steps %d to %d: mean %.3g, standard deviation %.2g", t.step(length-window)+1, t.step(length), mean, std), muted}
		panels[i].Add(heading{t.Method, windowColor(methodColor(placed(places, i)), 1, 2), []remark{last}})
	}
	for i, p := range panels {
		p.X.Min, p.X.Max = low, high
		p.Y.Min, p.Y.Max = 0, 1.04
		if i < len(panels)-1 {
			hideTickLabels(&p.X)
		}
	}
	return panels
}

var weightRow = figureRow{
	File: "weight", Title: "Trace of one weight",
	Caption: "The density of one weight over windows of the trace, each divided by its maximum. " +
		"An optimizer's weight converges to a point; a Markov chain keeps moving over the posterior.",
	Applies: func(subjects []Subject) bool {
		return !all(subjects, func(s Subject) bool { return len(s.Trace) < shortestTrace })
	},
	Draw: func(subjects []Subject) (*Figure, error) {
		var traces []trace
		var places []int
		weight := ""
		for i, s := range subjects {
			if len(s.Trace) < shortestTrace {
				continue
			}
			name := s.Name
			if s.Optimizer {
				name += ", an optimizer"
			}
			traces, places = append(traces, trace{name, s.Trace, s.First, s.Last}), append(places, i)
			if len(traces) > 1 && s.Watched != weight || s.Watched == "" {
				weight = "weight"
			} else {
				weight = s.Watched
			}
		}
		return weightDensity(weight, traces, places)
	},
}

// shortestTrace is the smallest number of values of a trace for densities over windows.
const shortestTrace = 12

// windowStarts returns the distinct starts of windows that are evenly spaced over the trace.
func windowStarts(length, window int) []int {
	var starts []int
	for w := range densityWindows {
		start := w * (length - window) / (densityWindows - 1)
		if w == 0 || start > starts[len(starts)-1] {
			starts = append(starts, start)
		}
	}
	return starts
}

// windowColor returns the colour of a window, from a light tint for the first to a dark shade for
// the last.
func windowColor(c color.RGBA, window, windows int) color.RGBA {
	age := 1.0
	if windows > 1 {
		age = float64(window) / float64(windows-1)
	}
	if age < 0.6 {
		return mix(mix(color.RGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff}, c, 0.3), c, age/0.6)
	}
	return mix(c, color.RGBA{A: 0xff}, 0.45*(age-0.6)/0.4)
}

// drawWindowKey draws a legend of the shades along the top and returns the canvas below it.
func drawWindowKey(c draw.Canvas) draw.Canvas {
	const swatch, height = vg.Length(13), vg.Length(9)
	style := textStyle(tickSize, ink, text.XLeft, text.YCenter)
	x, y := c.Min.X+16, c.Max.Y-7
	const first, last = "first sixth of the steps", "last sixth"
	c.FillText(style, vg.Point{X: x, Y: y}, first)
	x += style.Width(first) + 6
	for w := range densityWindows {
		box := vg.Rectangle{Min: vg.Point{X: x, Y: y - height/2}, Max: vg.Point{X: x + swatch, Y: y + height/2}}
		c.SetColor(windowColor(muted, w, densityWindows))
		c.Fill(box.Path())
		x += swatch
	}
	c.FillText(style, vg.Point{X: x + 6, Y: y}, last)
	return draw.Crop(c, 0, 0, 0, -18)
}

// relativeDensity estimates the density of the values, relative to its maximum, with Gaussian
// kernels of Silverman's bandwidth .9 min(sd, interquartile range/1.34) n^-1/5, at least narrowest.
// It extends from three bandwidths below the smallest value to three above the largest.
func relativeDensity(values []float64, narrowest float64) plotter.XYs {
	const points = 240
	sorted := slices.Sorted(slices.Values(values))
	count := len(sorted)
	spread := stat.StdDev(sorted, nil)
	quartiles := stat.Quantile(0.75, stat.Empirical, sorted, nil) - stat.Quantile(0.25, stat.Empirical, sorted, nil)
	if quartiles > 0 {
		spread = min(spread, quartiles/1.34)
	}
	low, high := sorted[0], sorted[count-1]
	// A bandwidth below the distance of the curve's points would show the points instead of the
	// density.
	bandwidth := max(0.9*spread*math.Pow(float64(count), -0.2), narrowest, (high-low)/100)
	low, high = low-3*bandwidth, high+3*bandwidth
	curve := make(plotter.XYs, points)
	top := 0.0
	for i := range curve {
		x := low + (high-low)*float64(i)/(points-1)
		sum := 0.0
		for _, v := range sorted {
			z := (x - v) / bandwidth
			sum += math.Exp(-z * z / 2)
		}
		curve[i] = plotter.XY{X: x, Y: sum}
		top = max(top, sum)
	}
	for i := range curve {
		curve[i].Y /= top
	}
	return curve
}
