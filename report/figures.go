package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pollen-ml/pollen/evaluate"
)

// figureRows returns the table of figures, in the order in which a page shows them.
func figureRows() []figureRow {
	rows := []figureRow{
		examplesRow, mistakesRow, confidenceRow, inDistributionRow, coverageRow, reliabilityRow, setsRow,
		confusionRow, confusionsRow,
	}
	for _, score := range evaluate.Scores() {
		if score.Curve != nil {
			rows = append(rows, scoreRow(score))
		}
	}
	return append(rows, warmStartRow, weightRow, validationRow)
}

// scoreRow returns the figure for the curve of a score.
func scoreRow(score evaluate.Score) figureRow {
	return figureRow{
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
