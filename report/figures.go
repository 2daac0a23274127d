package report

import "strings"

// FigureRow is one row of the table of figures.
type FigureRow struct {
	File  string // name of its PNG file, without the extension
	Title string
	// Caption says what is seen; {in} and {out} stand for the names of the data.
	Caption string
	// Applies reports whether the subjects, of which there is at least one, have what Draw needs.
	Applies func(subjects []Subject) bool
	Draw    func(subjects []Subject) (*Figure, error)
}

// Figures returns the table of figures, in the order in which a page shows them.
func Figures() []FigureRow {
	return []FigureRow{
		examplesRow, confidenceRow, coverageRow, reliabilityRow, weightRow,
	}
}

// CaptionFor returns the caption with the names of the data.
func (r FigureRow) CaptionFor(subjects []Subject) string {
	in, out := kinds(subjects)
	return namedData(r.Caption, in, out)
}

// namedData replaces {in} and {out} by the names of the data.
func namedData(text, in, out string) string {
	return strings.NewReplacer("{in}", in, "{out}", out).Replace(text)
}
