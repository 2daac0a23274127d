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
}

// Needs is what a score needs beside predictions on the data of the kind that was learnt.
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
		confidenceScore, confidenceOutScore,
		aurocScore, fpr95Score, auprOutScore, auprInScore,
		setCoverageScore, setSizeScore, familiarScore, familiarOutScore,
	}
}

// Applies reports whether the case has what the score needs.
func (s Score) Applies(c Case) bool { return s.Needs&^c.has() == 0 }

// TitleFor returns the title with the names of the case's data.
func (s Score) TitleFor(c Case) string { return c.named(s.Title) }

// named replaces {in} and {out} by the names of the data.
func (c Case) named(text string) string {
	out := "another kind"
	if c.Out != nil {
		out = c.Out.Name
	}
	return strings.NewReplacer("{in}", c.In.Name, "{out}", out).Replace(text)
}

// mean is the mean of values, of which there is at least one.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
