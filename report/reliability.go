package report

import (
	"math"

	"github.com/pkg/errors"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pollen-ml/pollen/evaluate"
)

// diagram has the reliability diagram of one method.
type diagram struct {
	Method string
	Bins   []evaluate.Bin
}

// joinedCount is the minimum number of examples of a bin that is joined to others by lines.
const joinedCount = 10

var markers = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.CrossGlyph{},
}

// reliability draws accuracy against confidence, bin by bin, with the diagonal of perfect
// calibration. A bar is the 95 % interval (Wilson 1927) of the bin's accuracy. Empty bins are
// omitted. Both axes begin a little below the smallest confidence and the lowest end of a bar.
func reliability(methods []diagram) (*Figure, error) {
	names := make([]string, len(methods))
	p := newPlot("confidence", "accuracy")
	diagonal := line(plotter.XYs{{X: 0, Y: 0}, {X: 1, Y: 1}}, draw.LineStyle{Color: muted, Width: 0.8, Dashes: []vg.Length{4, 3}})
	p.Add(diagonal)
	key := legend{{"calibrated", []plot.Thumbnailer{diagonal}}}
	lowest := 1.0
	for i, m := range methods {
		names[i] = m.Method
		end, err := reliabilityLowest(m)
		if err != nil {
			return nil, err
		}
		lowest = min(lowest, end)
		style := methodLine(i, 1.4)
		style.Dashes = nil
		var many, few plotter.XYs
		glyph := draw.GlyphStyle{Color: style.Color, Radius: 3, Shape: markers[i%len(markers)]}
		for _, b := range m.Bins {
			switch point := (plotter.XY{X: b.Confidence, Y: b.Accuracy}); {
			case b.Count >= joinedCount:
				many = append(many, point)
			case b.Count > 0:
				few = append(few, point)
			}
			if b.Count > 0 {
				low, high := evaluate.FractionInterval(b.Accuracy, b.Count)
				p.Add(line(plotter.XYs{{X: b.Confidence, Y: low}, {X: b.Confidence, Y: high}},
					draw.LineStyle{Color: translucent(methodColor(i), 0.55), Width: 1.2}))
			}
		}
		joined, dots := line(many, style), &plotter.Scatter{XYs: many, GlyphStyle: glyph}
		small := glyph
		small.Radius, small.Color = 1.8, translucent(methodColor(i), 0.6)
		p.Add(joined, dots, &plotter.Scatter{XYs: few, GlyphStyle: small})
		key = append(key, legendEntry{m.Method, []plot.Thumbnailer{joined, dots}})
	}
	if err := checkMethods("Reliability", names); err != nil {
		return nil, err
	}
	p.X.Min, p.X.Max = max(0, math.Floor(lowest*10-0.5)/10), 1
	p.Y.Min, p.Y.Max = p.X.Min, p.X.Max
	const width = 10.5 * vg.Centimeter
	f := &Figure{width: width, height: width - 0.8*vg.Centimeter + key.height(width)}
	f.draw = func(c draw.Canvas) {
		c = key.draw(c)
		data := p.DataCanvas(c).Size()
		p.Draw(draw.Crop(c, 0, min(0, data.Y-data.X), 0, min(0, data.X-data.Y))) // square
	}
	return f, nil
}

// reliabilityLowest returns the smallest value that is drawn for the non-empty bins. It returns an
// error if there is none, or for invalid bins.
func reliabilityLowest(m diagram) (float64, error) {
	lowest := math.Inf(1)
	for i, b := range m.Bins {
		if b.Count < 0 || !(b.Confidence >= 0 && b.Confidence <= 1+1e-4) || !(b.Accuracy >= 0 && b.Accuracy <= 1) {
			return 0, errors.Errorf("report: reliability: %s: bin %d: count must not be negative, confidence and accuracy must be in [0, 1], got %d, %v, %v",
				m.Method, i, b.Count, b.Confidence, b.Accuracy)
		}
		if b.Count > 0 {
			low, _ := evaluate.FractionInterval(b.Accuracy, b.Count) // below the accuracy
			lowest = min(lowest, b.Confidence, low)
		}
	}
	if math.IsInf(lowest, 1) {
		return 0, errors.Errorf("report: reliability: %s: must have at least 1 bin with an example, got %d empty bins", m.Method, len(m.Bins))
	}
	return lowest, nil
}

var reliabilityRow = figureRow{
	File: "reliability", Title: "Reliability diagram",
	Caption: "Calibration on {in}: accuracy against confidence, in fifteen bins of confidence, with 95 % intervals. " +
		"Bins of fewer than 10 images are small and not joined. Answers have the scaled probabilities, if there are any.",
	Applies: func(subjects []Subject) bool { return all(subjects, Subject.labelledEnough) },
	Draw: func(subjects []Subject) (*Figure, error) {
		var methods []diagram
		add := func(name string, p *evaluate.Predictions) error {
			bins, err := evaluate.EqualWidthBins(p)
			methods = append(methods, diagram{name, bins})
			return err
		}
		for _, s := range subjects {
			if err := add(s.Name, s.In); err != nil {
				return nil, err
			}
		}
		if s := subjects[0]; len(subjects) == 1 && s.Calibration != nil {
			scaled, err := s.Calibration.Scaled(s.In)
			if err != nil {
				return nil, err
			}
			if err := add(s.Name+", scaled", scaled); err != nil {
				return nil, err
			}
		}
		return reliability(methods)
	},
}
