package predictive

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/samples"
)

// means averages the predictions of the networks at the mean weights of each chain's samples.
// Samples of a chain must be added one after the other.
type means struct {
	predictor *samples.SamplePredictor
	average   *evaluate.Predictive
	rows      []float32
	chain     string // of the samples so far
	mean      Mean   // of the chain
	failed    error
}

// newMeans prepares to predict a number of images.
func newMeans(predictor *samples.SamplePredictor, images int) (*means, error) {
	average, err := evaluate.NewPredictive(images, predictor.Classes())
	return &means{predictor: predictor, average: average, rows: make([]float32, images*predictor.Classes())}, err
}

// add adds a sample of a chain.
func (m *means) add(chain string, s samples.Sample) {
	if m.failed != nil {
		return
	}
	if chain != m.chain || m.mean.means == nil {
		m.endChain()
		m.chain, m.mean = chain, Mean{}
	}
	m.failed = m.mean.Add(s)
}

// endChain predicts with the means of the chain.
func (m *means) endChain() {
	if m.mean.means == nil || m.failed != nil {
		return
	}
	if m.failed = m.predictor.Predict(m.mean.Sample(), m.rows); m.failed == nil {
		m.failed = m.average.Add(m.rows, m.mean.weight)
	}
}

// predictions ends the last chain, and returns the average; nil if a prediction failed.
func (m *means) predictions(name string, labels []int32) *evaluate.Predictions {
	m.endChain()
	if m.failed != nil || m.average.Samples() == 0 {
		return nil
	}
	return m.average.Predictions(name, labels)
}

// Mean is the weighted mean of samples of one network.
type Mean struct {
	last   samples.Sample
	means  [][]float64 // by parameter
	weight float64     // of all samples
}

// Add adds a sample. Samples of different networks are an error.
func (m *Mean) Add(s samples.Sample) error {
	if m.means == nil {
		m.means = make([][]float64, len(s.Parameters))
		for i, p := range s.Parameters {
			m.means[i] = make([]float64, len(p.Values))
		}
	}
	// The mean so far: mean += w/W (x - mean), where W is the weight of all samples.
	m.last = s
	m.weight += s.Weight
	step := s.Weight / m.weight
	for i, p := range s.Parameters {
		if i >= len(m.means) || len(p.Values) != len(m.means[i]) {
			return errors.Errorf("%s has another shape than before", p.Name)
		}
		for k, value := range p.Values {
			m.means[i][k] += step * (float64(value) - m.means[i][k])
		}
	}
	return nil
}

// Sample returns the mean as a sample.
func (m *Mean) Sample() samples.Sample {
	at := m.last
	at.Parameters = nil
	for i, p := range m.last.Parameters {
		p.Values = make([]float32, len(m.means[i]))
		for k, mean := range m.means[i] {
			p.Values[k] = float32(mean)
		}
		at.Parameters = append(at.Parameters, p)
	}
	return at
}
