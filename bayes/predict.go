package bayes

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/detector"
	"github.com/pollen-ml/pollen/tensor"
)

// Answer is a run's prediction for one image.
type Answer struct {
	// File is the image's file, if known.
	File string `json:"file,omitempty"`
	// ID is the image's identifier in the table that it is from, see datasets.Dataset.IDs, if
	// known. Predict and servers set it.
	ID string `json:"id,omitempty"`
	// Error is the reason why there is no prediction for File, whose content could not be read. All
	// other fields are then empty, and absent in JSON. Answers of Predict have none.
	Error string `json:"error,omitempty"`
	// Class is the most probable class, and Index its number.
	Class string `json:"class"`
	Index int    `json:"index"`

	// Confidence is the posterior predictive probability of Class.
	Confidence float64 `json:"confidence"`
	// Entropy is the entropy of Probabilities, in nats: the total uncertainty. It is at most ln K,
	// for K equally probable classes.
	Entropy float64 `json:"entropy"`
	// MutualInformation is the mutual information between class and weights, in nats: the part of
	// Entropy that comes from samples that disagree (epistemic uncertainty). The rest is the mean
	// entropy of the samples (aleatoric uncertainty). It is 0 for one sample, except that of a
	// distilled run, which predicts a Dirichlet distribution.
	MutualInformation float64 `json:"mutualInformation"`
	// Probabilities are the posterior predictive probabilities, by class.
	Probabilities []float64 `json:"probabilities,omitempty"`

	// PredictionSet is the conformal prediction set, the most probable class first. For images like
	// those of the calibration it contains the true class with the probability of WithLevel, on
	// average over images. WithSetRule sets how it is formed, and whether it may be empty. It is
	// nil if the run was not calibrated on enough images for that level.
	PredictionSet []string `json:"predictionSet,omitzero"`
	// MarginalClasses are the classes whose images PredictionSet does not cover with the
	// probability of WithLevel, for a rule with a threshold for each class: they have the threshold
	// of all classes, since the run was calibrated on too few images of them. It is nil for other
	// rules.
	MarginalClasses []string `json:"marginalClasses,omitzero"`
	// Refer reports whether the image is to be referred to a person, because Confidence is below
	// the threshold from which on the error rate is certified to be at most that of WithRisk. It is
	// true for all images if no threshold can be certified, and nil without WithRisk.
	Refer *bool `json:"refer,omitzero"`
	// InDistribution reports whether the image is like those trained on. It is true for a fraction
	// of these that WithInDistributionRate sets, and nil if the run has no detector, or was not
	// calibrated on enough images.
	InDistribution *bool `json:"inDistribution,omitzero"`
	// PValue is the conformal p-value from which InDistribution is decided: for images like those
	// trained on it is at most a with a probability of at most a. It is nil if InDistribution is.
	PValue *float64 `json:"pValue,omitzero"`
	// Calibrated reports whether both PredictionSet and InDistribution are given.
	Calibrated bool `json:"calibrated"`
}

// MarshalJSON implements json.Marshaler.
func (a Answer) MarshalJSON() ([]byte, error) {
	if a.Error != "" {
		return json.Marshal(struct {
			File  string `json:"file,omitempty"`
			Error string `json:"error"`
		}{a.File, a.Error})
	}
	type plain Answer // without this method
	return json.Marshal(plain(a))
}

// String returns the answer in words, as in "rose (0.98) of rose, tulip".
func (a Answer) String() string {
	if a.Error != "" {
		return strings.TrimPrefix(a.File+": "+a.Error, ": ")
	}
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
	if a.Refer != nil && *a.Refer {
		text += "; refer to a person"
	}
	return text
}

// Predict returns an answer for each image of a data set, in order. It is an InvalidError if the
// images do not have the size and channels of those trained on, and a DamagedError if a sample is
// damaged or missing, see WithoutDamaged.
func (r *Run) Predict(ctx context.Context, images *datasets.Dataset) ([]Answer, error) {
	if err := r.checkLevels(); err != nil {
		return nil, err
	}
	p, err := r.Predictions(ctx, images, nil)
	if err != nil {
		return nil, err
	}
	answers, err := r.Answers(p, images.Files)
	if err != nil || images.IDs == nil {
		return answers, err
	}
	for i := range answers {
		answers[i].ID = images.IDs[i]
	}
	return answers, nil
}

// Answers returns the answers for predictions of the run. files are the images' files, or nil.
func (r *Run) Answers(p *evaluate.Predictions, files []string) ([]Answer, error) {
	if p == nil {
		return nil, invalid("answers: the predictions must not be nil")
	}
	if files != nil && len(files) != p.Len() {
		return nil, invalid("answers: there must be a file for each of %d predictions, got %d", p.Len(), len(files))
	}
	if err := r.checkLevels(); err != nil {
		return nil, err
	}
	c, err := r.calibrationIfAny(p.Samples)
	if err != nil {
		return nil, err
	}
	d, err := r.decisionsBy(c)
	if err != nil {
		return nil, err
	}
	answers, err := d.answers(p, r.manifest.Data.ClassNames)
	for i := range answers {
		if files != nil {
			answers[i].File = files[i]
		}
	}
	return answers, err
}

