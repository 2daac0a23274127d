package report

import (
	"fmt"
	"math"

	"github.com/pkg/errors"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pollen-ml/pollen/evaluate"
)

// Calibration is a reliability diagram's data for one method.
type Calibration struct {
	Method string
	Bins   []evaluate.Bin
}

var markers = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.RingGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{},
}

// Reliability draws accuracy against confidence, bin by bin, with the diagonal of perfect calibration. A bar is the 95 %
// interval (Wilson 1927) of an accuracy measured on as many examples as the bin holds; empty bins are left out.
func Reliability(methods []Calibration) (*Figure, error) {
	names := make([]string, len(methods))
	p := newPlot("confidence", "accuracy")
	diagonal := line(plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}}, draw.LineStyle{Color: muted, Width: 0.8, Dashes: []vg.Length{4, 3}})
	p.Add(diagonal)
	entries := []legendEntry{{"calibrated", []plot.Thumbnailer{diagonal}}}
	lowest := 1.0
	for i, m := range methods {
		names[i] = m.Method
		points, err := reliabilityPoints(m)
		if err != nil {
			return nil, err
		}
		lowest = min(lowest, points[0].X)
		style := methodLine(i, 1.4)
		style.Dashes = nil
		joined := line(points, style)
		dots := &plotter.Scatter{XYs: points, GlyphStyle: draw.GlyphStyle{Color: style.Color, Radius: 3, Shape: markers[i%len(markers)]}}
		for _, b := range m.Bins {
			if b.Count > 0 {
				low, high := wilson(b.Accuracy, b.Count)
				p.Add(line(plotter.XYs{{X: b.Confidence, Y: low}, {X: b.Confidence, Y: high}},
					draw.LineStyle{Color: translucent(methodColor(i), 0.55), Width: 1.2}))
			}
		}
		p.Add(joined, dots)
		entries = append(entries, legendEntry{m.Method, []plot.Thumbnailer{joined, dots}})
	}
	if err := checkMethods("Reliability", names); err != nil {
		return nil, err
	}
	p.X.Min, p.X.Max = max(0, math.Floor(lowest*10-0.5)/10), 1
	p.Y.Min, p.Y.Max = 0, 1
	f := &Figure{width: 11 * vg.Centimeter, height: 10.5 * vg.Centimeter}
	f.draw = func(c draw.Canvas) { p.Draw(drawLegend(c, entries)) }
	return f, nil
}

// reliabilityPoints returns (confidence, accuracy) of the bins that are not empty, of which there must be one.
func reliabilityPoints(m Calibration) (plotter.XYs, error) {
	var points plotter.XYs
	for i, b := range m.Bins {
		if b.Count < 0 || !(b.Confidence >= 0 && b.Confidence <= 1+1e-4) || !(b.Accuracy >= 0 && b.Accuracy <= 1) {
			return nil, errors.Errorf("report: Reliability: %s: bin %d has %d examples, confidence %v and accuracy %v, want a count and two shares",
				m.Method, i, b.Count, b.Confidence, b.Accuracy)
		}
		if b.Count > 0 {
			points = append(points, plotter.XY{X: b.Confidence, Y: b.Accuracy})
		}
	}
	if len(points) == 0 {
		return nil, errors.Errorf("report: Reliability: %s: got %d bins without an example, want at least 1 with one", m.Method, len(m.Bins))
	}
	return points, nil
}

// wilson returns the 95 % interval of a share measured on count examples.
func wilson(share float64, count int) (low, high float64) {
	const z = 1.96
	n := float64(count)
	centre := (share + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(share*(1-share)/n+z*z/(4*n*n))
	return centre - half, centre + half
}

// Selection is a risk-coverage curve for one method.
type Selection struct {
	Method string
	Curve  evaluate.SelectiveRisk
}

// RiskCoverage draws the error rate among the examples a method answers against the share of examples it answers, with
// the area under the curve in the legend: the further down and right, the better it knows what it does not know.
func RiskCoverage(methods []Selection) (*Figure, error) {
	curves := make([]Curve, len(methods))
	for i, m := range methods {
		percent := make([]float64, len(m.Curve.Risk))
		for j, r := range m.Curve.Risk {
			percent[j] = 100 * r
		}
		curves[i] = Curve{Method: fmt.Sprintf("%s, AURC %.2g %%", m.Method, 100*m.Curve.AURC), X: m.Curve.Coverage, Y: percent}
	}
	return Curves(Axes{X: "coverage (share of examples answered)", Y: "error rate of the answers, %"}, curves)
}
