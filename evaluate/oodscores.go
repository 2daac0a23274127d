package evaluate

import "github.com/pkg/errors"

// OODScore is one row of the table of uncertainties, which detect examples of another kind.
type OODScore struct {
	Name    string // "mutualInformation", the key in JSON
	Title   string // "mutual information"
	Meaning string // a sentence
	// Samples says that it takes at least two posterior samples: with one it adds nothing.
	Samples bool
	// Of returns a value for each example, which grows with uncertainty.
	Of func(p *Predictions) []float64
}

// Applies reports whether there are enough samples for the signal.
func (s OODScore) Applies(p *Predictions) bool { return !s.Samples || p.Samples > 1 }

// DefaultOODScore is the uncertainty used for a Case that names none.
const DefaultOODScore = "entropy"

// OODScores returns the table of uncertainties.
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
			"The mean entropy of single samples, in nats: what remains if the weights were known.", true,
			func(p *Predictions) []float64 { return p.ExpectedEntropy },
		},
		{
			"mutualInformation", "mutual information",
			"Entropy minus expected entropy, in nats: what the samples disagree on.", true,
			func(p *Predictions) []float64 { return p.MutualInformation },
		},
		{
			"variationRatio", "variation ratio",
			"The share of the samples, by weight, that vote for another class than most do.", true,
			func(p *Predictions) []float64 { return p.VariationRatio },
		},
	}
}

// signal returns the row of a name, of DefaultOODScore where it is empty.
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
	return OODScore{}, errors.Errorf("evaluate: got signal %q, want one of %v", name, names)
}
