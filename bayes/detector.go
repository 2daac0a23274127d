package bayes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/detector"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/internal/strange"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
	"github.com/pollen-ml/pollen/tensor/random"
)

// An in-distribution decision is made in three steps, each on images that the one before has not
// seen. Fit fits a detector.Detector to the features that training images have under a few samples
// of the posterior. Calibrate scores validation images with it, and keeps the quantiles. A
// prediction then compares the score of an image with these. At the end, selfTest shows the run
// images that cannot belong to its classes, and the report states how many of them it accepts.

// detectorSamples is the maximum number of posterior samples whose features a detector compares.
// More of them detect little more, and take longer.
const detectorSamples = 6

// FitDetector fits the run's detector of strange images to the images that the run was trained on,
// and writes it to the run's directory. train is what Fit was given; Spec.Subset applies.
// In-distribution decisions need a detector, and a calibration that was made after it, see
// Calibrate. Fit calls both. The error is LockedError while another process writes to the run.
func (r *Run) FitDetector(ctx context.Context, train *datasets.Dataset) error {
	if err := rundir.CheckWritable(r.dir); err != nil { // before features are computed, which takes time
		return err
	}
	if subset := r.manifest.Spec.Subset; subset > 0 && train != nil && subset < train.Len() {
		var err error
		if train, err = train.First(subset); err != nil {
			return err
		}
	}
	d, err := r.fitDetector(ctx, train)
	if err != nil {
		return err
	}
	return rundir.AddFile(r.dir, rundir.DetectorFile, d, r.remark)
}

// fitDetector returns a detector of up to detectorSamples samples, evenly spaced.
func (r *Run) fitDetector(ctx context.Context, train *datasets.Dataset) (*detector.Detector, error) {
	images, err := r.images(train)
	if err == nil {
		err = checkLabelled(train)
	}
	if err != nil {
		return nil, err
	}
	files, err := r.intactFiles("detector")
	if err != nil {
		return nil, err
	}
	var labels []int32
	images.Pixels, labels = detectorImages(train)
	fitter, err := detector.NewFitter(images.Pixels, labels, r.detectorShape(), len(files))
	if err != nil {
		return nil, err
	}
	n := min(detectorSamples, len(files))
	if s := r.manifest.Spec; s.Frozen() && s.Head == headLinear {
		n = 1 // all samples have the features of the frozen network
	}
	// Evenly spaced, and the last one among them. Files are sorted by chain, so that each chain has
	// its share.
	var positions []int
	for i := range n {
		positions = append(positions, (i+1)*len(files)/n-1)
	}
	if err := r.features(ctx, images, files, positions, fitter.Add); err != nil {
		return nil, err
	}
	return fitter.Detector()
}

// detectorImages returns the pixels and labels of the training images that a detector is fitted to,
// in an order that only depends on their number. Data are often sorted by class, and the first
// thousands of them would be of a few classes only, so they are drawn by a permutation.
func detectorImages(train *datasets.Dataset) (pixels []byte, labels []int32) {
	n := train.Len()
	bank, reference := detector.Split(n)
	pixels = make([]byte, 0, min(n, bank+reference)*train.ImageSize())
	for i := range min(n, bank+reference) {
		at := int(random.Permute(uint64(i), uint64(n), 0, 0, 0))
		pixels, labels = append(pixels, train.Image(at)...), append(labels, train.Labels[at])
	}
	return pixels, labels
}

