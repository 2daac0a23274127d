package samples

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pollen-ml/pollen/tensor"
)

// NotFiniteError is the error of a sample under which the network computes a NaN or an infinity.
// Usually its weights are finite, but so large that activations overflow. Such a sample is from a
// chain that diverged, and must not be averaged.
type NotFiniteError struct {
	Chain, Step int    // of the sample
	What        string // the value that is not finite, such as "probability of image 3"
}

// Error names the sample and what is not finite.
func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("samples: the sample of chain %d at step %d has a %s that is not finite: its chain diverged", e.Chain, e.Step, e.What)
}

// checkFinite returns a NotFiniteError for the first value of images that is not finite.
func checkFinite(values []float32, images int, s Sample, what string) error {
	for i, v := range values {
		if v-v != 0 { // NaN for an infinity and for NaN
			return &NotFiniteError{s.Chain, s.Step, fmt.Sprintf("%s of image %d", what, i*images/len(values))}
		}
	}
	return nil
}

// Probe detects samples that do not predict finite probabilities, by predicting a few images that
// depend only on the shape: a black one, a white one, and two of random pixels. Runs check each
// sample with it before they keep it, and verification checks them again.
type Probe struct {
	predictor     *SamplePredictor
	probabilities []float32
}

// noiseProbes is the number of images of random pixels.
const noiseProbes = 2

// NewProbe loads the network on a device. images gives the shape and moments of the images only.
func NewProbe(device tensor.Device, images Images, network Network) (*Probe, error) {
	images = probes(images)
	predictor, err := NewSamplePredictor(device, tensor.Float32, images, 1, network)
	if err != nil {
		return nil, err
	}
	return &Probe{predictor, make([]float32, images.Len()*predictor.Classes())}, nil
}

// probes returns the images of a Probe. Vectors are zeros, ones, and normal random numbers.
func probes(images Images) Images {
	random := rand.New(rand.NewPCG(0, 0))
	if size := max(0, images.Features); size > 0 {
		images.Rows = append(make([]float32, size), slices.Repeat([]float32{1}, size)...)
		for range noiseProbes * size {
			images.Rows = append(images.Rows, float32(random.NormFloat64()))
		}
		return images
	}
	size := max(0, images.Channels) * max(0, images.Height) * max(0, images.Width)
	images.Pixels = append(make([]byte, size), slices.Repeat([]byte{255}, size)...)
	for range noiseProbes * size {
		images.Pixels = append(images.Pixels, byte(random.Uint32()))
	}
	return images
}

// Check returns a NotFiniteError if a weight of the sample or a probability that it predicts is not
// finite.
func (p *Probe) Check(s Sample) error {
	for _, parameter := range s.Parameters {
		for _, v := range parameter.Values {
			if v-v != 0 {
				return &NotFiniteError{s.Chain, s.Step, "value in " + parameter.Name}
			}
		}
	}
	return p.predictor.Predict(s, p.probabilities)
}

// Close releases the memory. A nil Probe has none.
func (p *Probe) Close() error {
	if p == nil {
		return nil
	}
	return p.predictor.Close()
}
