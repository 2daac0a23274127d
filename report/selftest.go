package report

import "github.com/pollen-ml/pollen/evaluate"

// selfTestSection returns the section on the subjects' tests of their in-distribution decisions,
// with a row for each kind of strange images and a column for each subject that was tested. It
// returns nil if none was.
func selfTestSection(subjects []Subject) (*Section, error) {
	var tests []*evaluate.SelfTest
	var columns []Column
	section := &Section{Title: "Strange images"}
	for _, s := range subjects {
		if s.Assessment == nil || s.Calibration == nil || s.Calibration.SelfTest == nil {
			continue
		}
		test := s.Calibration.SelfTest
		tests, columns = append(tests, test), append(columns, Column{s.Name, "%.2f"})
		section.Text = append(section.Text, s.Name+" "+test.String()+".")
	}
	if tests == nil {
		return nil, nil
	}
	var kinds []string
	for _, k := range tests[0].Kinds {
		kinds = append(kinds, k.Kind)
	}
	var err error
	section.Table, err = tableOf("fraction accepted as in distribution", kinds, columns, func(row, column int) any {
		test := tests[column]
		if row >= len(test.Kinds) || test.Kinds[row].Kind != kinds[row] {
			return "-" // tested by another version
		}
		return float64(test.Kinds[row].Accepted) / float64(test.Kinds[row].Images)
	})
	return section, err
}