// features passes the features of images under the samples at the given positions of files to use,
// in order.
func (r *Run) features(ctx context.Context, images samples.Images, files []rundir.File, positions []int,
	use func(position int, features []float32) error) error {
	p, err := r.parts()
	if err != nil {
		return err
	}
	return r.on(func(device tensor.Device) error {
		inputs, err := r.read(ctx, device, p, r.manifest.Data.Name, images.Pixels)
		if err != nil {
			return err
		}
		predictor, err := samples.NewFeaturePredictor(device, inputs, predictBatch, p.network.Apply)
		if err != nil {
			return err
		}
		defer predictor.Close()
		probabilities := make([]float32, images.Len()*predictor.Classes())
		features := make([]float32, images.Len()*predictor.FeatureCount())
		for _, position := range positions {
			if err := ctx.Err(); err != nil {
				return errors.Wrap(err, "pollen: detector")
			}
			// All predictions are made before the features are read, which the predictor keeps for
			// the last sample only.
			sample, err := files[position].Read()
			if err != nil {
				return r.reader().Skip(files[position].Path, err)
			}
			if err := predictor.Predict(sample, probabilities); err != nil {
				return errors.Wrap(err, files[position].Path)
			}
			if err := predictor.Features(0, features); err != nil {
				return err
			}
			if err := use(position, features); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *Run) detectorShape() detector.Shape {
	d := &r.manifest.Data
	return detector.Shape{Channels: d.Channels, Height: d.Height, Width: d.Width}
}

// detectorIfAny returns the run's detector, or nil if it has none, or one for another number of
// samples than it has now, or if predictions are to be made without it.
func (r *Run) detectorIfAny(present int) (*detector.Detector, error) {
	if r.undetected {
		return nil, nil
	}
	d, err := rundir.ReadFile[detector.Detector](r.dir, rundir.DetectorFile)
	if os.IsNotExist(errors.Cause(err)) || err == nil && d.Samples != present {
		return nil, nil
	}
	if err == nil {
		if err = d.Prepare(r.detectorShape()); err == nil {
			return d, nil
		}
		err = errors.WithStack(&DamagedError{File: filepath.Join(r.dir, rundir.DetectorFile), Cause: err})
	}
	if r.withoutDamaged && errors.As(err, new(*DamagedError)) {
		r.remark(fmt.Sprintf("continuing without the detector: no in-distribution decisions: %v", err))
		return nil, nil
	}
	return nil, err
}

// selfTest shows the run images that cannot belong to its classes, made in part from own ones, and
// returns how many of them it accepts. It is nil if the run makes no in-distribution decisions.
func (r *Run) selfTest(ctx context.Context, c *evaluate.Calibration, own *datasets.Dataset) (*evaluate.SelfTest, error) {
	if !c.Decides(evaluate.Level) {
		return nil, nil
	}
	kinds, err := strange.Images(own)
	if err != nil {
		return nil, err
	}
	pixels := make([]byte, 0, strange.Count()*own.ImageSize())
	for _, k := range kinds {
		pixels = append(pixels, k.Images...)
	}
	nonconformity, err := r.nonconformity(ctx, pixels)
	if err != nil {
		return nil, err
	}
	accepted, err := c.InDistribution(nonconformity, evaluate.Level)
	if err != nil {
		return nil, err
	}
	// The images of all kinds were scored in one pass: take the decisions apart again.
	test := &evaluate.SelfTest{}
	for _, k := range kinds {
		result := evaluate.StrangeImages{Kind: k.Name, Images: len(k.Images) / own.ImageSize()}
		for _, yes := range accepted[:result.Images] {
			if yes {
				result.Accepted++
			}
		}
		accepted = accepted[result.Images:]
		test.Kinds = append(test.Kinds, result)
	}
	return test, nil
}

// remarkFewHeldOut remarks that a run which failed its self-test may accept strange images because
// there are too few held-out ones: at most one of these is not accepted.
func (r *Run) remarkFewHeldOut(c *evaluate.Calibration) error {
	if c.SelfTest == nil || c.SelfTest.Passed() {
		return nil
	}
	threshold, err := c.NonconformityThreshold(evaluate.Level)
	if err != nil {
		return err
	}
	rejected := 0
	for _, score := range c.Nonconformity {
		if score > threshold {
			rejected++
		}
	}
	if rejected > 1 {
		return nil
	}
	r.remark(fmt.Sprintf("%d held-out images are few to decide what is in distribution: a single odd one among them lets strange images pass; "+
		"hold out more with --validation", c.Examples))
	return nil
}

// nonconformity returns the nonconformity scores of images. Only the samples of the detector make
// predictions for them.
func (r *Run) nonconformity(ctx context.Context, pixels []byte) ([]float64, error) {
	files, err := r.intactFiles("detector")
	if err != nil {
		return nil, err
	}
	d, err := r.detectorIfAny(len(files))
	if err == nil && d == nil {
		err = errors.Errorf("pollen: %s has no detector for its %d samples", r.dir, len(files))
	}
	if err != nil {
		return nil, err
	}
	var positions []int
	for _, m := range d.Members {
		positions = append(positions, m.Position)
	}
	scorer, member := d.Scorer(pixels, r.detectorShape()), 0
	images := r.shape()
	images.Pixels = pixels
	err = r.features(ctx, images, files, positions, func(_ int, features []float32) error {
		member++
		return scorer.Add(member-1, 0, features)
	})
	if err != nil {
		return nil, err
	}
	scores, err := scorer.Scores()
	return scores.Combined, err
}
