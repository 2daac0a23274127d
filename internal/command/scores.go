package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
)

// scoredRun is a run under the name that tables show.
type scoredRun struct {
	name       string
	run        *bayes.Run
	assessment *evaluate.Assessment // nil before assess
	mixing     *diagnostics.Mixing  // of a gathered run
}

// assess scores each run; out may be nil. For gathered runs it also measures how their chains mix,
// unless that is known.
func assess(ctx context.Context, runs []scoredRun, in, out *datasets.Dataset, c *console) error {
	defer c.endProgress()
	for i := range runs {
		var err error
		if runs[i].assessment, err = runs[i].run.Assess(ctx, in, out); err != nil {
			return err
		}
		if runs[i].mixing != nil || len(runs[i].run.Manifest().Parts) == 0 {
			continue
		}
		if runs[i].mixing, err = runs[i].run.Mixing(ctx, &datasets.Splits{Test: in}); err != nil {
			return err
		}
	}
	return nil
}

// printScores prints the tables of scores, seeds, detection and agreement that apply.
func printScores(runs []scoredRun, subjects []report.Subject, against string, every bool, c *console) error {
	var made []*report.Table
	for _, make := range []func() (*report.Table, error){
		func() (*report.Table, error) { return report.FittingTable(subjects) },
		func() (*report.Table, error) { return report.SeedsTable(subjects) },
		func() (*report.Table, error) { return report.DetectionTable(subjects, every) },
		func() (*report.Table, error) { return report.AgreementTable(subjects, against) },
		func() (*report.Table, error) { return report.RiskTable(subjects) },
	} {
		table, err := make()
		if err != nil {
			return err
		}
		made = append(made, table)
	}
	if err := printTables(c, made...); err != nil {
		return err
	}
	for i, r := range runs {
		remarks, err := subjects[i].CoverageRemarks()
		if err != nil {
			return err
		}
		for _, remark := range remarks {
			fmt.Fprintf(c.out, "%s: %s\n", r.name, remark)
		}
		if left := r.run.LeftOut(); len(left) > 0 {
			fmt.Fprintf(c.out, "%s: skipped %s, damaged or missing: %s\n", r.name, counted(len(left), "sample"), strings.Join(left, ", "))
		}
	}
	return nil
}

// printByClass prints the scores of each class.
func printByClass(subjects []report.Subject, c *console) error {
	section, err := report.ClassSection(subjects)
	if err != nil || section == nil {
		return err
	}
	fmt.Fprintln(c.out)
	return section.Table.WriteText(c.out)
}

// printTables prints the tables that are not nil.
func printTables(c *console, tables ...*report.Table) error {
	tables = slices.DeleteFunc(tables, func(t *report.Table) bool { return t == nil })
	for i, table := range tables {
		if i > 0 {
			fmt.Fprintln(c.out)
		}
		if err := table.WriteText(c.out); err != nil {
			return err
		}
	}
	return nil
}

// printJSON prints a JSON array with an object for each run.
func printJSON(runs []scoredRun, subjects []report.Subject, against string, c *console) error {
	near, err := report.Agreements(subjects, against)
	if err != nil {
		return err
	}
	type scored struct {
		Run    string               `json:"run"`
		Method string               `json:"method"`
		Scores *evaluate.Assessment `json:"assessment"`
		Class  []report.ClassRow    `json:"byClass,omitempty"`
		Sets   *evaluate.SetRule    `json:"setRule,omitempty"` // of calibrated runs
		Risks  []evaluate.Selected  `json:"risks,omitempty"`
		Near   *evaluate.Comparison `json:"against,omitempty"` // compared with --against

		LeftOut   []string          `json:"skippedSamples,omitempty"` // damaged or missing
		Continued []bayes.Continued `json:"continued,omitempty"`
	}
	list := []scored{}
	for i, r := range runs {
		m := r.run.Manifest()
		classes, err := subjects[i].ByClass()
		if err != nil {
			return err
		}
		risks, err := evaluate.Select(r.assessment.Case)
		if err != nil {
			return err
		}
		one := scored{r.name, bayes.MethodText(m.Spec.Method), r.assessment, classes, nil, risks, near[r.name], r.run.LeftOut(), m.Continued}
		if r.assessment.Calibration != nil {
			one.Sets = &r.assessment.Sets
		}
		list = append(list, one)
	}
	return c.json(list)
}
