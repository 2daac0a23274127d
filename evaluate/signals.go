package evaluate

import "github.com/pkg/errors"

// Signal is one row of the table of uncertainties, which detect examples of another kind.
type Signal struct {
	Name    string // "mutualInformation", the key in JSON
	Title   string // "mutual information"
	Meaning string // a sentence
	// Samples says that it takes at least two posterior samples: with one it adds nothing.
	Samples bool
	// Of returns a value for each example, which grows with uncertainty.
	Of func(p *Predictions) []float64
}

// Applies reports whether there are enough samples for the signal.
func (s Signal) Applies(p *Predictions) bool { return !s.Samples || p.Samples > 1 }

// DefaultSignal is the uncertainty used for a Case that names none.
const DefaultSignal = "entropy"

// Signals returns the table of uncertainties.
func Signals() []Signal {
	return []Signal{
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

// signal returns the row of a name, of DefaultSignal where it is empty.
func signal(name string) (Signal, error) {
	if name == "" {
		name = DefaultSignal
	}
	var names []string
	for _, s := range Signals() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Signal{}, errors.Errorf("evaluate: got signal %q, want one of %v", name, names)
}
