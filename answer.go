package pollen

import (
	"context"
	"fmt"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
)

// Answer is what a run says about one image.
type Answer struct {
	File  string `json:"file,omitempty"` // where the image is from, if known
	Class string `json:"class"`          // the most probable
	Index int    `json:"index"`          // its number

	Confidence        float64   `json:"confidence"`              // its probability, averaged over the posterior
	Entropy           float64   `json:"entropy"`                 // of the averaged probabilities, in nats
	MutualInformation float64   `json:"mutualInformation"`       // what the samples disagree on, in nats; 0 for one sample
	Probabilities     []float64 `json:"probabilities,omitempty"` // by class

	// Set holds the plausible classes, the most probable first: it has the true one with the
	// probability of WithLevel, for images like those of the calibration. It may be empty.
	Set []string `json:"set,omitempty"`
	// Familiar means like the images trained on; WithFamiliarRate is the share of these that are.
	Familiar bool `json:"familiar"`
	// Calibrated says that Set and Familiar were computed: the run was calibrated, on enough images
	// for their levels.
	Calibrated bool `json:"calibrated"`
}

// Predict answers for each image of a data set, in order. The images must have the size and
// channels of those trained on.
func (r *Run) Predict(ctx context.Context, images *datasets.Dataset) ([]Answer, error) {
	if err := r.checkLevels(); err != nil {
		return nil, err
	}
	p, err := r.Predictions(ctx, images, nil)
	if err != nil {
		return nil, err
	}
	return r.Answers(p, images.Files)
}

// Answers turns predictions of the run into answers; files name the images, or are nil.
func (r *Run) Answers(p *evaluate.Predictions, files []string) ([]Answer, error) {
	if err := r.checkLevels(); err != nil {
		return nil, err
	}
	c, err := r.calibrationIfAny(p.Samples)
	if err != nil {
		return nil, err
	}
	answers, err := r.answers(p, r.manifest.Data.ClassNames, c)
	for i := range answers {
		if files != nil {
			answers[i].File = files[i]
		}
	}
	return answers, err
}

// tooFew reports whether a calibration had too few images for one of the levels, and for which.
func (e environment) tooFew(c *evaluate.Calibration) (level float64, few bool) {
	for _, share := range []float64{e.level, e.familiar} {
		if !c.Supports(share) {
			return share, true
		}
	}
	return 0, false
}

// answers turns predictions into answers, by a calibration if there is one.
func (e environment) answers(p *evaluate.Predictions, names []string, c *evaluate.Calibration) ([]Answer, error) {
	answers := make([]Answer, p.Len())
	for i := range answers {
		class, confidence := p.Guess(i)
		answers[i] = Answer{
			Class: names[class], Index: class, Confidence: confidence, Entropy: p.Entropy[i], MutualInformation: p.MutualInformation[i],
			Probabilities: p.Probabilities[i*p.Classes : (i+1)*p.Classes : (i+1)*p.Classes],
		}
	}
	if c == nil {
		return answers, nil
	}
	if c.Samples != p.Samples {
		return nil, invalid("calibrated with %d samples, predicted with %d: calibrate again", c.Samples, p.Samples)
	}
	if share, few := e.tooFew(c); few {
		e.remark(fmt.Sprintf("calibrated on %d images, which are too few for the level %g: no prediction sets, and nothing is called familiar", c.Examples, share))
		return answers, nil
	}
	sets, err := c.Sets(p.Probabilities, p.Classes, e.level)
	if err != nil {
		return nil, err
	}
	familiar, err := c.Familiar(p.Entropy, e.familiar)
	if err != nil {
		return nil, err
	}
	for i := range answers {
		answers[i].Calibrated, answers[i].Familiar = true, familiar[i]
		for _, class := range sets[i] {
			answers[i].Set = append(answers[i].Set, names[class])
		}
	}
	return answers, nil
}
