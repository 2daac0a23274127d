package report

import (
	"fmt"
	"image/color"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pollen-ml/pollen/evaluate"
)

var inDistributionRow = figureRow{
	File: "indistribution", Title: "In and out of distribution",
	Caption: "Histograms, on a square-root scale, of the nonconformity score: how unlike the training images " +
		"an image is. Scores beyond the right edge count at it. Images up to the black line are classified as in " +
		"distribution. For runs without a detector or a calibration: the entropy of the averaged " +
		"probabilities, up to the logarithm of the number of classes, which decides nothing.",
	Applies: func(subjects []Subject) bool {
		return sameData(subjects) && sameClasses(subjects) && sameOut(subjects) &&
			subjects[0].In.Len() >= minExamples && (subjects[0].Out != nil || decided(subjects))
	},
	Draw: func(subjects []Subject) (*Figure, error) {
		in, out := dataNames(subjects)
		panels := make([]*plot.Plot, len(subjects))
		for i, s := range subjects {
			p, err := inDistributionPanel(s, i, in, out, decided(subjects))
			if err != nil {
				return nil, err
			}
			if i < len(subjects)-1 {
				hideTickLabels(&p.X)
			}
			panels[i] = p
		}
		inColor, outColor := muted, muted // of all panels together, which have a colour each
		if len(subjects) == 1 {
			inColor, outColor = methodColor(0), mix(methodColor(0), ink, 0.35)
		}
		key := legend{{in, []plot.Thumbnailer{line(nil, draw.LineStyle{Color: inColor, Width: 2})}}}
		if subjects[0].Out != nil {
			key = append(key, legendEntry{out, []plot.Thumbnailer{line(nil, outLine(outColor))}})
		}
		if decided(subjects) {
			key = append(key, legendEntry{
				fmt.Sprintf("in-distribution threshold, %.0f %%", 100*evaluate.Level), []plot.Thumbnailer{line(nil, thresholdLine)},
			})
		}
		f := &Figure{width: figureWidth, height: vg.Length(len(panels))*3.2*vg.Centimeter + 1.6*vg.Centimeter + key.height(figureWidth)}
		f.draw = func(c draw.Canvas) { drawPanels(key.draw(c), panels...) }
		return f, nil
	},
}

var thresholdLine = draw.LineStyle{Color: ink, Width: 1.2}

// calibrated reports whether all subjects have enough held-out examples for the level.
func calibrated(subjects []Subject) bool {
	return all(subjects, func(s Subject) bool {
		return s.Assessment != nil && s.Calibration != nil && s.Calibration.Supports(evaluate.Level)
	})
}

// decided reports whether all subjects have decisions about what is in distribution.
func decided(subjects []Subject) bool {
	return calibrated(subjects) && all(subjects, func(s Subject) bool {
		return s.Calibration.Decides(evaluate.Level) && s.In.Nonconformity != nil && (s.Out == nil || s.Out.Nonconformity != nil)
	})
}

// The range of nonconformity scores that is drawn, up to a multiple of the threshold. The median of
// training images is near 0.
const (
	lowestNonconformity   = -1
	nonconformityMultiple = 3
)

func inDistributionPanel(s Subject, i int, in, out string, decided bool) (*plot.Plot, error) {
	score := func(p *evaluate.Predictions) []float64 { return p.Entropy }
	p, low, top, threshold := newPlot("entropy, nats", "fraction"), 0.0, math.Log(float64(s.In.Classes)), math.NaN()
	if decided {
		var err error
		if threshold, err = s.Calibration.NonconformityThreshold(evaluate.Level); err != nil {
			return nil, err
		}
		score = func(p *evaluate.Predictions) []float64 { return p.Nonconformity }
		p, low, top = newPlot("nonconformity", "fraction"), lowestNonconformity, nonconformityMultiple*max(threshold, 1)
	}
	p.Y.Tick.Marker = plot.TickerFunc(rootTicks)
	shares := roots(histogram(score(s.In), low, top, inDistributionBins))
	p.Y.Max = highest(shares)
	known := &plotter.Line{XYs: shares, LineStyle: draw.LineStyle{Color: methodColor(i), Width: 1.6}, StepStyle: plotter.PostStep}
	known.FillColor = translucent(methodColor(i), 0.15)
	p.Add(known)
	if s.Out != nil {
		shares = roots(histogram(score(s.Out), low, top, inDistributionBins))
		p.Y.Max = max(p.Y.Max, highest(shares))
		p.Add(&plotter.Line{XYs: shares, LineStyle: outLine(mix(methodColor(i), ink, 0.35)), StepStyle: plotter.PostStep})
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = low, top, 0, 1.05*p.Y.Max
	var remarks []remark
	if decided {
		p.Add(line(plotter.XYs{{X: threshold, Y: 0}, {X: threshold, Y: p.Y.Max}}, thresholdLine))
		accepted := fmt.Sprintf("in distribution: %.1f %% of %s", 100*shareUpTo(s.In.Nonconformity, threshold), in)
		if s.Out != nil {
			accepted += fmt.Sprintf(", %.1f %% of %s", 100*shareUpTo(s.Out.Nonconformity, threshold), out)
		}
		remarks = append(remarks, remark{accepted, muted})
	}
	p.Add(heading{s.Name, mix(methodColor(i), ink, 0.2), remarks})
	return p, nil
}

// outLine is the line style of out-of-distribution data.
func outLine(c color.RGBA) draw.LineStyle {
	return draw.LineStyle{Color: c, Width: 1.6, Dashes: []vg.Length{4, 2}}
}

const inDistributionBins = 40

func shareUpTo(values []float64, threshold float64) float64 {
	count := 0
	for _, v := range values {
		if v <= threshold {
			count++
		}
	}
	return float64(count) / float64(len(values))
}

// histogram returns the fractions of values in bins of equal width as an outline: a point at the
// left edge of each bin, and one at the right end. Values outside the range count in the outermost
// bins.
func histogram(values []float64, low, high float64, bins int) plotter.XYs {
	shares := make(plotter.XYs, bins+1)
	for b := range shares {
		shares[b].X = low + (high-low)*float64(b)/float64(bins)
	}
	for _, v := range values {
		b := int(min(max((v-low)/(high-low), 0), 1) * float64(bins)) // a conversion of large numbers is undefined
		shares[min(b, bins-1)].Y += 1 / float64(len(values))
	}
	shares[bins].Y = shares[bins-1].Y
	return shares
}

// roots replaces each Y by its square root, so that a spike does not flatten the rest.
func roots(points plotter.XYs) plotter.XYs {
	for i := range points {
		points[i].Y = math.Sqrt(points[i].Y)
	}
	return points
}

// rootTicks returns ticks for an axis of square roots of fractions, without those whose labels
// would overlap.
func rootTicks(low, high float64) []plot.Tick {
	const apart = 0.14 // of the axis
	var ticks []plot.Tick
	lowest := low
	for _, share := range []float64{0, 0.01, 0.05, 0.2, 0.5, 1} {
		if value := math.Sqrt(share); value >= lowest && value <= high {
			ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(share, 'g', 2, 64)})
			lowest = value + apart*(high-low)
		}
	}
	return ticks
}

func highest(points plotter.XYs) float64 {
	top := 0.0
	for _, p := range points {
		top = max(top, p.Y)
	}
	return top
}
