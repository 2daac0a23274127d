package bayes

import (
	"context"
	"fmt"
	"math"
	"os"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/rundir"
)

// Calibrate evaluates the run on labelled images that it was not trained on, and writes to its
// directory the scores from which prediction sets, InDistribution and Refer are computed, with the
// result of a test of InDistribution on strange images. The guarantees then hold for images like
// heldOut. Fit calls Calibrate if there are validation data; calling it again replaces the
// calibration, for example by one for another camera.
//
// InDistribution is calibrated, too, by the scores that the run's detector gives to heldOut. The
// detector compares images with those trained on, and does not change. Since neither training nor
// the detector used heldOut, a new image like heldOut is accepted with the promised rate. Without a
// detector, see FitDetector, there is no InDistribution.
//
// Images that the run was trained on are an error, unless the run has the note TrainedNote; the
// guarantees then do not hold. They are found by their pixels, see Seen, if the run has the list.
// Copies of them among its own validation images are accepted.
//
// The error is LockedError while another process writes to the run.
func (r *Run) Calibrate(ctx context.Context, heldOut *datasets.Dataset) error {
	if err := checkContext(ctx, "calibrate"); err != nil {
		return err
	}
	if err := rundir.CheckWritable(r.dir); err != nil { // before the predictions, which take time
		return err
	}
	if err := r.checkUnseen(heldOut); err != nil {
		return err
	}
	c, err := r.calibrationOn(ctx, heldOut, nil)
	if err != nil {
		return err
	}
	if c.Notes = r.notes; c.Notes[TrainedNote] != "" {
		c.Exponent = 1 // the run is more certain of images that it has learned than of others
	}
	return rundir.AddFile(r.dir, rundir.CalibrationFile, c, r.remark)
}

// checkUnseen returns an error if the run was trained on some of the images, unless the caller
// notes it.
func (r *Run) checkUnseen(heldOut *datasets.Dataset) error {
	heldOut, err := r.relabelled(heldOut)
	if err != nil || r.notes[TrainedNote] != "" {
		return err
	}
	trained, _, _, err := r.seen(heldOut)
	if os.IsNotExist(errors.Cause(err)) {
		return nil
	}
	if err == nil && trained > 0 {
		err = invalid("calibrate: %s has %d images that %s was trained on: guarantees need images that it has not seen", heldOut.Name, trained, r.dir)
	}
	return err
}

// TrainedNote is the name of a note, see WithNotes, for a calibration with images that the run was
// trained on: their number. Probabilities are then not scaled, and whatever uses the calibration
// remarks that nothing is guaranteed.
const TrainedNote = "trained"

// CheckWritable returns an error if Calibrate could not write to the run's directory. It is for
// callers that read images first. The error is LockedError while another
// process writes to the run.
func (r *Run) CheckWritable() error { return rundir.CheckWritable(r.dir) }

// calibrationOn returns the calibration by held-out data, and remarks on problems with the
// predictions. atCentre, if not nil, predicts the data at the centre of the samples. If it is nil,
// methods with chains use the means of the chains.
func (r *Run) calibrationOn(ctx context.Context, heldOut *datasets.Dataset, atCentre func(heldOut *datasets.Dataset) (*evaluate.Predictions, error),
) (*evaluate.Calibration, error) {
	heldOut, err := r.relabelled(heldOut)
	if err != nil {
		return nil, err
	}
	content := contentHash(heldOut)
	if content == r.manifest.Data.Content {
		return nil, invalid("calibrate: %s has the images that %s was trained on: guarantees need images that it has not seen", heldOut.Name, r.dir)
	}
	traits := r.manifest.kind().traits()
	p, centre, err := r.predictions(ctx, heldOut, nil, atCentre == nil && (traits.tempered || traits.collected))
	if err != nil {
		return nil, err
	}
	r.calibratedOn = p
	p.Groups = heldOut.Groups
	c, err := evaluate.Calibrate(p)
	if err != nil {
		return nil, err
	}
	c.Content = content
	r.remarkAllClasses(c)
	if atCentre != nil {
		centre, err = atCentre(heldOut)
	}
	if err == nil {
		err = r.remarkCentre(p, centre)
	}
	if err == nil {
		c.SelfTest, err = r.selfTest(ctx, c, heldOut)
	}
	if err != nil {
		return nil, err
	}
	return c, r.remarkFewHeldOut(c)
}

// Calibration returns the result of Calibrate. If that was not called, the error's cause is
// os.ErrNotExist.
func (r *Run) Calibration() (*evaluate.Calibration, error) {
	return rundir.ReadFile[evaluate.Calibration](r.dir, rundir.CalibrationFile)
}

