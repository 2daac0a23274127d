package evaluate

import "github.com/pkg/errors"

// OODScore is a row of the table of uncertainties that can detect out-of-distribution examples.
type OODScore struct {
	Name    string // "mutualInformation", the key in JSON
	Title   string // "mutual information"
	Meaning string // an explanation
	// Samples is true for scores that need at least two posterior samples.
	Samples bool
	// Of returns a value for each example. Higher means more uncertain.
	Of func(p *Predictions) []float64
}

// Applies reports whether the predictions have enough samples for the score.
func (s OODScore) Applies(p *Predictions) bool { return !s.Samples || p.Samples > 1 }

// DefaultOODScore is the uncertainty used for a Case that names none.
const DefaultOODScore = "entropy"

// OODScores returns the table of OOD scores.
func OODScores() []OODScore {
	return []OODScore{
		{
			"confidence", "1 - confidence",
			"1 minus the largest probability.", false,
			func(p *Predictions) []float64 {
				rest := make([]float64, len(p.Confidence))
				for n, c := range p.Confidence {
					rest[n] = 1 - c
				}
				return rest
			},
		},
		{
			"entropy", "entropy",
			"The entropy of the averaged probabilities, in nats: the total uncertainty.", false,
			func(p *Predictions) []float64 { return p.Entropy },
		},
		{
			"expectedEntropy", "expected entropy",
			"The mean entropy of single samples, in nats: the aleatoric uncertainty.", true,
			func(p *Predictions) []float64 { return p.ExpectedEntropy },
		},
		{
			"mutualInformation", "mutual information",
			"Entropy minus expected entropy, in nats: the epistemic uncertainty, on which samples disagree.", true,
			func(p *Predictions) []float64 { return p.MutualInformation },
		},
		{
			"variationRatio", "variation ratio",
			"The weighted fraction of samples that do not vote for the most voted class.", true,
			func(p *Predictions) []float64 { return p.VariationRatio },
		},
	}
}

// oodScoreByName returns the row with a name; "" is DefaultOODScore.
func oodScoreByName(name string) (OODScore, error) {
	if name == "" {
		name = DefaultOODScore
	}
	var names []string
	for _, s := range OODScores() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return OODScore{}, errors.Errorf("evaluate: OODScore must be one of %v, got %q", names, name)
}
