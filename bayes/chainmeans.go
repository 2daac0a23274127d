package bayes

import (
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/samples"
)

// chainMeans averages the predictions of the networks at the mean weights of each chain's samples,
// which centre the samples of a chain that stays around one mode. Samples of a chain must be added
// one after the other. A nil *chainMeans does nothing.
type chainMeans struct {
	predictions *evaluate.Predictions // after end; nil if one is not finite

	predictor *samples.SamplePredictor
	average   *evaluate.Predictive
	rows      []float32
	chain     string     // of the samples so far
	mean      sampleMean // of the chain
	failed    error
}

// begin prepares to predict a number of images.
func (m *chainMeans) begin(predictor *samples.SamplePredictor, images int) (err error) {
	if m == nil {
		return nil
	}
	m.predictor, m.rows = predictor, make([]float32, images*predictor.Classes())
	m.average, err = evaluate.NewPredictive(images, predictor.Classes())
	return err
}

// add adds a sample of a chain.
func (m *chainMeans) add(chain string, s samples.Sample) {
	if m == nil || m.failed != nil {
		return
	}
	if chain != m.chain || m.mean.means == nil {
		m.endChain()
		m.chain, m.mean = chain, sampleMean{}
	}
	m.failed = m.mean.add(s)
}

// endChain predicts with the means of the chain.
func (m *chainMeans) endChain() {
	if m.mean.means == nil || m.failed != nil {
		return
	}
	if m.failed = m.predictor.Predict(m.mean.sample(), m.rows); m.failed == nil {
		m.failed = m.average.Add(m.rows, m.mean.weight)
	}
}

// end ends the last chain.
func (m *chainMeans) end(data *datasets.Dataset) {
	if m == nil {
		return
	}
	m.endChain()
	if m.failed == nil && m.average.Samples() > 0 {
		m.predictions = m.average.Predictions(data.Name, data.Labels)
	}
}

// sampleMean is the weighted mean of samples of one network.
type sampleMean struct {
	last   samples.Sample
	means  [][]float64 // by parameter
	weight float64     // of all samples
}

// add adds a sample. Samples of different networks are an error.
func (m *sampleMean) add(s samples.Sample) error {
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

// sample returns the mean as a sample.
func (m *sampleMean) sample() samples.Sample {
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
