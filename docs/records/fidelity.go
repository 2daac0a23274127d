package main

import (
	"fmt"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
)

// fidelity makes a table with a column for each distilled run: its scores, with its teacher's in
// parentheses, and how much their predictions differ.
func fidelity(r *Record) (string, error) {
	var columns []report.Column
	for _, run := range r.Runs {
		columns = append(columns, report.Column{Title: run.Name})
		if run.Fidelity == nil || len(run.Fidelity.Out) != len(r.Runs[0].Fidelity.Out) {
			return "", errors.Errorf("%s was not compared with a teacher, or on other data than the first", run.Name)
		}
	}
	table := report.NewTable("distilled (teacher)", columns...)
	add := func(title string, cell func(f *evaluate.Fidelity) string) error {
		var cells []any
		for _, run := range r.Runs {
			cells = append(cells, cell(run.Fidelity))
		}
		return table.Add(title, cells...)
	}
	for _, key := range []string{"accuracy", "nll", "ece"} {
		score, err := scoreOf(key)
		if err == nil {
			err = add(r.title(score), func(f *evaluate.Fidelity) string {
				return fmt.Sprintf(score.Format+" ("+score.Format+")", f.Student[key], f.Teacher[key])
			})
		}
		if err != nil {
			return "", err
		}
	}
	for i, out := range r.Runs[0].Fidelity.Out {
		for _, score := range evaluate.FidelityOODScores() {
			err := add(fmt.Sprintf("AUROC by %s, %s", score.Title, out.Data), func(f *evaluate.Fidelity) string {
				return fmt.Sprintf("%.4f (%.4f)", f.Out[i].Student[score.Name].AUROC, f.Out[i].Teacher[score.Name].AUROC)
			})
			if err != nil {
				return "", err
			}
		}
	}
	for _, row := range []struct {
		title, format string
		of            func(f *evaluate.Fidelity) float64
	}{
		{"the same class", "%.4f", func(f *evaluate.Fidelity) float64 { return f.Agreement }},
		{"total variation", "%.4f", func(f *evaluate.Fidelity) float64 { return f.TotalVariation }},
		{"KL divergence", "%.4f", func(f *evaluate.Fidelity) float64 { return f.KL }},
		{"rank correlation", "%.3f", func(f *evaluate.Fidelity) float64 { return f.InformationRank }},
	} {
		if err := add(row.title, func(f *evaluate.Fidelity) string { return fmt.Sprintf(row.format, row.of(f)) }); err != nil {
			return "", err
		}
	}
	return text(table)
}
