package pollen

import (
	"fmt"

	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// addPredictions adds what Run.Predictions of n images takes.
func (m *Memory) addPredictions(phase string, device tensor.Device, images samples.Images, n int, network layers.Sequential) error {
	size, err := samples.PredictionSize(device, images, n, predictBatch, network.Apply)
	if err != nil {
		return err
	}
	// A sample's probabilities in float32; mean and votes in float64; the mean entropy; a sample
	// and its file. Once the session is closed, a copy of the mean and five measures of
	// uncertainty.
	const perProbability, perImage, perWeight = 4 + 2*8, 8, 8
	const moreProbability, moreImage = 8, 5 * 8
	average := n * (perProbability*size.Classes + perImage)
	results := n * (moreProbability*size.Classes + moreImage)
	heap := max(average+perWeight*size.Weights, average+results-size.Host)
	m.add(fmt.Sprintf("predictions for %d images", n), phase, size.Footprint, heap)
	return nil
}

// PredictMemory estimates the memory of Predict and Predictions for a number of images in addition
// to these.
func (r *Run) PredictMemory(images int) (*Memory, error) {
	network, err := r.Network()
	if err != nil {
		return nil, err
	}
	m := &Memory{}
	err = r.on(func(device tensor.Device) error {
		if err := m.addPredictions("", device, r.shape(nil), images, network); err != nil {
			return err
		}
		return m.sum(device)
	})
	return m, err
}

// checkPredictions returns a MemoryError if predictions for some images need more memory than is
// available.
func (r *Run) checkPredictions(device tensor.Device, images int, network layers.Sequential) error {
	size := func(n int) (*Memory, error) {
		m := &Memory{}
		if err := m.addPredictions("", device, r.shape(nil), n, network); err != nil {
			return nil, err
		}
		return m, m.sum(device)
	}
	m, err := size(images)
	if err != nil {
		return err
	}
	return m.check(fmt.Sprintf("pollen: predict: %s: predicting %d images", r.dir, images), func(onHost, onDevice int64) []string {
		for n := images / 2; n >= 1; n /= 2 {
			if m, err := size(n); err == nil && m.Host <= onHost && m.Device <= onDevice {
				return []string{fmt.Sprintf("at most %d images at a time", n)}
			}
		}
		return nil
	})
}

// checkGradient returns a MemoryError if the gradients of some images need more memory than is
// available.
func (r *Run) checkGradient(device tensor.Device, images int, network layers.Sequential) error {
	size, err := samples.GradientSize(device, r.shape(nil), images, predictBatch, network.Apply)
	if err != nil {
		return err
	}
	m := &Memory{}
	m.add("gradients", "", size.Footprint, 0)
	if err := m.sum(device); err != nil {
		return err
	}
	return m.check(fmt.Sprintf("pollen: gradient: %s: differentiating by %d images", r.dir, images), func(int64, int64) []string {
		return []string{"fewer images"}
	})
}

// PredictorMemory estimates the memory of a Predictor with the samples that the run has so far.
func (r *Run) PredictorMemory(batch int) (*Memory, error) {
	if batch < 1 {
		return nil, invalid("predictor: batch must be at least 1, got %d", batch)
	}
	files, err := r.sampleFiles("predictor")
	if err != nil {
		return nil, err
	}
	network, err := r.Network()
	if err != nil {
		return nil, err
	}
	var m *Memory
	err = r.on(func(device tensor.Device) error {
		m, err = r.predictorMemory(device, batch, len(files), network)
		return err
	})
	return m, err
}

func (r *Run) predictorMemory(device tensor.Device, batch, members int, network layers.Sequential) (*Memory, error) {
	images := r.shape(nil)
	size, err := samples.EnsembleSize(device, images, batch, predictorBatches*batch, members, network.Apply)
	if err != nil {
		return nil, err
	}
	const perWeight = 8 // a sample that is read and its file
	m := &Memory{}
	m.add(fmt.Sprintf("network and %d samples", members), "", size.Footprint, perWeight*size.Weights)
	return m, m.sum(device)
}

// checkPredictor returns a MemoryError if a Predictor needs more memory than is available.
func (r *Run) checkPredictor(device tensor.Device, batch, members int, network layers.Sequential) error {
	m, err := r.predictorMemory(device, batch, members, network)
	if err != nil {
		return err
	}
	return m.check(fmt.Sprintf("pollen: predictor: %s: loading %d samples", r.dir, members), func(onHost, onDevice int64) (advice []string) {
		fits := func(batch, members int) bool {
			m, err := r.predictorMemory(device, batch, members, network)
			return err == nil && m.Host <= onHost && m.Device <= onDevice
		}
		for n := batch / 2; n >= 1; n /= 2 {
			if fits(n, members) {
				advice = append(advice, fmt.Sprintf("batch %d", n))
				break
			}
		}
		for n := members / 2; n >= 1; n /= 2 {
			if fits(batch, n) {
				return append(advice, fmt.Sprintf("a run that keeps %d samples", n))
			}
		}
		return advice
	})
}
