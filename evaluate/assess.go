package evaluate

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/pkg/errors"
)

// Assessment is a case with the scores that apply to it.
type Assessment struct {
	Case
	// Values maps the names of scores to their values. Scores that do not apply are absent.
	Values Values
	// Detections maps the names of the OOD scores that apply to their performance in separating Out
	// from In. It is nil without Out.
	Detections map[string]Detection
}

// Assess computes all scores that apply to a case. It returns an error if In is nil, if
// predictions, labels or the calibration are invalid or do not match, and if a score is not finite.
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
			return nil, errors.Errorf("evaluate: Assess: %s must be finite, got %v", s.Name, value)
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

// String formats the scores that apply, in the order of Scores.
func (a *Assessment) String() string {
	var parts []string
	for _, s := range Scores() {
		if v, ok := a.Values[s.Name]; ok {
			parts = append(parts, fmt.Sprintf("%s "+s.Format, s.titleFor(a.Case), v))
		}
	}
	return strings.Join(parts, ", ")
}

// MarshalJSON writes the names and sizes of the data, the scores and the detections, without the
// predictions.
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
		OODScore   string               `json:"oodScore,omitempty"`
		Scores     Values               `json:"scores"`
		Detections map[string]Detection `json:"detections,omitempty"`
	}{In: about(a.In), Out: about(a.Out), Scores: a.Values, Detections: a.Detections}
	if a.Out != nil {
		all.OODScore = score.Name
	}
	b, err := json.Marshal(all)
	return b, errors.Wrap(err, "evaluate: Assessment")
}

// Values maps the names of scores to their values. Its JSON is in the order of Scores; a name that
// is not in that table is an error.
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
		return nil, errors.Errorf("evaluate: Values: names must be those of scores, got %[2]d names, %[1]d of scores", written, len(v))
	}
	b.WriteByte('}')
	return []byte(b.String()), nil
}
