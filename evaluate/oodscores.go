package evaluate

import (
	"cmp"

	"github.com/pkg/errors"
)

// OODScore is a row of the table of scores that can detect out-of-distribution examples.
type OODScore struct {
	Name    string // "mutualInformation", the key in JSON
	Title   string // "mutual information"
	Meaning string // an explanation
	Source  string // of the score as a detector
	// Samples is true for scores that need at least two posterior samples, or a Dirichlet
	// distribution. Votes is true for those that need samples even then.
	Samples, Votes bool
	// Detector is true for scores that need a run with a detector.
	Detector bool
	// Of returns a value for each example. Higher means more uncertain, or stranger.
	Of func(p *Predictions) []float64
}

// Applies reports whether the predictions have the score, and enough samples for it.
func (s OODScore) Applies(p *Predictions) bool {
	return (!s.Samples || p.Samples > 1 || p.Dirichlet && !s.Votes) && (!s.Detector || s.Of(p) != nil)
}

// DefaultOODScore is the uncertainty used for a Case that names none.
const DefaultOODScore = "entropy"

// DecisionOODScore is the name of the score that decides what is in distribution.
const DecisionOODScore = "nonconformity"

// OODScores returns the table of OOD scores.
func OODScores() []OODScore {
	return []OODScore{
		confidenceOOD, entropyOOD, expectedEntropyOOD, mutualInformationOOD, variationRatioOOD,
		maxLogitOOD, energyOOD,
		imageStatisticsOOD, mahalanobisOOD, relativeMahalanobisOOD, nonconformityOOD,
	}
}

// The scores of probabilities.
var (
	confidenceOOD = OODScore{
		Name: "confidence", Title: "1 - confidence",
		Meaning: "1 minus the largest probability.",
		Source:  "Hendrycks and Gimpel, A baseline for detecting misclassified and out-of-distribution examples (2017)",
		Of: func(p *Predictions) []float64 {
			rest := make([]float64, len(p.Confidence))
			for n, c := range p.Confidence {
				rest[n] = 1 - c
			}
			return rest
		},
	}
	entropyOOD = OODScore{
		Name: "entropy", Title: "entropy",
		Meaning: "The entropy of the averaged probabilities, in nats: the total uncertainty.",
		Source:  "Lakshminarayanan, Pritzel and Blundell, Simple and scalable predictive uncertainty estimation using deep ensembles (2017)",
		Of:      func(p *Predictions) []float64 { return p.Entropy },
	}
	expectedEntropyOOD = OODScore{
		Name: "expectedEntropy", Title: "expected entropy", Samples: true,
		Meaning: "The mean entropy of single samples, in nats: the aleatoric uncertainty.",
		Source:  "Malinin and Gales, Predictive uncertainty estimation via prior networks (2018)",
		Of:      func(p *Predictions) []float64 { return p.ExpectedEntropy },
	}
	mutualInformationOOD = OODScore{
		Name: "mutualInformation", Title: "mutual information", Samples: true,
		Meaning: "Entropy minus expected entropy, in nats: the epistemic uncertainty, on which samples disagree.",
		Source:  "Houlsby, Huszar, Ghahramani and Lengyel, Bayesian active learning for classification and preference learning (2011)",
		Of:      func(p *Predictions) []float64 { return p.MutualInformation },
	}
	variationRatioOOD = OODScore{
		Name: "variationRatio", Title: "variation ratio", Samples: true, Votes: true,
		Meaning: "The weighted fraction of samples that do not vote for the most voted class.",
		Source:  "Freeman, Elementary applied statistics (1965); Gal, Uncertainty in deep learning (2016)",
		Of:      func(p *Predictions) []float64 { return p.VariationRatio },
	}
)

// The scores of logits.
var (
	maxLogitOOD = OODScore{
		Name: "maxLogit", Title: "- maximum logit", Detector: true,
		Meaning: "Minus the largest logit, averaged over the samples of the detector.",
		Source:  "Hendrycks et al., Scaling out-of-distribution detection for real-world settings (2022)",
		Of:      func(p *Predictions) []float64 { return p.MaxLogit },
	}
	energyOOD = OODScore{
		Name: "energy", Title: "energy", Detector: true,
		Meaning: "Minus the logarithm of the sum of the logits' exponentials, averaged over the samples of the detector.",
		Source:  "Liu, Wang, Owens and Li, Energy-based out-of-distribution detection (2020)",
		Of:      func(p *Predictions) []float64 { return p.Energy },
	}
)

// The scores of a detector.
var (
	imageStatisticsOOD = OODScore{
		Name: "imageStatistics", Title: "image statistics", Detector: true,
		Meaning: "The distance of means, deviations and octaves of the spectrum of the channels from those of the nearest training images.",
		Source:  "Torralba and Oliva, Statistics of natural image categories (2003), for the statistics",
		Of:      func(p *Predictions) []float64 { return p.ImageStatistics },
	}
	mahalanobisOOD = OODScore{
		Name: "mahalanobis", Title: "Mahalanobis", Detector: true,
		Meaning: "The Mahalanobis distance of the direction of the features of all layers from those of all training images, averaged over samples.",
		Source:  "Lee, Lee, Lee and Shin, A simple unified framework for detecting out-of-distribution samples (2018), for classes",
		Of:      func(p *Predictions) []float64 { return p.Mahalanobis },
	}
	relativeMahalanobisOOD = OODScore{
		Name: "relativeMahalanobis", Title: "relative Mahalanobis", Detector: true,
		Meaning: "How much farther the features of all layers are from the nearest class than from all training images, in squared Mahalanobis " +
			"distances, averaged over samples.",
		Source: "Ren et al., A simple fix to Mahalanobis distance for improving near-OOD detection (2021), for the last layer",
		Of:     func(p *Predictions) []float64 { return p.RelativeMahalanobis },
	}
	nonconformityOOD = OODScore{
		Name: "nonconformity", Title: "nonconformity", Detector: true,
		Meaning: "The root of the sum of the squares of image statistics, Mahalanobis and relative Mahalanobis, each less its median " +
			"and divided by its 95th percentile less that, on training images. It decides what counts as in distribution.",
		Source: "Bates, Candes, Lei, Romano and Sesia, Testing for outliers with conformal p-values (2023), for the decision",
		Of:     func(p *Predictions) []float64 { return p.Nonconformity },
	}
)

// oodScoreByName returns the row with a name; "" is DefaultOODScore.
func oodScoreByName(name string) (OODScore, error) {
	name = cmp.Or(name, DefaultOODScore)
	var names []string
	for _, s := range OODScores() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return OODScore{}, errors.Errorf("evaluate: OODScore must be one of %v, got %q", names, name)
}
