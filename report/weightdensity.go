package report

import (
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

// densityWindows is the number of windows of a trace drawn, enough to see it move, few enough to
// tell them apart, and windowShare how many times a trace is as long as one.
const densityWindows, windowShare = 7, 6

// trace is the history of one weight under one method.
type trace struct {
	Method      string
	Values      []float64
	First, Last int // of Subject
}

// step is that before the value at a place.
func (t trace) step(at int) int {
	if t.Last == 0 {
		return at
	}
	return t.First + int(int64(t.Last-t.First)*int64(at)/int64(len(t.Values)))
}

// weightDensity draws where one weight was, early to late: a panel per method, all on one axis,
// with the densities of the weight over windows that roll along its trace, light to dark, a sixth
// of it each. Each density is a Gaussian kernel estimate divided by its own maximum, so that the
// spike of an optimizer does not flatten the width of a posterior.
//
// weight names the axis. Traces have shortestTrace values or more. places are the methods'
// positions, which give them their colours; nil counts them.
func weightDensity(weight string, traces []trace, places []int) (*Figure, error) {
	names := make([]string, len(traces))
	for i, t := range traces {
		names[i] = t.Method
		if err := checkFinite("weightDensity", t.Method, t.Values); err != nil {
			return nil, err
		}
		if len(t.Values) < shortestTrace {
			return nil, errors.Errorf("report: weightDensity: %s has %d values, want %d or more", t.Method, len(t.Values), shortestTrace)
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
		c.FillText(side, vg.Point{X: c.Min.X, Y: c.Center().Y + headingHeight/2}, "density / its maximum")
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
	// A constant trace has no width: draw it as wide as a line.
	narrowest := (largest - smallest) / 1000
	if narrowest == 0 {
		narrowest = max(1e-6, math.Abs(largest)/1000)
	}
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

var weightRow = FigureRow{
	File: "weight", Title: "One weight, early to late",
	Caption: "An optimizer's weight comes to rest; a sampler's keeps moving over the posterior.",
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

// shortestTrace is the least number of values in a trace for densities over windows.
const shortestTrace = 12

// windowStarts spreads the windows evenly from the first to the last position, each once.
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

// windowColor goes from a light tint of a colour, for the first window, to a dark shade of it for
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

// drawWindowKey draws the key of the shades along the top and returns the canvas that remains below
// it.
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
// kernels of Silverman's bandwidth .9 min(sd, interquartile range/1.34) n^-1/5, but of at least the
// given one, from three bandwidths below the smallest value to three above the largest.
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
	// A bandwidth below the points' distance would show the points instead of the density.
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
