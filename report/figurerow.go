package report

import "strings"

// figureRow is a row of the table of figures.
type figureRow struct {
	File  string // name of its PNG file, without the extension
	Title string
	// Caption explains the figure. {in} and {out} stand for the names of the data sets.
	Caption string
	// Applies reports whether Draw can draw the subjects, at least one.
	Applies func(subjects []Subject) bool
	Draw    func(subjects []Subject) (*Figure, error)
}

// captionFor returns the caption with the names of the data sets.
func (r figureRow) captionFor(subjects []Subject) string {
	in, out := dataNames(subjects)
	return namedData(r.Caption, in, out)
}

// namedData replaces {in} and {out} by the names of the data sets.
func namedData(text, in, out string) string {
	return strings.NewReplacer("{in}", in, "{out}", out).Replace(text)
}
