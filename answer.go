package pollen

import (
	"context"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/pkg/errors"

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

	// PredictionSet holds the plausible classes, the most probable first: it has the true one with
	// the probability of WithLevel, for images like those of the calibration. It may be empty.
	PredictionSet []string `json:"predictionSet,omitzero"`
	// InDistribution means like the images trained on, of which the share of WithInDistributionRate
	// is.
	InDistribution *bool `json:"inDistribution,omitzero"`
	// Calibrated says that both are there; nil is what too few held-out images cannot tell.
	Calibrated bool `json:"calibrated"`
}

// String is the answer in words.
func (a Answer) String() string {
	text := fmt.Sprintf("%s (%.2f)", a.Class, a.Confidence)
	if a.File != "" {
		text = a.File + ": " + text
	}
	switch {
	case len(a.PredictionSet) > 0:
		text += " of " + strings.Join(a.PredictionSet, ", ")
	case a.PredictionSet != nil:
		text += "; empty prediction set"
	}
	if a.InDistribution != nil && !*a.InDistribution {
		text += "; out of distribution"
	}
	return text
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
	hasSets, hasFamiliar := c.Supports(e.level), c.Supports(e.inDistributionRate)
	if hasSets {
		sets, err := c.PredictionSets(p.Probabilities, p.Classes, e.level)
		if err != nil {
			return nil, err
		}
		for i := range answers {
			answers[i].PredictionSet = []string{}
			for _, class := range sets[i] {
				answers[i].PredictionSet = append(answers[i].PredictionSet, names[class])
			}
		}
	}
	if hasFamiliar {
		familiar, err := c.InDistribution(p.Entropy, e.inDistributionRate)
		if err != nil {
			return nil, err
		}
		for i := range answers {
			answers[i].InDistribution, answers[i].Calibrated = &familiar[i], hasSets
		}
	}
	return answers, nil
}

// WriteCSV writes answers as CSV: a row for each, with the probabilities of all classes, which it
// names in the header.
func WriteCSV(to io.Writer, answers []Answer, classes []string) error {
	rows := csv.NewWriter(to)
	header := []string{"file", "class", "confidence", "entropy", "mutual_information", "prediction_set", "in_distribution"}
	for _, class := range classes {
		header = append(header, "p("+class+")")
	}
	if err := rows.Write(header); err != nil {
		return errors.Wrap(err, "pollen: csv")
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	for i, a := range answers {
		if len(a.Probabilities) != len(classes) {
			return invalid("csv: answer %d has %d probabilities, wants one for each of %d classes", i, len(a.Probabilities), len(classes))
		}
		row := []string{a.File, a.Class, number(a.Confidence), number(a.Entropy), number(a.MutualInformation), strings.Join(a.PredictionSet, ";"), ""}
		if a.InDistribution != nil {
			row[6] = strconv.FormatBool(*a.InDistribution)
		}
		for _, p := range a.Probabilities {
			row = append(row, number(p))
		}
		if err := rows.Write(row); err != nil {
			return errors.Wrap(err, "pollen: csv")
		}
	}
	rows.Flush()
	return errors.Wrap(rows.Error(), "pollen: csv")
}
