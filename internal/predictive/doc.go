// Package predictive averages what the samples of a run predict.
//
// An Average loads one sample after the other, and an Ensemble has all of them loaded. Both score
// images with the run's detector of strange images, if it has one, by the features that images have
// under a few of the samples. Other samples make predictions without storing features, which is
// faster. The samples are always added in the order of the run, since rounding depends on it.
package predictive

import (
	"github.com/pollen-ml/pollen/internal/detector"
	"github.com/pollen-ml/pollen/samples"
)

// Model is what predicts: a network, whose samples are elsewhere.
type Model struct {
	// Apply is the network, from its inputs to logits.
	Apply samples.Network
	// Samples is the number of samples, and Passes the number of predictions of each, which differ
	// only with Monte Carlo dropout.
	Samples, Passes int
	// Dirichlet reports whether the logits of a sample are a Dirichlet distribution.
	Dirichlet bool
	// Detector scores how strange images are; nil for no scores. It reads their pixels.
	Detector *detector.Detector
}

// strangeness returns the scores of images, empty so far; nil without a detector.
func (m *Model) strangeness(images samples.Images) *strangeness {
	if m.Detector == nil {
		return nil
	}
	shape := detector.Shape{Channels: images.Channels, Height: images.Height, Width: images.Width}
	return &strangeness{scorer: m.Detector.Scorer(images.Pixels, shape), detector: m.Detector}
}
