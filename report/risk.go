package report

import (
	"fmt"

	"github.com/pollen-ml/pollen/evaluate"
)

// RiskTable returns the table of certified risks: the lowest confidence of images that are
// answered, the fractions of answered images, and the error rate of the answers on test data. It
// returns nil unless a subject is calibrated and can answer, and all were scored on labelled data
// of one name.
func RiskTable(subjects []Subject) (*Table, error) {
	if !all(subjects, Subject.labelled) || !sameData(subjects) {
		return nil, nil
	}
	table := NewTable("answers with a certified error", Column{"unscaled confidence from", "%s"}, Column{"answered, calibration", "%.3f"},
		Column{"answered, " + subjects[0].In.Name, "%.3f"}, Column{"errors, " + subjects[0].In.Name, "%.4f"})
	rows := 0
	for _, s := range subjects {
		selected, err := evaluate.Select(s.Case)
		if err != nil {
			return nil, err
		}
		for _, r := range selected {
			title := fmt.Sprintf("at most %.4g %%, with %.4g %% confidence", 100*r.Risk, 100*r.Confidence)
			if len(subjects) > 1 {
				title = s.Name + ": " + title
			}
			cells := []any{r.From(), 0.0, 0.0, "-"}
			if r.Certified {
				cells = []any{r.From(), float64(r.Answered) / float64(r.Images), r.TestAnswered, "-"}
			}
			if r.TestRisk != nil {
				cells[3] = *r.TestRisk
			}
			if err := table.Add(title, cells...); err != nil {
				return nil, err
			}
			rows++
		}
	}
	if rows == 0 {
		return nil, nil
	}
	return table, nil
}

// riskSection returns the section with the RiskTable, or nil.
func riskSection(subjects []Subject) (*Section, error) {
	table, err := RiskTable(subjects)
	if table == nil {
		return nil, err
	}
	section := &Section{Title: "Answers with a certified error", Table: table, Text: []string{
		"Refer images whose confidence, before scaling, is below the threshold to a person. Of the others, no more than the stated fraction is misclassified, " +
			"as long as images resemble the calibration images. The confidence is the probability, over calibrations, that this holds.",
	}}
	for _, s := range subjects {
		if s.Calibration != nil {
			section.Text = append(section.Text, fmt.Sprintf("%s was calibrated on %d images of %s.", s.Name, s.Calibration.Examples, s.Calibration.Data))
		}
	}
	return section, nil
}