// Predictor predicts as Run.Predict does, but keeps the network and all samples loaded, as servers
// need, which get many requests for a few images each. Close frees the memory.
type Predictor struct {
	data      Data
	decisions *decisions
	detector  *detector.Detector // nil without one
	passes    int
	samples   int // times passes, as evaluate.Predictions counts them
	room      int // images of one part of Answer
	digest    string
	options   environment   // with which it was loaded
	host      tensor.Device // nil when the device is the caller's

	// mu serializes Answer and Close: an ensemble has one set of activations on the device.
	mu        sync.Mutex
	ensembles *ensembles // nil after Close
}

// predictorBatches is how many batches a Predictor handles together, so that the host's threads
// switch between samples less often.
const predictorBatches = 8

// Predictor loads the run's network and the samples that it has so far. The network computes batch
// images at once: a large batch takes less time for many images, a small one for a single image.
// Memory holds all samples, a batch's activations in each thread, and Room images.
//
// On the host, results are bit for bit those of Predict on as many images as a batch has, and do
// not depend on the other images, except with Monte Carlo dropout, whose passes are random.
func (r *Run) Predictor(batch int) (*Predictor, error) {
	if batch < 1 {
		return nil, invalid("predictor: batch must be at least 1, got %d", batch)
	}
	if err := r.checkLevels(); err != nil {
		return nil, err
	}
	c, err := kindOf(r.manifest.Spec.Method)
	if err != nil {
		return nil, err
	}
	files, err := r.intactFiles("predictor")
	if err != nil {
		return nil, err
	}
	parts, err := r.parts()
	if err != nil {
		return nil, err
	}
	err = r.on(func(device tensor.Device) error { return r.checkPredictor(device, batch, len(files), parts) })
	if err == nil {
		files, err = r.finite(files, parts)
	}
	if err != nil {
		return nil, err
	}
	passes := c.passes(&r.manifest.Spec)
	p := &Predictor{data: r.manifest.Data, options: r.environment, passes: passes, samples: len(files) * passes, room: predictorBatches * batch}
	if p.digest, err = r.digestOf(files); err != nil {
		return nil, err
	}
	calibration, err := r.calibrationIfAny(p.samples)
	if err != nil {
		return nil, err
	}
	if p.decisions, err = r.decisionsBy(calibration); err != nil {
		return nil, err
	}
	if p.detector, err = r.detectorIfAny(len(files)); err != nil {
		return nil, err
	}
	switch digest, err := r.digestOf(files); {
	case err != nil:
		return nil, err
	case digest != p.digest: // the run ended meanwhile, and has a calibration now
		return r.Predictor(batch)
	}
	device := r.device
	if device == nil {
		p.host = tensor.NewHost(0)
		device = p.host
	}
	p.ensembles, err = loadEnsembles(device, parts, batch, files, p.detector, r.detectorShape(), passes, c.traits().dirichlet)
	if err != nil {
		p.Close()
		return nil, err
	}
	p.ensembles.extractor.keepIn(r.environment)
	return p, nil
}

// Answer returns an answer for each of n images, whose pixels are [n C H W] bytes with the size and
// channels of those trained on. It may be called by several goroutines, which wait for each other.
// It splits the images into parts of at most Room, and returns the context's error if that ends
// between two parts.
func (p *Predictor) Answer(ctx context.Context, pixels []byte) ([]Answer, error) {
	if err := checkContext(ctx, "answer"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	size := p.data.Channels * p.data.Height * p.data.Width
	switch {
	case p.ensembles == nil:
		return nil, errors.New("pollen: answer: the predictor is closed")
	case len(pixels) == 0 || len(pixels)%size != 0:
		return nil, invalid("answer: %d bytes are not one or more images of %dx%dx%d", len(pixels), p.data.Channels, p.data.Height, p.data.Width)
	}
	all := make([]Answer, 0, len(pixels)/size)
	for len(pixels) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, errors.Wrap(err, "pollen: answer")
		}
		part := pixels[:min(len(pixels), p.room*size)]
		pixels = pixels[len(part):]
		predictions, err := p.ensembles.predict(ctx, p.data.Name, part, len(part)/size)
		if err != nil {
			return nil, err
		}
		answers, err := p.decisions.answers(predictions, p.data.ClassNames)
		if err != nil {
			return nil, err
		}
		all = append(all, answers...)
	}
	return all, nil
}

// Samples returns the number of samples that answers average.
func (p *Predictor) Samples() int { return p.samples }

// Digest returns the digest of the run with the samples that are loaded, see Run.Digest.
func (p *Predictor) Digest() string { return p.digest }

