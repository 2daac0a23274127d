package pollen

import (
	"context"
	"fmt"
	"os"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/rundir"
)

// Calibrate evaluates the run on labelled images that it was not trained on, and writes to its
// directory the scores from which prediction sets, InDistribution and Refer are computed, with the
// result of a test of InDistribution on strange images. What is guaranteed then holds for images
// like heldOut. Fit calls Calibrate if there are validation data; calling it again replaces the
// calibration, for example by one for another camera.
//
// InDistribution is calibrated, too: by the scores of heldOut from the run's detector, which
// compares images with those trained on and stays as it is. Since heldOut was used for neither, a
// new image like heldOut is accepted with the promised rate. Without a detector, see FitDetector,
// there is no InDistribution.
//
// The error is LockedError while another process writes to the run.
func (r *Run) Calibrate(ctx context.Context, heldOut *datasets.Dataset) error {
	if err := checkContext(ctx, "calibrate"); err != nil {
		return err
	}
	c, err := r.calibrationOn(ctx, heldOut, nil)
	if err != nil {
		return err
	}
	c.Notes = r.notes
	return rundir.AddFile(r.dir, rundir.CalibrationFile, c, r.remark)
}

// calibrationOn returns the calibration by held-out data, and remarks what is wrong with the
// predictions. atCentre, if not nil, predicts the data at the centre of the samples, which is that
// of chainMeans otherwise.
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
	kind, err := kindOf(r.manifest.Spec.Method)
	if err != nil {
		return nil, err
	}
	var means *chainMeans
	if t := kind.traits(); atCentre == nil && (t.tempered || t.collected) {
		means = &chainMeans{}
	}
	p, err := r.predictions(ctx, heldOut, nil, means)
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
	var centre *evaluate.Predictions
	switch {
	case atCentre != nil:
		centre, err = atCentre(heldOut)
	case means != nil:
		centre = means.predictions
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
	return c, nil
}

// Calibration returns the result of Calibrate. If that was not called, the error's cause is
// os.ErrNotExist.
func (r *Run) Calibration() (*evaluate.Calibration, error) {
	c := &evaluate.Calibration{}
	if err := rundir.ReadFile(r.dir, rundir.CalibrationFile, c); err != nil {
		return nil, err
	}
	return c, nil
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
	return c, err
}
