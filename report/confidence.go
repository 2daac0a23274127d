package report

import (
	"fmt"
	"math"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// confidences has the largest predicted probabilities of one method on in-distribution examples
// and, optionally, on out-of-distribution examples.
type confidences struct {
	Method  string
	In, Out []float64
}

// confidenceHistogram draws histograms of the confidence of each method: a panel for
// out-of-distribution examples above one for in-distribution examples, in bins of about .05 from
// 1/classes to 1. The means are above each panel, in the methods' colours and order. in and out are
// the names of the data. A panel is omitted if no method has values for it.
//
// It returns an error for a confidence below 1/classes or above 1, since the largest probability,
// or an average of largest probabilities, cannot be outside this range.
func confidenceHistogram(in, out string, classes int, methods []confidences) (*Figure, error) {
	if classes < 2 {
		return nil, errors.Errorf("report: confidence: must have at least 2 classes, got %d", classes)
	}
	names := make([]string, len(methods))
	for i, m := range methods {
		names[i] = m.Method
	}
	if err := checkMethods("confidence", names); err != nil {
		return nil, err
	}
	var panels []*plot.Plot
	for _, kind := range []struct {
		name string
		of   func(confidences) []float64
	}{{out, func(m confidences) []float64 { return m.Out }}, {in, func(m confidences) []float64 { return m.In }}} {
		known := 0
		for _, m := range methods {
			if kind.of(m) == nil {
				continue
			}
			known++
			if err := checkConfidences(m.Method+", "+kind.name, classes, kind.of(m)); err != nil {
				return nil, err
			}
		}
		if known != 0 && known != len(methods) {
			return nil, errors.Errorf("report: confidence: all methods or none must have confidences on %[3]s, got %[1]d of %[2]d",
				known, len(methods), kind.name)
		}
		if known > 0 {
			panels = append(panels, confidencePanel(kind.name, classes, methods, kind.of))
		}
	}
	if len(panels) == 0 {
		return nil, errors.New("report: confidence: must have confidences, got none")
	}
	for _, p := range panels[:len(panels)-1] {
		hideTickLabels(&p.X)
	}
	key := make(legend, len(methods))
	for i, m := range methods {
		key[i] = legendEntry{m.Method, []plot.Thumbnailer{line(nil, methodLine(i, 1.8))}}
	}
	f := &Figure{width: figureWidth, height: vg.Length(len(panels))*4.6*vg.Centimeter + 1.4*vg.Centimeter + key.height(figureWidth)}
	f.draw = func(c draw.Canvas) { drawPanels(key.draw(c), panels...) }
	return f, nil
}

var confidenceRow = figureRow{
	File: "confidence", Title: "Confidence",
	Caption: "Histograms of the confidence, the largest predicted probability, which is at least 1/K for K classes. On out-of-distribution data it should be low.",
	Applies: func(subjects []Subject) bool {
		return sameData(subjects) && sameClasses(subjects) && sameOut(subjects)
	},
	Draw: func(subjects []Subject) (*Figure, error) {
		in, out := dataNames(subjects)
		methods := make([]confidences, len(subjects))
		for i, s := range subjects {
			methods[i] = confidences{Method: s.Name, In: s.In.Confidence}
			if s.Out != nil {
				methods[i].Out = s.Out.Confidence
			}
		}
		return confidenceHistogram(in, out, subjects[0].In.Classes, methods)
	},
}

func checkConfidences(what string, classes int, values []float64) error {
	if err := checkFinite("confidence", what, values); err != nil {
		return err
	}
	for i, v := range values {
		// A margin for the rounding of float32 probabilities.
		if v < 1/float64(classes)-1e-4 || v > 1+1e-4 {
			return errors.Errorf("report: confidence: %s: confidence must be in [1/%[4]d, 1], got %[3]v at %[2]d", what, i, v, classes)
		}
	}
	return nil
}

func confidencePanel(kind string, classes int, methods []confidences, of func(confidences) []float64) *plot.Plot {
	p := newPlot("confidence (largest probability)", "fraction of "+kind)
	remarks := []remark{{"mean", muted}}
	top := 0.0
	for i, m := range methods {
		shares := confidenceShares(of(m), classes)
		for _, s := range shares {
			top = math.Max(top, s.Y)
		}
		outline := &plotter.Line{XYs: shares, LineStyle: methodLine(i, 1.6), StepStyle: plotter.PostStep}
		outline.FillColor = translucent(methodColor(i), 0.07)
		p.Add(outline)
		remarks = append(remarks, remark{fmt.Sprintf("%.3f", stat.Mean(of(m), nil)), mix(methodColor(i), ink, 0.2)})
	}
	p.Add(heading{kind, ink, remarks})
	p.X.Min, p.X.Max = 1/float64(classes), 1
	p.Y.Min, p.Y.Max = 0, top*1.05
	return p
}

// confidenceShares returns a histogram from 1/classes to 1 in bins of about .05.
func confidenceShares(values []float64, classes int) plotter.XYs {
	low := 1 / float64(classes)
	return histogram(values, low, 1, max(1, int(math.Round((1-low)/0.05))))
}
