package predictive

import (
	"math"
	"slices"

	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/detector"
	"github.com/pollen-ml/pollen/samples"
)

// strangeness accumulates the scores of predictions by which images are judged in or out of
// distribution.
type strangeness struct {
	scorer   *detector.Scorer
	detector *detector.Detector

	weight           float64 // of the samples so far
	maxLogit, energy []float64
	logits, features []float32
}

// featureRows is the number of images whose features are read together.
const featureRows = 1024

// add adds a prediction of n images by the sample at a position, whose features the detector has:
// its logits and, in the first pass, its features.
func (s *strangeness) add(p *samples.SamplePredictor, n, position, pass int, weight float64) error {
	if pass == 0 {
		if err := s.addFeatures(n, p.FeatureCount(), position, p.Features); err != nil {
			return err
		}
	}
	if s.maxLogit == nil {
		s.maxLogit, s.energy, s.logits = make([]float64, n), make([]float64, n), make([]float32, n*p.Classes())
	}
	if err := p.Logits(s.logits); err != nil {
		return err
	}
	// Each image has the weighted mean of its scores over the samples, updated as in
	// mean += w/W (x - mean), where W is the weight so far. The energy is -log sum exp of the
	// logits; the largest one is taken out so that no exponential overflows.
	s.weight += weight
	for i := range n {
		row := s.logits[i*p.Classes() : (i+1)*p.Classes()]
		largest := slices.Max(row)
		sum := 0.0
		for _, v := range row {
			sum += math.Exp(float64(v - largest))
		}
		s.maxLogit[i] += weight / s.weight * (-float64(largest) - s.maxLogit[i])
		s.energy[i] += weight / s.weight * (-float64(largest) - math.Log(sum) - s.energy[i])
	}
	return nil
}

// addFeatures reads the features of n images in parts, if the detector has the sample at a
// position.
func (s *strangeness) addFeatures(n, width, position int, read func(first int, to []float32) error) error {
	member := s.detector.At(position)
	if member < 0 {
		return nil
	}
	for first := 0; first < n; first += featureRows {
		rows := min(featureRows, n-first)
		s.features = slices.Grow(s.features[:0], rows*width)[:rows*width]
		if err := read(first, s.features); err != nil {
			return err
		}
		if err := s.scorer.Add(member, first, s.features); err != nil {
			return err
		}
	}
	return nil
}

// scores returns the scores of predictions.
func (s *strangeness) scores() (evaluate.Strangeness, error) {
	d, err := s.scorer.Scores()
	return evaluate.Strangeness{
		MaxLogit: s.maxLogit, Energy: s.energy,
		ImageStatistics: d.Statistics, Mahalanobis: d.Mahalanobis, RelativeMahalanobis: d.RelativeMahalanobis, Nonconformity: d.Combined,
	}, err
}
