package bayes

import (
	"cmp"
	"fmt"

	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// The memory of predictions is estimated like that of fits, see Memory: for samples that predict
// one after the other, or for a Predictor, which keeps all samples loaded.

// addPredictions adds the memory of Run.Predictions of n images for a run with the given number of
// sample files. The samples of a detector have a predictor of their own.
func (e *estimate) addPredictions(phase string, p parts, n int, files int, detects bool) {
	e.addFeatures(phase, p, n)
	size := e.prediction(samples.PredictionSize, p, n, predictBatch)
	const perLogit, perScore = 4, 8
	scores := 0
	if detects {
		featured := e.prediction(samples.FeaturePredictionSize, p, n, predictBatch)
		// If all samples are the detector's, only its predictor is loaded, see predictive.Average.
		if files > detectorSamples {
			e.add(fmt.Sprintf("features of %d images", n), phase, featured.Footprint, 0)
		} else {
			size.Footprint = featured.Footprint
		}
		scores = n * (perLogit*size.Classes + 5*perScore)
	}
	// A sample's probabilities in float32; mean and votes in float64; the mean entropy; a sample
	// and its file. Once the session is closed, a copy of the mean and five measures of
	// uncertainty.
	const perProbability, perImage, perWeight = 4 + 2*8, 8, 8
	const moreProbability, moreImage = 8, 5 * 8
	average := n*(perProbability*size.Classes+perImage) + scores
	if detects {
		average *= 2 // comparing features leaves garbage, which is collected when the heap has doubled
	}
	results := n * (moreProbability*size.Classes + moreImage)
	heap := max(average+perWeight*size.Weights, average+results-size.Host)
	e.add(fmt.Sprintf("predictions for %d images", n), phase, size.Footprint, heap)
}

// PredictMemory estimates the memory that Predict and Predictions need for a number of images, not
// counting the images themselves.
func (r *Run) PredictMemory(images int) (*Memory, error) {
	p, err := r.parts()
	if err != nil {
		return nil, err
	}
	files, err := r.sampleFiles("predict")
	if err != nil {
		return nil, err
	}
	found, err := r.detectorIfAny(len(files))
	if err != nil {
		return nil, err
	}
	var m *Memory
	err = r.on(func(device tensor.Device) error {
		m, err = predictMemory(device, p, images, len(files), found != nil)
		return err
	})
	return m, err
}

func predictMemory(device tensor.Device, p parts, images, files int, detects bool) (*Memory, error) {
	e := &estimate{device: device}
	e.addPredictions("", p, images, files, detects)
	return e.done()
}

// checkPredictions returns a MemoryError if predictions for some images need more memory than is
// available.
func (r *Run) checkPredictions(device tensor.Device, images int, p parts, files int, detects bool) error {
	m, err := predictMemory(device, p, images, files, detects)
	if err != nil {
		return err
	}
	return m.check(fmt.Sprintf("pollen: predict: %s: predicting %d images", r.dir, images), func(onHost, onDevice int64) []string {
		n := halved(images, func(n int) bool {
			m, err := predictMemory(device, p, n, files, detects)
			return err == nil && m.within(onHost, onDevice)
		})
		if n == 0 {
			return nil
		}
		return []string{fmt.Sprintf("at most %d images at a time", n)}
	})
}

// checkGradient returns a MemoryError if the gradients of some images need more memory than is
// available.
func (r *Run) checkGradient(device tensor.Device, images int, network layers.Sequential) error {
	size, err := samples.GradientSize(device, r.shape(), images, predictBatch, network.Apply)
	if err != nil {
		return err
	}
	return checkSession(device, fmt.Sprintf("pollen: gradient: %s: differentiating by %d images", r.dir, images), size.Footprint, "fewer images")
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
	p, err := r.parts()
	if err != nil {
		return nil, err
	}
	var m *Memory
	err = r.on(func(device tensor.Device) error {
		m, err = r.predictorMemory(device, batch, len(files), p)
		return err
	})
	return m, err
}

func (r *Run) predictorMemory(device tensor.Device, batch, members int, p parts) (*Memory, error) {
	size, err := samples.EnsembleSize(device, p.inputs(), batch, predictorBatches*batch, members, p.network.Apply)
	if err != nil {
		return nil, err
	}
	const perWeight = 8 // a sample that is read and its file
	e := &estimate{device: device}
	e.add(fmt.Sprintf("network and %d samples", members), "", size.Footprint, perWeight*size.Weights)
	e.addFeatures("", p, predictorBatches*batch)
	return e.done()
}

// checkPredictor returns a MemoryError if a Predictor needs more memory than is available.
func (r *Run) checkPredictor(device tensor.Device, batch, members int, p parts) error {
	m, err := r.predictorMemory(device, batch, members, p)
	if err != nil {
		return err
	}
	return m.check(fmt.Sprintf("pollen: predictor: %s: loading %d samples", r.dir, members), func(onHost, onDevice int64) (advice []string) {
		fits := func(batch, members int) bool {
			m, err := r.predictorMemory(device, batch, members, p)
			return err == nil && m.within(onHost, onDevice)
		}
		if n := halved(batch, func(n int) bool { return fits(n, members) }); n > 0 {
			advice = append(advice, fmt.Sprintf("batch %d", n))
		}
		if n := halved(members, func(n int) bool { return fits(batch, n) }); n > 0 {
			advice = append(advice, fmt.Sprintf("a run that keeps %d samples", n))
		}
		return advice
	})
}

// addFeatures adds the memory for computing the features of n images, if the network has a frozen
// stem: the frozen network and the activations of a batch, for each size of batches that n images
// may need, and the features, which are kept in memory.
func (e *estimate) addFeatures(phase string, p parts, n int) {
	if p.frozen == nil {
		return
	}
	for _, batch := range pretrained.Batches(e.device, n) {
		size, initial, err := p.frozen.Size(e.device, batch)
		e.err = cmp.Or(e.err, err)
		e.add(fmt.Sprintf("frozen network, %d at a time", batch), phase, size, initial)
	}
	e.add(fmt.Sprintf("features of %d images", n), phase, tensor.Footprint{}, p.frozen.Bytes(n))
}
