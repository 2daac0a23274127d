package report

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pollen-ml/pollen/evaluate"
)

var setsRow = figureRow{
	File: "sets", Title: "Conformal prediction sets",
	Caption: "Conformal prediction sets for {in}: their sizes at level 95 % and, if labels are known, " +
		"the difference between coverage and level, which should be near 0 (of sets that may be empty; others cover more " +
		"at levels below the accuracy).",
	Applies: func(subjects []Subject) bool {
		return calibrated(subjects) && all(subjects, func(s Subject) bool { return s.In.Len() >= minExamples })
	},
	Draw: func(subjects []Subject) (*Figure, error) {
		sizes, err := sizesPanel(subjects)
		if err != nil {
			return nil, err
		}
		panels := []*plot.Plot{sizes}
		var key legend
		for i, s := range subjects {
			key = append(key, legendEntry{s.Name, []plot.Thumbnailer{line(nil, methodLine(i, 1.8))}})
		}
		if all(subjects, Subject.labelled) {
			coverage, err := coveragePanel(subjects)
			if err != nil {
				return nil, err
			}
			panels = append(panels, coverage)
			key = append(key, legendEntry{"coverage = level", []plot.Thumbnailer{line(nil, nominalLine)}})
		}
		f := &Figure{width: figureWidth, height: vg.Length(len(panels))*5.6*vg.Centimeter + 0.4*vg.Centimeter + key.height(figureWidth)}
		f.draw = func(c draw.Canvas) { drawPanels(key.draw(c), panels...) }
		return f, nil
	},
}

var nominalLine = draw.LineStyle{Color: muted, Width: 0.8, Dashes: []vg.Length{4, 3}}

// sizesPanel draws a histogram of the sets' sizes at evaluate.Level.
func sizesPanel(subjects []Subject) (*plot.Plot, error) {
	p := newPlot("classes in the set", "fraction")
	var all [][]int // the number of sets of each size, for each subject
	largest := 2
	remarks := []remark{{"mean", muted}}
	for i, s := range subjects {
		sets, err := s.Calibration.PredictionSets(s.In.Probabilities, s.In.Classes, evaluate.Level, s.Sets)
		if err != nil {
			return nil, err
		}
		counts := make([]int, s.In.Classes+1)
		total := 0
		for _, set := range sets {
			counts[len(set)]++
			total += len(set)
			largest = max(largest, len(set))
		}
		all = append(all, counts)
		mean := fmt.Sprintf("%.2f", float64(total)/float64(len(sets)))
		remarks = append(remarks, remark{mean, mix(methodColor(i), ink, 0.2)})
	}
	for i, counts := range all {
		shares := make(plotter.XYs, largest+2)
		for size := range shares {
			shares[size].X = float64(size) - 0.5
			if size < min(len(counts), largest+1) {
				shares[size].Y = float64(counts[size]) / float64(subjects[i].In.Len())
			}
		}
		shares[largest+1].Y = shares[largest].Y
		p.Y.Max = max(p.Y.Max, 1.05*highest(shares))
		outline := &plotter.Line{XYs: shares, LineStyle: methodLine(i, 1.6), StepStyle: plotter.PostStep}
		outline.FillColor = translucent(methodColor(i), 0.07)
		p.Add(outline)
	}
	p.X.Min, p.X.Max, p.Y.Min = -0.5, float64(largest)+0.5, 0
	p.X.Tick.Marker = plot.TickerFunc(wholeTicks)
	p.Add(heading{fmt.Sprintf("Sizes at %.0f %%", 100*evaluate.Level), ink, remarks})
	return p, nil
}

// wholeTicks returns at most about ten integer ticks.
func wholeTicks(low, high float64) []plot.Tick {
	step := math.Ceil((high - low) / 10)
	var ticks []plot.Tick
	for value := math.Ceil(low/step) * step; value <= high; value += step {
		ticks = append(ticks, plot.Tick{Value: value, Label: tickLabel(value, 0)})
	}
	return ticks
}

// coveragePanel draws coverage minus level, by level.
func coveragePanel(subjects []Subject) (*plot.Plot, error) {
	p := newPlot("level", "percentage points")
	band := chanceBand(subjects)
	p.Add(&plotter.Polygon{XYs: []plotter.XYs{band}, Color: translucent(muted, 0.15)})
	p.Add(line(plotter.XYs{{X: 0.5}, {X: 1}}, nominalLine))
	furthest := 1.0
	for _, point := range band {
		furthest = max(furthest, math.Abs(point.Y))
	}
	for i, s := range subjects {
		points, err := coverageByLevel(s)
		if err != nil {
			return nil, err
		}
		for j := range points {
			points[j].Y = 100 * (points[j].Y - points[j].X)
			furthest = max(furthest, math.Abs(points[j].Y))
		}
		p.Add(line(points, methodLine(i, 1.5)))
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0.5, 1, -1.05*furthest, 1.05*furthest
	p.Add(heading{"Coverage minus level", ink, []remark{{"grey band: 95 % interval by chance", muted}}})
	return p, nil
}

// chanceBand returns the outline of the 95 % interval of coverage minus level, in percentage
// points, for the first subject's numbers of held-out and new examples, both of which are random.
func chanceBand(subjects []Subject) plotter.XYs {
	s := subjects[0]
	var upper, lower plotter.XYs
	for percent := 50; percent <= 100; percent++ {
		level := float64(percent) / 100
		std := math.Sqrt(level * (1 - level) * (1/float64(s.In.Len()) + 1/float64(s.Calibration.Examples)))
		upper = append(upper, plotter.XY{X: level, Y: 196 * std})
		lower = append(lower, plotter.XY{X: level, Y: -196 * std})
	}
	slices.Reverse(lower)
	return append(upper, lower...)
}

// coverageByLevel returns the coverage at the levels from .5 to .99 that the calibration supports.
func coverageByLevel(s Subject) (points plotter.XYs, err error) {
	levels, coverage, err := evaluate.CoverageByLevel(s.Case)
	for i, level := range levels {
		points = append(points, plotter.XY{X: level, Y: coverage[i]})
	}
	return points, err
}
