package bayes

import (
	"context"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/internal/strange"
)

// MeasureFidelity compares a distilled run with its teacher on labelled held-out images, and on
// out-of-distribution images: the strange ones with which runs test themselves, and the given ones.
// It writes the result to the run's directory, from which Fidelity reads it. It is an InvalidError
// if the run was not distilled, or its teacher has changed since.
func (r *Run) MeasureFidelity(ctx context.Context, heldOut *datasets.Dataset, others ...*datasets.Dataset) (*evaluate.Fidelity, error) {
	if err := checkContext(ctx, "fidelity"); err != nil {
		return nil, err
	}
	teacher, err := r.teacher()
	if err != nil {
		return nil, err
	}
	if err := rundir.CheckWritable(r.dir); err != nil { // before the predictions, which take time
		return nil, err
	}
	own, err := strangeImages(heldOut)
	if err != nil {
		return nil, err
	}
	theirs, err := teacher.Assess(ctx, heldOut, nil)
	if err != nil {
		return nil, errors.WithMessage(err, "pollen: teacher")
	}
	ours, err := r.Assess(ctx, heldOut, nil)
	if err != nil {
		return nil, err
	}
	f, err := evaluate.NewFidelity(theirs, ours)
	if err != nil {
		return nil, err
	}
	for _, other := range append([]*datasets.Dataset{own}, others...) {
		p, err := teacher.Predictions(ctx, other, nil)
		if err != nil {
			return nil, errors.WithMessage(err, "pollen: teacher")
		}
		q, err := r.Predictions(ctx, other, nil)
		if err != nil {
			return nil, err
		}
		if err := f.AddOut(theirs.In, ours.In, p, q); err != nil {
			return nil, err
		}
	}
	return f, rundir.AddFile(r.dir, rundir.FidelityFile, f, r.remark)
}

// Fidelity returns the result of MeasureFidelity. If that was not called, the error's cause is
// os.ErrNotExist.
func (r *Run) Fidelity() (*evaluate.Fidelity, error) {
	return rundir.ReadFile[evaluate.Fidelity](r.dir, rundir.FidelityFile)
}

// teacher opens the run that r was distilled from.
func (r *Run) teacher() (*Run, error) {
	described := r.manifest.Teacher
	if described == nil {
		return nil, invalid("fidelity: %s was not distilled, and has no teacher", r.dir)
	}
	teacher, err := Open(r.manifest.Spec.Teacher)
	if err != nil {
		return nil, errors.WithMessage(err, "pollen: teacher")
	}
	digest, err := teacher.Digest()
	if err != nil {
		return nil, errors.WithMessage(err, "pollen: teacher")
	}
	if digest != described.Digest {
		return nil, invalid("fidelity: the teacher of %s, %s, has changed since: its digest must be %s, got %s",
			r.dir, teacher.dir, described.Digest, digest)
	}
	teacher.environment = r.environment
	return teacher, nil
}

// strangeImages returns images that cannot belong to the classes of own, some of them made of its
// images.
func strangeImages(own *datasets.Dataset) (*datasets.Dataset, error) {
	kinds, err := strange.Images(own)
	if err != nil {
		return nil, err
	}
	all := *own
	all.Name, all.Images, all.Labels, all.Files, all.IDs, all.Groups = "strange images", nil, nil, nil, nil, nil
	for _, k := range kinds {
		all.Images = append(all.Images, k.Images...)
	}
	return &all, nil
}