// CalibratedOn reports whether the run was calibrated on exactly these images, which must have
// labels: its guarantees hold for other images like these, and it is better on these.
func (r *Run) CalibratedOn(images *datasets.Dataset) (bool, error) {
	c, err := r.Calibration()
	if os.IsNotExist(errors.Cause(err)) || images.Labels == nil {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	images, err = r.relabelled(images)
	return err == nil && c.Content == contentHash(images), err
}

// calibrationIfAny returns the result of Calibrate, or nil. used is the number of samples of the
// prediction. The result is also nil if the calibration used samples that are left out now, since
// its quantiles are only valid for the same average, or is damaged and left out.
func (r *Run) calibrationIfAny(used int) (*evaluate.Calibration, error) {
	c, err := r.Calibration()
	if os.IsNotExist(errors.Cause(err)) {
		return nil, nil
	}
	if r.withoutDamaged && errors.As(err, new(*DamagedError)) {
		r.remark(fmt.Sprintf("continuing without the calibration: no prediction sets, no out-of-distribution test and no certified risk: %v", err))
		return nil, nil
	}
	if left := r.LeftOut(); err == nil && len(left) > 0 && c.Samples != used {
		r.remark(fmt.Sprintf("%s was calibrated with %d samples, and %d are left: no prediction sets, no out-of-distribution test and no certified risk",
			r.dir, c.Samples, used))
		return nil, nil
	}
	if err == nil && c.Notes[TrainedNote] != "" {
		r.remark(fmt.Sprintf("%s was calibrated with %s images that it was trained on: prediction sets and certified risks are not guaranteed",
			r.dir, c.Notes[TrainedNote]))
	}
	return c, err
}

// Decisions are the thresholds of a calibration at the levels of a call's options.
type Decisions struct {
	// Calibration is the run's calibration, nil without one.
	Calibration *evaluate.Calibration
	// Sets forms prediction sets. It is nil if there are too few held-out images for WithLevel.
	Sets *evaluate.Sets
	// InDistributionRate is the fraction of in-distribution images that are recognized as such, or
	// 0 if answers have no InDistribution.
	InDistributionRate float64
	// Certificate has the threshold by which images are answered or referred to a person; nil
	// without WithRisk.
	Certificate *evaluate.Certificate

	nonconformity float64 // the highest score that is accepted as in distribution
	unscaled      bool
}

// Calibrated reports whether answers have both a PredictionSet and InDistribution.
func (d *Decisions) Calibrated() bool { return d.Sets != nil && d.InDistributionRate > 0 }

// Exponent returns the exponent with which probabilities are scaled, see
// evaluate.Calibration.Exponent, or 0 if they are not.
func (d *Decisions) Exponent() float64 {
	if d.Calibration == nil || d.unscaled {
		return 0
	}
	return d.Calibration.Exponent
}

// SelfTest returns the result of the run's test of InDistribution on strange images, or nil if
// there was none.
func (d *Decisions) SelfTest() *evaluate.SelfTest {
	if d.InDistributionRate == 0 {
		return nil
	}
	return d.Calibration.SelfTest
}

// decisionsBy returns the decisions by a calibration, which may be nil. Prediction sets and
// InDistribution are quantiles of the held-out images, and a quantile such as 0.99 needs enough of
// them: each is left out if there were too few. Without enough for the risk, all images are
// referred.
func (e environment) decisionsBy(c *evaluate.Calibration) (d *Decisions, err error) {
	d = &Decisions{Calibration: c, unscaled: e.unscaled}
	if e.risk > 0 {
		d.Certificate = &evaluate.Certificate{Risk: e.risk, Confidence: e.riskConfidence}
	}
	if c == nil {
		return d, nil
	}
	if c.Supports(e.level) {
		if d.Sets, err = c.Sets(e.level, e.setRule); err != nil {
			return nil, err
		}
	}
	if c.Decides(e.inDistributionRate) {
		d.InDistributionRate = e.inDistributionRate
		if d.nonconformity, err = c.NonconformityThreshold(d.InDistributionRate); err != nil {
			return nil, err
		}
	}
	if d.Certificate != nil {
		*d.Certificate, err = c.Certify(e.risk, e.riskConfidence)
	}
	return d, err
}

// answers returns the answers for predictions. names are the names of the classes.
func (d *Decisions) answers(p *evaluate.Predictions, names []string) ([]Answer, error) {
	// Quantiles that were calibrated with one number of samples do not hold for the average over
	// another.
	if d.Calibration != nil && d.Calibration.Samples != p.Samples {
		return nil, invalid("calibrated with %d samples, predicted with %d: calibrate again", d.Calibration.Samples, p.Samples)
	}
	shown := p
	if d.Calibration != nil && !d.unscaled {
		var err error
		if shown, err = d.Calibration.Scaled(p); err != nil {
			return nil, err
		}
	}
	answers := make([]Answer, p.Len())
	for i := range answers {
		class, confidence := p.Guess(i)
		answers[i] = Answer{
			Class: names[class], Index: class, Confidence: shown.Confidence[i], Entropy: p.Entropy[i], MutualInformation: p.MutualInformation[i],
			Probabilities: shown.Probabilities[i*p.Classes : (i+1)*p.Classes : (i+1)*p.Classes],
		}
		if d.Certificate != nil {
			answers[i].Refer = new(!d.Certificate.Answers(confidence))
		}
	}
	if err := d.addSets(answers, p, names); err != nil {
		return nil, err
	}
	if d.InDistributionRate == 0 || p.Nonconformity == nil {
		return answers, nil
	}
	for i, score := range p.Nonconformity {
		if math.IsNaN(score) {
			return nil, errors.Errorf("pollen: the nonconformity score of image %d is NaN", i)
		}
		answers[i].InDistribution, answers[i].PValue = new(score <= d.nonconformity), new(d.Calibration.PValue(score))
		answers[i].Calibrated = d.Sets != nil
	}
	return answers, nil
}

// addSets adds the prediction sets to answers, if there are any.
func (d *Decisions) addSets(answers []Answer, p *evaluate.Predictions, names []string) error {
	if d.Sets == nil {
		return nil
	}
	sets, err := d.Sets.Of(p.Probabilities, p.Classes)
	if err != nil {
		return err
	}
	var marginal []string
	if d.Sets.Rule.PerClass {
		marginal = []string{}
	}
	for _, t := range d.Sets.Fallbacks() {
		marginal = append(marginal, names[t.Class])
	}
	for i := range answers {
		answers[i].PredictionSet, answers[i].MarginalClasses = []string{}, marginal
		for _, class := range sets[i] {
			answers[i].PredictionSet = append(answers[i].PredictionSet, names[class])
		}
	}
	return nil
}
