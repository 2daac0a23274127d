package comparison

import (
	"context"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
)

// PerturbedScores has tables of scores on perturbed test images, such as corrupted or adversarial
// ones, with a row for each run and a column for each strength.
type PerturbedScores struct {
	columns int
	tables  []*report.Table // of perturbedScores, and of detection
}

// perturbedScores are the names and titles of scores, whose tables have a column for clean images.
var perturbedScores = [][2]string{{"accuracy", "accuracy"}, {"confidence", "confidence"}, {"ece", "ECE"}}

// NewPerturbedScores returns empty tables with the given columns.
func NewPerturbedScores(titles []string) *PerturbedScores {
	c := &PerturbedScores{columns: len(titles)}
	columns := []report.Column{{Title: "clean", Format: "%.3f"}}
	for _, title := range titles {
		columns = append(columns, report.Column{Title: title, Format: "%.3f"})
	}
	for _, score := range perturbedScores {
		c.tables = append(c.tables, report.NewTable(score[1], columns...))
	}
	c.tables = append(c.tables, report.NewTable("AUROC against clean", columns[1:]...))
	return c
}

// Tables returns the tables of accuracy, confidence, expected calibration error, and of the AUROC
// with which the entropy of the averaged probabilities separates perturbed images, the positive
// class, from clean ones.
func (c *PerturbedScores) Tables() []*report.Table { return c.tables }

// Add adds a run's rows: its scores on the clean data, and for each column the means of its scores
// on the perturbed data sets that versions returns.
func (c *PerturbedScores) Add(ctx context.Context, name string, run *bayes.Run, data *datasets.Dataset,
	versions func(column int) ([]*datasets.Dataset, error),
) error {
	clean, err := run.Assess(ctx, data, nil)
	if err != nil {
		return err
	}
	rows := make([][]any, len(c.tables))
	for i, score := range perturbedScores {
		rows[i] = append(rows[i], clean.Values[score[0]])
	}
	for column := range c.columns {
		perturbed, err := versions(column)
		if err != nil {
			return err
		}
		means := make([]float64, len(c.tables))
		for _, version := range perturbed {
			a, err := run.Assess(ctx, version, nil)
			if err != nil {
				return err
			}
			detection, err := evaluate.Detect(clean.In.Entropy, a.In.Entropy)
			if err != nil {
				return err
			}
			for i, score := range perturbedScores {
				means[i] += a.Values[score[0]] / float64(len(perturbed))
			}
			means[len(perturbedScores)] += detection.AUROC / float64(len(perturbed))
		}
		for i, mean := range means {
			rows[i] = append(rows[i], mean)
		}
	}
	for i, t := range c.tables {
		if err := t.Add(name, rows[i]...); err != nil {
			return err
		}
	}
	return nil
}
