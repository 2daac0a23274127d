package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
)

// writePage makes the main job's figures and puts them, with the table, on report.html.
func writePage(folder string, outcomes []outcome, table *report.Table, digits, letters *datasets.Dataset) error {
	figures := []struct {
		file, title, caption string
		draw                 func(outcomes []outcome) (*report.Figure, error)
	}{
		{"examples", "What they were shown", "Digits of the test set, and letters, which none of the networks has seen, with each method's guess.",
			func(outcomes []outcome) (*report.Figure, error) { return examplesFigure(outcomes, digits, letters) }},
		{"confidence", "How sure they are", "The confidence of each method. An average of ten-class probabilities cannot be below 0.1: published versions " +
			"of this figure with a mean of 0.015 averaged log-probabilities, over a shuffled set.", confidenceFigure},
		{"coverage", "What silence is worth", "Digits and letters together, where every answer to a letter is wrong: the errors among the answers, " +
			"if only those are given whose predictive entropy is lowest.", coverageFigure},
		{"reliability", "How often they are right", "On digits: accuracy against confidence, in fifteen bins of confidence, " +
			"with 95 % intervals.", reliabilityFigure},
		{"weight", "One weight, early to late", "The optimizer's weight comes to rest; the sampler's keeps moving over the posterior.", densityFigure},
	}
	var titles []string
	var results []result
	for _, o := range outcomes {
		titles, results = append(titles, o.method.title), append(results, o.result)
	}
	page := report.Page{
		Title:    "Who knows that it does not know?",
		Subtitle: fmt.Sprintf("%s trained on digits, shown digits and letters", outcomes[0].method.config.Model),
	}
	page.Sections = append(page.Sections, report.Section{Title: "Scores", Table: table, Text: []string{detectionNote}})
	for _, f := range figures {
		figure, err := f.draw(outcomes)
		if err != nil {
			return err
		}
		if err := figure.Save(filepath.Join(folder, f.file+".png")); err != nil {
			return errors.Wrap(err, "train: figure")
		}
		page.Sections = append(page.Sections, report.Section{Title: f.title, Figures: []report.PageFigure{{Figure: figure, Caption: f.caption}}})
	}
	chains, temperatures, notes, err := summarizeRuns(titles, results)
	if err != nil {
		return err
	}
	page.Sections = append(page.Sections, report.Section{Title: "Chains", Table: chains})
	if temperatures != nil {
		page.Sections = append(page.Sections, report.Section{Title: "Temperatures", Text: notes, Table: temperatures})
	}
	return page.Save(filepath.Join(folder, "report.html"))
}

func densityFigure(outcomes []outcome) (*report.Figure, error) {
	shortest := len(outcomes[0].result.trace)
	for _, o := range outcomes {
		shortest = min(shortest, len(o.result.trace))
	}
	var traces []report.Trace
	for _, o := range outcomes {
		if o.method.config.Sampler != "psgld" {
			traces = append(traces, report.Trace{Method: o.method.title, Values: o.result.trace[:shortest]})
		}
	}
	return report.WeightDensity(outcomes[0].result.watched, traces, 1, traceWindow(shortest))
}

func confidenceFigure(outcomes []outcome) (*report.Figure, error) {
	var methods []report.Confidences
	for _, o := range outcomes {
		methods = append(methods, report.Confidences{
			Method: o.method.title, In: o.assessment.in.uncertainty.Confidence, Out: o.assessment.out.uncertainty.Confidence,
		})
	}
	return report.ConfidenceHistogram("digits", "letters", outcomes[0].assessment.in.data.Classes, methods)
}

// coverageFigure is over digits and letters; all answers to letters are wrong.
func coverageFigure(outcomes []outcome) (*report.Figure, error) {
	var methods []report.Selection
	for _, o := range outcomes {
		in, out := o.assessment.in, o.assessment.out
		labelled, err := evaluate.NewPredictions(in.data.Name, in.probabilities, in.data.Labels, in.data.Classes)
		if err != nil {
			return nil, err
		}
		correct, err := labelled.Correct()
		if err != nil {
			return nil, err
		}
		entropy := slices.Concat(in.uncertainty.Entropy, out.uncertainty.Entropy)
		curve, err := evaluate.RiskCoverage(entropy, append(correct, make([]bool, out.data.Len())...))
		if err != nil {
			return nil, err
		}
		methods = append(methods, report.Selection{Method: o.method.title, Curve: curve})
	}
	return report.RiskCoverage(methods)
}

func reliabilityFigure(outcomes []outcome) (*report.Figure, error) {
	var methods []report.Calibration
	for _, o := range outcomes {
		in := o.assessment.in
		labelled, err := evaluate.NewPredictions(in.data.Name, in.probabilities, in.data.Labels, in.data.Classes)
		if err != nil {
			return nil, err
		}
		bins, err := evaluate.EqualWidthBins(labelled)
		if err != nil {
			return nil, err
		}
		methods = append(methods, report.Calibration{Method: o.method.title, Bins: bins})
	}
	return report.Reliability(methods)
}

// shown is how many digits and how many letters the figure of examples has.
const shown = 5

// examplesFigure shows the first digits, and the first letter of each of some kinds.
func examplesFigure(outcomes []outcome, digits, letters *datasets.Dataset) (*report.Figure, error) {
	var methods []string
	for _, o := range outcomes {
		methods = append(methods, o.method.title)
	}
	var tiles []report.Tile
	for i := range min(shown, digits.Len()) {
		tiles = append(tiles, tileOf(outcomes, digits, i, "digit ", func(a *assessment) *prediction { return a.in }))
	}
	for class := range min(shown, letters.Classes) {
		for i, label := range letters.Labels {
			if int(label) == class {
				tiles = append(tiles, tileOf(outcomes, letters, i, "letter ", func(a *assessment) *prediction { return a.out }))
				break
			}
		}
	}
	return report.ImageGrid(methods, tiles, digits.Height, digits.Width, shown)
}

func tileOf(outcomes []outcome, data *datasets.Dataset, i int, kind string, of func(*assessment) *prediction) report.Tile {
	tile := report.Tile{Title: kind + data.ClassNames[data.Labels[i]], Pixels: data.Image(i)}
	for _, o := range outcomes {
		p := of(o.assessment)
		classes := len(p.probabilities) / p.data.Len()
		best := 0
		for k := range classes {
			if p.probabilities[i*classes+k] > p.probabilities[i*classes+best] {
				best = k
			}
		}
		names := o.assessment.in.data.ClassNames
		tile.Guesses = append(tile.Guesses, report.Guess{Label: names[best], Confidence: p.probabilities[i*classes+best]})
	}
	return tile
}
