package evaluate

import "strings"

// Score is one row of the table of scores.
type Score struct {
	Name    string // "nll", the key in JSON and in Assessment.Values
	Title   string // "NLL"; {in} and {out} stand for the names of the two data sets
	Format  string // of the value, such as "%.4f"
	Meaning string // a sentence for the page
	Needs   Needs
	// Of computes the score of a case that has what the score needs.
	Of func(c Case) (float64, error)
	// Curve is the line that the score summarises, drawn on pages; nil where there is none.
	Curve *Curve
}

// Curve is a line for each case.
type Curve struct {
	X, Y string // titles of the axes
	// Of returns as many y as x; x rises.
	Of func(c Case) (x, y []float64, err error)
}

// Needs is what a score needs besides predictions on data of the kind that was learnt.
type Needs uint8

// A score may need several of these.
const (
	NeedsLabels      Needs = 1 << iota // the labels of Case.In
	NeedsOut                           // Case.Out
	NeedsCalibration                   // Case.Calibration, with enough examples for Level
)

// Scores returns the table of scores, in the order in which they are shown.
func Scores() []Score {
	return []Score{
		accuracyScore, likelihoodScore, brierScore, eceScore, eceEqualMassScore, aurcScore,
		balancedScore, confidenceScore, confidenceOutScore,
		aurocScore, fpr95Score, auprOutScore, auprInScore,
		setCoverageScore, setSizeScore, inDistributionScore, inDistributionOutScore,
	}
}

// Applies reports whether the case has what the score needs; without In, none does.
func (s Score) Applies(c Case) bool { return c.In != nil && s.Needs&^c.has() == 0 }

// TitleFor returns the title with the names of the case's data.
func (s Score) TitleFor(c Case) string { return c.named(s.Title) }

// named replaces {in} and {out} by the names of the data.
func (c Case) named(text string) string {
	in, out := "its own kind", "another kind"
	if c.In != nil {
		in = c.In.Name
	}
	if c.Out != nil {
		out = c.Out.Name
	}
	return strings.NewReplacer("{in}", in, "{out}", out).Replace(text)
}

// mean is the mean of at least one value.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