// Current reports whether a run still has the samples, the calibration and the options with which
// the predictor was loaded. The error is that of Run.Digest.
func (p *Predictor) Current(run *Run) (bool, error) {
	digest, err := run.Digest()
	a, b := run.environment, p.options
	same := a.level == b.level && a.inDistributionRate == b.inDistributionRate && a.setRule == b.setRule && a.risk == b.risk &&
		a.riskConfidence == b.riskConfidence
	return err == nil && digest == p.digest && same, err
}

// Room returns how many images Answer handles together.
func (p *Predictor) Room() int { return p.room }

// Calibrated reports whether answers have both a PredictionSet and InDistribution.
func (p *Predictor) Calibrated() bool {
	set, inDistribution := p.Levels()
	return set > 0 && inDistribution > 0
}

// Levels returns the probability with which an answer's prediction set contains the true class, and
// the fraction of in-distribution images that are recognized as such, see WithLevel and
// WithInDistributionRate; 0 for what answers do not have.
func (p *Predictor) Levels() (set, inDistribution float64) {
	if p.decisions.sets != nil {
		set = p.decisions.sets.Level
	}
	if p.detector != nil {
		inDistribution = p.decisions.rate
	}
	return set, inDistribution
}

// Calibration returns the calibration of the run that answers are decided by, or nil.
func (p *Predictor) Calibration() *evaluate.Calibration { return p.decisions.calibration }

// Sets returns how prediction sets are formed, or nil if answers have none.
func (p *Predictor) Sets() *evaluate.Sets { return p.decisions.sets }

// Certificate returns the threshold by which images are answered or referred to a person, or nil
// without WithRisk.
func (p *Predictor) Certificate() *evaluate.Certificate { return p.decisions.certificate }

// SelfTest returns the result of the run's test of InDistribution on strange images, or nil if
// there was none.
func (p *Predictor) SelfTest() *evaluate.SelfTest {
	if _, inDistribution := p.Levels(); inDistribution == 0 {
		return nil
	}
	return p.decisions.calibration.SelfTest
}

// Close frees the memory. Answer returns an error afterwards.
func (p *Predictor) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	if p.ensembles != nil {
		err = p.ensembles.close()
		p.ensembles = nil
	}
	if p.host != nil {
		err = cmp.Or(err, p.host.Close())
	}
	return err
}

// WriteCSV writes answers as CSV, a row for each, with a column for the probability of each class.
//
// If any answer has an ID, a column id follows that of the file.
//
// prediction_set has the classes of the set, joined by semicolons and quoted as in CSV where a name
// has a semicolon or a quote. set_size is their number: 0 for an empty set, and blank if there is
// no prediction set. in_distribution and refer are blank if they are unknown. A row with an error
// has only its file.
func WriteCSV(to io.Writer, answers []Answer, classes []string) error {
	rows := csv.NewWriter(to)
	header := []string{"file", "class", "confidence", "entropy", "mutual_information", "prediction_set", "set_size", "in_distribution", "refer", "error"}
	hasIDs := slices.ContainsFunc(answers, func(a Answer) bool { return a.ID != "" })
	fixed := len(header)
	for _, class := range classes {
		header = append(header, "p("+class+")")
	}
	write := func(row []string, id string) error {
		if hasIDs {
			row = slices.Insert(row, 1, id)
		}
		return errors.Wrap(rows.Write(row), "pollen: csv")
	}
	if err := write(slices.Clone(header), "id"); err != nil {
		return err
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 8, 64) }
	for i, a := range answers {
		row := make([]string, fixed, len(header))
		row[0], row[fixed-1] = a.File, a.Error
		if a.Error != "" {
			row = row[:len(header)]
		} else {
			if len(a.Probabilities) != len(classes) {
				return invalid("csv: answer %d has %d probabilities, must have one for each of %d classes", i, len(a.Probabilities), len(classes))
			}
			row[1], row[2], row[3], row[4] = a.Class, number(a.Confidence), number(a.Entropy), number(a.MutualInformation)
			if a.PredictionSet != nil {
				row[5], row[6] = joined(a.PredictionSet), strconv.Itoa(len(a.PredictionSet))
			}
			if a.InDistribution != nil {
				row[7] = strconv.FormatBool(*a.InDistribution)
			}
			if a.Refer != nil {
				row[8] = strconv.FormatBool(*a.Refer)
			}
			for _, p := range a.Probabilities {
				row = append(row, number(p))
			}
		}
		if err := write(row, a.ID); err != nil {
			return err
		}
	}
	rows.Flush()
	return errors.Wrap(rows.Error(), "pollen: csv")
}

// joined returns names as a CSV record with semicolons.
func joined(names []string) string {
	var text strings.Builder
	w := csv.NewWriter(&text)
	w.Comma = ';'
	if len(names) > 0 && w.Write(names) == nil {
		w.Flush() // a strings.Builder returns no errors
	}
	return strings.TrimSuffix(text.String(), "\n")
}
