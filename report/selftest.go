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
	section.Table = NewTable("fraction accepted as in distribution", columns...)
	for i, k := range tests[0].Kinds {
		var cells []any
		for _, test := range tests {
			if i < len(test.Kinds) && test.Kinds[i].Kind == k.Kind {
				cells = append(cells, float64(test.Kinds[i].Accepted)/float64(test.Kinds[i].Images))
			} else {
				cells = append(cells, "-") // tested by another version
			}
		}
		if err := section.Table.Add(k.Kind, cells...); err != nil {
			return nil, err
		}
	}
	return section, nil
}
