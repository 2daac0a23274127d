package main

import (
	"fmt"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
)

// writePage makes the main job's figures and puts them, with the tables, on report.html.
func writePage(folder string, outcomes []outcome, digits, letters *datasets.Dataset) error {
	var titles []string
	var results []result
	var subjects []report.Subject
	for _, o := range outcomes {
		titles, results = append(titles, o.method.title), append(results, o.result)
		s, err := subjectOf(o, digits, letters)
		if err != nil {
			return err
		}
		subjects = append(subjects, s)
	}
	chains, temperatures, notes, err := summarizeRuns(titles, results)
	if err != nil {
		return err
	}
	sections := []report.Section{{Title: "Chains", Table: chains}}
	if temperatures != nil {
		sections = append(sections, report.Section{Title: "Temperatures", Text: notes, Table: temperatures})
	}
	return report.WritePage(folder, "Who knows that it does not know?",
		fmt.Sprintf("%s trained on digits, shown digits and letters", outcomes[0].method.config.Model), subjects, sections...)
}

func subjectOf(o outcome, digits, letters *datasets.Dataset) (report.Subject, error) {
	predictions := func(name string, p *prediction) *evaluate.Predictions {
		return &evaluate.Predictions{
			Name: name, Probabilities: p.probabilities, Labels: p.data.Labels, Classes: digits.Classes,
			Samples: p.samples, Uncertainty: p.uncertainty,
		}
	}
	images := func(d *datasets.Dataset) *report.Pictures {
		return &report.Pictures{
			Pixels: d.Images, Channels: d.Channels, Height: d.Height, Width: d.Width, Ink: true, ClassNames: d.ClassNames,
		}
	}
	a, err := evaluate.Assess(evaluate.Case{
		In: predictions("digits", o.assessment.in), Out: predictions("letters", o.assessment.out),
	})
	s := report.Subject{
		Name: o.method.title, Optimizer: !o.method.config.isSampler(), Assessment: a,
		InImages: images(digits), OutImages: images(letters),
		Watched: o.result.watched, Trace: o.result.trace,
	}
	if o.method.config.Sampler == "psgld" {
		s.Trace = nil
	}
	return s, err
}
