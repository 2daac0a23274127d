package evaluate

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/pkg/errors"
)

// Case is the input of scores.
type Case struct {
	// In are predictions on data of the kind that was learnt.
	In *Predictions
	// Out are predictions on data of another kind, over the same classes; nil where there are none.
	Out *Predictions
	// Calibration comes from held-out data; nil where none were held out.
	Calibration *Calibration
	// OODScore names the uncertainty that separates Out from In; DefaultOODScore where it is empty.
	OODScore string
}

// has is which of the scores' needs the case meets.
func (c Case) has() (has Needs) {
	if c.In.Labels != nil {
		has |= NeedsLabels
	}
	if c.Out != nil {
		has |= NeedsOut
	}
	if c.Calibration != nil && c.Calibration.Supports(Level) {
		has |= NeedsCalibration
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
			return errors.Errorf("evaluate: Assess: predictions on %s: got %d labels for %d examples, want as many or none",
				c.Out.Name, n, c.Out.Len())
		}
		if c.Out.Classes != c.In.Classes {
			return errors.Errorf("evaluate: Assess: %s has %d classes and %s %d, want predictions of one network",
				c.In.Name, c.In.Classes, c.Out.Name, c.Out.Classes)
		}
	}
	if c.Calibration != nil {
		if err := c.Calibration.check("Assess"); err != nil {
			return err
		}
		if c.Calibration.Classes != c.In.Classes || c.Calibration.Samples != c.In.Samples {
			return errors.Errorf("evaluate: Assess: calibrated with %d samples over %d classes, predicted with %d over %d: calibrate again",
				c.Calibration.Samples, c.Calibration.Classes, c.In.Samples, c.In.Classes)
		}
	}
	score, err := oodScoreByName(c.OODScore)
	if err == nil && !score.Applies(c.In) {
		return errors.Errorf("evaluate: Assess: signal %s takes at least 2 samples, %s was predicted with %d",
			score.Name, c.In.Name, c.In.Samples)
	}
	return err
}

// Assessment is a case with the scores that apply to it.
type Assessment struct {
	Case
	// Values has the scores by name. A score that does not apply is absent.
	Values Values
	// Detections says, by the name of the Signal, how well each uncertainty that applies separates
	// Out from In; nil where there is no Out.
	Detections map[string]Detection
}

// Assess computes all scores that apply to a case. It fails when there are no predictions, when
// they or the labels break what their types promise, and when a score is not finite.
func Assess(c Case) (*Assessment, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	a := &Assessment{Case: c, Values: Values{}}
	for _, s := range Scores() {
		if !s.Applies(c) {
			continue
		}
		value, err := s.Of(c)
		if err != nil {
			return nil, errors.Wrapf(err, "evaluate: Assess: %s", s.Name)
		}
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, errors.Errorf("evaluate: Assess: %s is %v, want a finite number", s.Name, value)
		}
		a.Values[s.Name] = value
	}
	if c.Out == nil {
		return a, nil
	}
	a.Detections = map[string]Detection{}
	for _, s := range OODScores() {
		if !s.Applies(c.In) || !s.Applies(c.Out) {
			continue
		}
		d, err := Detect(s.Of(c.In), s.Of(c.Out))
		if err != nil {
			return nil, err
		}
		a.Detections[s.Name] = d
	}
	return a, nil
}

// String prints the scores that apply, in the order of Scores.
func (a *Assessment) String() string {
	var parts []string
	for _, s := range Scores() {
		if v, ok := a.Values[s.Name]; ok {
			parts = append(parts, fmt.Sprintf("%s "+s.Format, s.TitleFor(a.Case), v))
		}
	}
	return strings.Join(parts, ", ")
}

// MarshalJSON writes what was assessed and the values, without the predictions.
func (a *Assessment) MarshalJSON() ([]byte, error) {
	type data struct {
		Name    string `json:"name"`
		Images  int    `json:"images"`
		Samples int    `json:"samples"`
	}
	about := func(p *Predictions) *data {
		if p == nil {
			return nil
		}
		return &data{p.Name, p.Len(), p.Samples}
	}
	score, err := oodScoreByName(a.OODScore)
	if err != nil {
		return nil, err
	}
	all := struct {
		In         *data                `json:"in"`
		Out        *data                `json:"out,omitempty"`
		Signal     string               `json:"oodScore,omitempty"`
		Scores     Values               `json:"scores"`
		Detections map[string]Detection `json:"detections,omitempty"`
	}{In: about(a.In), Out: about(a.Out), Scores: a.Values, Detections: a.Detections}
	if a.Out != nil {
		all.Signal = score.Name
	}
	b, err := json.Marshal(all)
	return b, errors.Wrap(err, "evaluate: Assessment")
}

// Values are scores by name. Their JSON has the order of Scores; names that are not in the table
// are an error.
type Values map[string]float64

// MarshalJSON implements json.Marshaler.
func (v Values) MarshalJSON() ([]byte, error) {
	var b strings.Builder
	b.WriteByte('{')
	written := 0
	for _, s := range Scores() {
		value, ok := v[s.Name]
		if !ok {
			continue
		}
		number, err := json.Marshal(value)
		if err != nil {
			return nil, errors.Wrapf(err, "evaluate: Values: %s", s.Name)
		}
		if written > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", s.Name, number)
		written++
	}
	if written != len(v) {
		return nil, errors.Errorf("evaluate: Values: %d of %d names are those of scores", written, len(v))
	}
	b.WriteByte('}')
	return []byte(b.String()), nil
}
