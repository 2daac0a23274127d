package measure

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"

	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Validation scores the chains of a run on validation images while it trains. The scores do not
// affect the run. The methods of a nil Validation do nothing.
type Validation struct {
	predictor *samples.SamplePredictor
	images    float64 // a hash of the images' pixels
	labels    []int32
	spacing   int // minimum number of steps between two scores
	last      int // step of the last scores

	probabilities []float32
	sum           []float64 // weighted sum of the samples' probabilities
	weight        float64
}

// ValidationScores are scores on validation images.
type ValidationScores struct {
	// Loss and Accuracy are means over the scores of the chains' present states.
	Loss, Accuracy float64
	// NLL and AverageAccuracy are the negative log-likelihood and the accuracy of the average of
	// the samples so far or, before the first sample, of the chains' present states.
	NLL, AverageAccuracy float64
}

// NewValidation loads labelled images on a device, to score chains at most once in spacing steps.
// batch is the number of images that are predicted at a time.
func NewValidation(device tensor.Device, images samples.Images, labels []int32, network layers.Sequential, batch, spacing int) (*Validation, error) {
	predictor, err := samples.NewSamplePredictor(device, tensor.Float32, images, batch, network.Apply)
	if err != nil {
		return nil, err
	}
	pixels := images.Pixels
	if images.Features > 0 {
		pixels = tensor.Bytes(images.Rows)
	}
	n, hash := len(labels)*predictor.Classes(), sha256.Sum256(pixels)
	const bits = 53 // the precision of a float64
	return &Validation{images: float64(binary.LittleEndian.Uint64(hash[:]) >> (64 - bits)), predictor: predictor, labels: labels, spacing: spacing, last: -spacing,
		probabilities: make([]float32, n), sum: make([]float64, n)}, nil
}

// ValidationBytes is the memory for each probability: the latest value, and three sums.
const ValidationBytes = 4 + 3*8

// Due reports whether the chains are to be scored after step steps.
func (v *Validation) Due(step int) bool { return v != nil && step-v.last >= v.spacing }

// Score scores the states of the chains after step steps. If they are samples, their predictions
// are added to the average.
func (v *Validation) Score(states []samples.Sample, step int, sampled bool) (ValidationScores, error) {
	v.last = step
	var s ValidationScores
	sum, weight := slices.Clone(v.sum), v.weight
	now := make([]float64, len(v.sum))
	for _, state := range states {
		if err := v.predictor.Predict(state, v.probabilities); err != nil {
			v.sum, v.weight = sum, weight // as before
			return s, err
		}
		loss, accuracy := Scores(v.probabilities, v.labels, nil)
		s.Loss, s.Accuracy = s.Loss+loss/float64(len(states)), s.Accuracy+accuracy/float64(len(states))
		for i, p := range v.probabilities {
			now[i] += float64(p) / float64(len(states))
			if sampled {
				v.sum[i] += state.Weight * float64(p)
			}
		}
		if sampled {
			v.weight += state.Weight
		}
	}
	if v.weight > 0 {
		for i, sum := range v.sum {
			now[i] = sum / v.weight
		}
	}
	s.NLL, s.AverageAccuracy = Scores(now, v.labels, nil)
	return s, nil
}

// state returns the average as numbers, which restore reads.
func (v *Validation) state() []float64 {
	return append([]float64{v.images, float64(v.last), v.weight}, v.sum...)
}

// restore reads a state. If the state is not of the same images, because the run was begun
// without validation images or with others, the average begins at the present step.
func (v *Validation) restore(state []float64) {
	const numbers = 3
	if v == nil || len(state) != numbers+len(v.sum) || state[0] != v.images {
		return
	}
	v.last, v.weight = int(state[1]), state[2]
	copy(v.sum, state[numbers:])
}

// Close frees the images.
func (v *Validation) Close() error {
	if v == nil {
		return nil
	}
	return v.predictor.Close()
}
