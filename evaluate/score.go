package evaluate

// Score is one row of the table of scores.
type Score struct {
	Name    string // "nll", the key in JSON and in Assessment.Values
	Title   string // "NLL"; {in} and {out} stand for the names of the two data sets
	Format  string // of the value, such as "%.4f"
	Meaning string // an explanation for the page
	Needs   Needs
	// Of computes the score of a case that meets Needs.
	Of func(c Case) (float64, error)
	// Curve is the curve that the score summarises, such as the ROC; it may be nil.
	Curve *Curve
}

// Curve is a curve of a case, drawn on pages.
type Curve struct {
	X, Y string // titles of the axes
	// Of returns x in ascending order, and y of the same length.
	Of func(c Case) (x, y []float64, err error)
}

// Needs is a set of the inputs that a score needs next to in-distribution predictions.
type Needs uint8

// The inputs of scores, combined with |.
const (
	NeedsLabels      Needs = 1 << iota // the labels of Case.In
	NeedsOut                           // Case.Out
	NeedsCalibration                   // Case.Calibration, with enough examples for Level
	NeedsDetector                      // nonconformity scores of the predictions and of the calibration
	NeedsScaling                       // Case.Calibration
)

// Applies reports whether the case meets the score's needs. It is false without In.
func (s Score) Applies(c Case) bool { return c.In != nil && s.Needs&^c.has() == 0 }

// titleFor returns the title with the names of the case's data.
func (s Score) titleFor(c Case) string { return c.named(s.Title) }

// fraction returns the fraction of at least one condition that is true.
func fraction(conditions []bool) float64 {
	count := 0.0
	for _, condition := range conditions {
		count += one(condition)
	}
	return count / float64(len(conditions))
}

// mean returns the mean of at least one value.
func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
