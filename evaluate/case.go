package evaluate

import (
	"strings"

	"github.com/pkg/errors"
)

// Case is the input of Assess: predictions, and the other inputs of the scores.
type Case struct {
	// In has the predictions on in-distribution test data.
	In *Predictions
	// Out has the predictions on out-of-distribution data, over the same classes; it may be nil.
	Out *Predictions
	// Calibration is the conformal calibration on held-out data; it may be nil.
	Calibration *Calibration
	// Sets is the rule by which prediction sets at Level are formed.
	Sets SetRule
	// Risks are the risks that Select certifies with the confidence RiskConfidence. Nil Risks stand
	// for DefaultRisks, and a RiskConfidence of 0 for the constant of that name.
	Risks          []float64
	RiskConfidence float64
	// OODScore names the uncertainty for detection and selective prediction. Empty means
	// DefaultOODScore.
	OODScore string
}

// has returns the needs that the case meets.
func (c Case) has() (has Needs) {
	if c.In.Labels != nil {
		has |= NeedsLabels
	}
	if c.Out != nil {
		has |= NeedsOut
	}
	if c.Calibration != nil {
		has |= NeedsScaling
	}
	if c.Calibration != nil && c.Calibration.Supports(Level) {
		has |= NeedsCalibration
		if c.Calibration.Decides(Level) && c.In.Nonconformity != nil && (c.Out == nil || c.Out.Nonconformity != nil) {
			has |= NeedsDetector
		}
	}
	return has
}

func (c Case) check() error {
	if err := c.In.check("Assess"); err != nil {
		return err
	}
	if c.In.Labels != nil {
		if err := c.In.checkLabels("Assess"); err != nil {
			return err
		}
	}
	if c.Out != nil {
		if err := c.Out.check("Assess"); err != nil {
			return err
		}
		if n := len(c.Out.Labels); c.Out.Labels != nil && n != c.Out.Len() {
			return errors.Errorf("evaluate: Assess: predictions on %s: Labels must be nil or have one label for each of %[3]d examples, got %[2]d",
				c.Out.Name, n, c.Out.Len())
		}
		if c.Out.Classes != c.In.Classes {
			return errors.Errorf("evaluate: Assess: predictions must be over the same classes, got %[2]d for %[1]s and %[4]d for %[3]s",
				c.In.Name, c.In.Classes, c.Out.Name, c.Out.Classes)
		}
	}
	if c.Calibration != nil {
		if err := c.Calibration.check("Assess"); err != nil {
			return err
		}
		if err := c.Calibration.checkMatches("Assess", c.In); err != nil {
			return err
		}
	}
	if err := c.Sets.Validate(); err != nil {
		return err
	}
	score, err := oodScoreByName(c.OODScore)
	if err != nil {
		return err
	}
	for _, p := range []*Predictions{c.In, c.Out} {
		switch {
		case p == nil || score.Applies(p):
		case score.Detector:
			return errors.Errorf("evaluate: Assess: OOD score %s needs a run with a detector, %s was predicted without one", score.Name, p.Name)
		default:
			return errors.Errorf("evaluate: Assess: OOD score %s needs at least 2 samples, %s was predicted with %d", score.Name, p.Name, p.Samples)
		}
	}
	return nil
}

// named replaces {in} and {out} by the names of the data.
func (c Case) named(text string) string {
	in, out := "in-distribution data", "out-of-distribution data"
	if c.In != nil {
		in = c.In.Name
	}
	if c.Out != nil {
		out = c.Out.Name
	}
	return strings.NewReplacer("{in}", in, "{out}", out).Replace(text)
}
