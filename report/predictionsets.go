package report

import (
	"fmt"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/pollen-ml/pollen/evaluate"
)

var setsRow = FigureRow{
	File: "sets", Title: "Prediction sets",
	Caption: "Sets of plausible classes for {in}: how many classes they have at a level of 95 %, and, " +
		"where labels are known, how often they have the label, which is to be as often as promised.",
	Applies: func(subjects []Subject) bool {
		return calibrated(subjects) && all(subjects, func(s Subject) bool { return s.In.Len() >= fewest })
	},
	Draw: func(subjects []Subject) (*Figure, error) {
		sizes, err := sizesPanel(subjects)
		if err != nil {
			return nil, err
		}
		panels := []*plot.Plot{sizes}
		promised := line(nil, draw.LineStyle{Color: muted, Width: 0.8, Dashes: []vg.Length{4, 3}})
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
			key = append(key, legendEntry{"as promised", []plot.Thumbnailer{promised}})
		}
		f := &Figure{width: figureWidth, height: vg.Length(len(panels))*5.6*vg.Centimeter + 0.4*vg.Centimeter + key.height(figureWidth)}
		f.draw = func(c draw.Canvas) { drawPanels(key.draw(c), panels...) }
		return f, nil
	},
}

// sizesPanel is the histogram of the sets' sizes at evaluate.Level.
func sizesPanel(subjects []Subject) (*plot.Plot, error) {
	p := newPlot("classes in the set", "share")
	var all [][]int // the number of sets of each size, for each subject
	largest := 2
	remarks := []remark{{"mean", muted}}
	for i, s := range subjects {
		sets, err := s.Calibration.Sets(s.In.Probabilities, s.In.Classes, evaluate.Level)
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

// wholeTicks are linearTicks at whole numbers.
func wholeTicks(low, high float64) []plot.Tick {
	return slices.DeleteFunc(linearTicks(low, high), func(t plot.Tick) bool { return t.Value != float64(int(t.Value)) })
}

// coveragePanel is the share of the sets that have the label, by level.
func coveragePanel(subjects []Subject) (*plot.Plot, error) {
	p := newPlot("level", "share that has the label")
	p.Add(line(plotter.XYs{{X: 0.5, Y: 0.5}, {X: 1, Y: 1}}, draw.LineStyle{Color: muted, Width: 0.8, Dashes: []vg.Length{4, 3}}))
	lowest := 0.5
	for i, s := range subjects {
		points, err := coverageByLevel(s)
		if err != nil {
			return nil, err
		}
		for _, point := range points {
			lowest = min(lowest, point.Y)
		}
		p.Add(line(points, methodLine(i, 1.5)))
	}
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0.5, 1, lowest, 1
	p.Add(heading{"Coverage", ink, nil})
	return p, nil
}

// coverageByLevel is at the levels from .5 to .99 for which there are enough held-out examples.
func coverageByLevel(s Subject) (plotter.XYs, error) {
	labels := make([]float64, s.In.Len())
	for n, label := range s.In.Labels {
		labels[n] = s.In.Probabilities[n*s.In.Classes+int(label)]
	}
	var points plotter.XYs
	for percent := 50; percent < 100; percent++ {
		level := float64(percent) / 100
		if !s.Calibration.Supports(level) {
			break
		}
		threshold, err := s.Calibration.ProbabilityThreshold(level)
		if err != nil {
			return nil, err
		}
		covered := 0
		for _, p := range labels {
			if p >= threshold {
				covered++
			}
		}
		points = append(points, plotter.XY{X: level, Y: float64(covered) / float64(len(labels))})
	}
	return points, nil
}
