package command

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/report"
)

// outImages reads the out-of-distribution images of distil in the shape of a run's images, from a
// data set that is searched for in dataDir first; nil if name is "".
func outImages(ctx context.Context, m bayes.Manifest, name, dataDir string, c *console) ([]*datasets.Dataset, error) {
	if name == "" {
		return nil, nil
	}
	data, err := config.DataOf(m).In(dataDir).OOD(name, "", m.Data.ClassNames)
	if err != nil {
		return nil, err
	}
	images, err := loadTest(ctx, data, m, true, c)
	return []*datasets.Dataset{images}, err
}

// measureFidelity compares a distilled run with its teacher, on test images and on other data, and
// prints the result. It does nothing for other runs.
func measureFidelity(ctx context.Context, run *bayes.Run, data *datasets.Splits, others []*datasets.Dataset, c *console) error {
	m := run.Manifest()
	heldOut := cmp.Or(data.Test, data.Validation)
	if m.Teacher == nil || heldOut == nil {
		return nil
	}
	f, err := run.With(bayes.WithObserver(c.observer("fidelity"))).MeasureFidelity(ctx, heldOut, others...)
	c.endProgress()
	if err != nil {
		return err
	}
	table, err := fidelityTable(f)
	if err != nil {
		return err
	}
	if err := table.WriteText(c.out); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "\n%s\n\n", fidelityText(m.Spec.Teacher, f))
	return nil
}

// fidelityText describes how closely a distilled run follows its teacher.
func fidelityText(teacher string, f *evaluate.Fidelity) string {
	return fmt.Sprintf("Compared with %s %v.", teacher, f)
}

// fidelityTable returns the scores of a distilled run next to its teacher's.
func fidelityTable(f *evaluate.Fidelity) (*report.Table, error) {
	table := report.NewTable("fidelity", report.Column{Title: "teacher", Format: "%s"}, report.Column{Title: "distilled", Format: "%s"})
	for _, row := range f.Rows() {
		if err := table.Add(row.Title, row.Teacher, row.Student); err != nil {
			return nil, err
		}
	}
	for _, out := range f.Out {
		for _, score := range evaluate.FidelityOODScores() {
			theirs, has := out.Teacher[score.Name]
			if !has {
				continue
			}
			ours := out.Student[score.Name]
			for _, row := range []struct {
				title, format string
				of            func(d evaluate.Detection) float64
			}{
				{"AUROC", "%.4f", func(d evaluate.Detection) float64 { return d.AUROC }}, {"FPR95", "%.3f", func(d evaluate.Detection) float64 { return d.FPR95 }},
			} {
				title := fmt.Sprintf("%s by %s, %s", row.title, score.Title, out.Data)
				if err := table.Add(title, fmt.Sprintf(row.format, row.of(theirs)), fmt.Sprintf(row.format, row.of(ours))); err != nil {
					return nil, err
				}
			}
		}
	}
	return table, nil
}

// fidelitySections returns the page's sections on distilled runs whose fidelity was measured.
func fidelitySections(runs []scoredRun) ([]report.Section, error) {
	var sections []report.Section
	for _, r := range runs {
		f, err := r.run.Fidelity()
		if os.IsNotExist(errors.Cause(err)) {
			continue
		}
		if err != nil {
			return nil, err
		}
		table, err := fidelityTable(f)
		if err != nil {
			return nil, err
		}
		m, trained := r.run.Manifest(), "The network was"
		if m.Spec.Chains > 1 {
			trained = fmt.Sprintf("%d networks were", m.Spec.Chains)
		}
		sections = append(sections, report.Section{Title: "Fidelity of " + r.name, Table: table, Text: []string{
			fidelityText(m.Spec.Teacher, f),
			fmt.Sprintf("%s trained to predict what %d samples of %s predict. Each image has a Dirichlet distribution for each network, "+
				"from which the mutual information follows.", trained, m.Teacher.Samples, m.Teacher.Method),
		}})
	}
	return sections, nil
}
