package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pollen-ml/pollen/evaluate"
)

// FigureRow is a row of the table of figures.
type FigureRow struct {
	File  string // name of its PNG file, without the extension
	Title string
	// Caption explains the figure. {in} and {out} stand for the names of the data sets.
	Caption string
	// Applies reports whether Draw can draw the subjects, of which there must be at least one.
	Applies func(subjects []Subject) bool
	Draw    func(subjects []Subject) (*Figure, error)
}

// Figures returns the table of figures, in the order in which a page shows them.
func Figures() []FigureRow {
	rows := []FigureRow{
		examplesRow, mistakesRow, confidenceRow, inDistributionRow, coverageRow, reliabilityRow, setsRow,
		confusionRow, confusionsRow,
	}
	for _, score := range evaluate.Scores() {
		if score.Curve != nil {
			rows = append(rows, scoreRow(score))
		}
	}
	return append(rows, weightRow, lossRow)
}

// scoreRow returns the figure for the curve of a score.
func scoreRow(score evaluate.Score) FigureRow {
	return FigureRow{
		File: score.Name, Title: strings.ToUpper(score.Title[:1]) + score.Title[1:],
		Caption: "The curve that " + score.Title + " summarises. " + score.Meaning,
		Applies: func(subjects []Subject) bool {
			return all(subjects, func(s Subject) bool { return s.Assessment != nil && score.Applies(s.Case) })
		},
		Draw: func(subjects []Subject) (*Figure, error) {
			curves := make([]Curve, len(subjects))
			axes := Axes{X: score.Curve.X, Y: score.Curve.Y, bounded: true}
			for i, s := range subjects {
				x, y, err := score.Curve.Of(s.Case)
				if err != nil {
					return nil, err
				}
				value := fmt.Sprintf(score.Format, s.Values[score.Name])
				curves[i] = Curve{Method: s.Name + ", " + score.Title + " " + value, X: x, Y: y}
				axes.bounded = axes.bounded && len(x) > 0 && x[0] >= 0 && slices.Max(x) <= 1
			}
			return Curves(axes, curves)
		},
	}
}

// CaptionFor returns the caption with the names of the data sets.
func (r FigureRow) CaptionFor(subjects []Subject) string {
	in, out := dataNames(subjects)
	return namedData(r.Caption, in, out)
}

// namedData replaces {in} and {out} by the names of the data sets.
func namedData(text, in, out string) string {
	return strings.NewReplacer("{in}", in, "{out}", out).Replace(text)
}
