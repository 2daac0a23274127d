package evaluate

import (
	"math"

	"github.com/pkg/errors"
)

// Predictions has the averaged probabilities on one data set, with the uncertainty of each example.
// NewPredictions and Predictive.Predictions make it; scores refuse one without Uncertainty.
type Predictions struct {
	// Name is the data set's name, for titles.
	Name string
	// Probabilities are [N K]; each row is a distribution over the network's classes.
	Probabilities []float64
	// Labels are [N], or nil if unknown. The labels of out-of-distribution data may be of other
	// classes; no score uses them.
	Labels []int32
	// Groups are [N], or nil: examples of equal group, such as frames of one video, are not
	// independent. Only Calibrate uses them.
	Groups []string
	// Classes is K.
	Classes int
	// Samples is the number of posterior samples averaged.
	Samples int
	// Dirichlet is true if a sample predicts Dirichlet distributions over probabilities, as in a
	// distilled run. ExpectedEntropy and MutualInformation are then computed from these
	// distributions, even for one sample.
	Dirichlet bool
	Uncertainty
	Strangeness
}

// Strangeness has scores of how unlike the training images each example is, each [N]. They are nil
// for predictions of a run without a detector.
type Strangeness struct {
	MaxLogit, Energy []float64 // minus the largest logit, and the energy, averaged over samples
	// ImageStatistics and Mahalanobis are distances from the training images, RelativeMahalanobis
	// is a difference of distances, and Nonconformity combines the three, see OODScores.
	ImageStatistics, Mahalanobis, RelativeMahalanobis, Nonconformity []float64
}

// Predictions returns the average so far as predictions on the named data. labels may be nil.
// Without samples the result is empty; Assess and Calibrate return an error for it, and for invalid
// labels.
func (p *Predictive) Predictions(name string, labels []int32) *Predictions {
	mean := p.Mean()
	return &Predictions{
		Name: name, Probabilities: mean, Labels: labels, Classes: p.classes, Samples: p.samples, Dirichlet: p.dirichlet,
		Uncertainty: p.uncertaintyOf(mean),
	}
}

// NewPredictions returns probabilities [N K] of any origin as the predictions of one sample. labels
// may be nil. It returns an error if a row is not a distribution, if labels are not N values from 0
// to classes-1, and if there are no examples.
func NewPredictions(
	name string, probabilities []float64, labels []int32, classes int,
) (*Predictions, error) {
	n := len(labels)
	if labels == nil {
		n = len(probabilities) / max(classes, 1)
	}
	p := &Predictions{
		Name: name, Probabilities: probabilities, Labels: labels, Classes: classes, Samples: 1,
	}
	if err := checkRows("NewPredictions", probabilities, n, classes); err != nil {
		return nil, err
	}
	p.Uncertainty = Uncertainty{
		Confidence: make([]float64, n), Entropy: make([]float64, n),
		MutualInformation: make([]float64, n), VariationRatio: make([]float64, n),
	}
	for i := range n {
		_, p.Confidence[i] = largest(p.row(i))
		p.Entropy[i] = entropy(p.row(i))
	}
	p.ExpectedEntropy = p.Entropy
	if labels == nil {
		return p, nil
	}
	return p, p.checkLabels("NewPredictions")
}

// Len returns N, the number of examples.
func (p *Predictions) Len() int { return len(p.Probabilities) / max(p.Classes, 1) }

// Guess returns the most probable class of an example, the first of equals, and its probability.
func (p *Predictions) Guess(example int) (class int, probability float64) {
	return largest(p.row(example))
}

// Correct reports for each example whether its most probable class is the label. It returns an
// error if labels are missing or out of range.
func (p *Predictions) Correct() ([]bool, error) {
	if err := p.checkLabels("Correct"); err != nil {
		return nil, err
	}
	correct := make([]bool, p.Len())
	for n, label := range p.Labels {
		class, _ := p.Guess(n)
		correct[n] = class == int(label)
	}
	return correct, nil
}

func (p *Predictions) row(n int) []float64 {
	return p.Probabilities[n*p.Classes : (n+1)*p.Classes]
}

// check checks probabilities and uncertainties, not labels.
func (p *Predictions) check(what string) error {
	if p == nil {
		return errors.Errorf("evaluate: %s: predictions must not be nil", what)
	}
	what += ": predictions on " + p.Name
	if err := checkRows(what, p.Probabilities, p.Len(), p.Classes); err != nil {
		return err
	}
	for _, s := range OODScores() {
		values := s.Of(p)
		if s.Detector && values == nil {
			continue
		}
		if len(values) != p.Len() {
			return errors.Errorf("evaluate: %s: %[3]s must have one value for each of %[4]d examples, got %[2]d",
				what, len(values), s.Name, p.Len())
		}
		for n, v := range values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return errors.Errorf("evaluate: %s: example %d: %s must be finite, got %v",
					what, n, s.Name, v)
			}
		}
	}
	return nil
}

// checkLabels returns an error unless each example has a label of one of the classes.
func (p *Predictions) checkLabels(what string) error {
	if p == nil {
		return errors.Errorf("evaluate: %s: predictions must not be nil", what)
	}
	if p.Labels == nil {
		return errors.Errorf("evaluate: %s: must have labels", what)
	}
	return checkLabelled(what, p.Probabilities, p.Labels, p.Classes)
}
