package pollen

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/journal"
	"github.com/pollen-ml/pollen/tensor"
)

// Fit trains as a specification says on data.Train, into a new or empty folder, and returns the
// run. It calibrates the run's prediction sets and what it calls familiar on data.Validation, if
// any, and watches chains on some of these images, or else of data.Test, see Mixing. When the
// context ends, the error is Unfinished, and Resume goes on from there, as after a crash.
func Fit(ctx context.Context, spec Spec, data *datasets.Splits, dir string, options ...Option) (*Run, error) {
	e := environmentOf(options)
	if data == nil || data.Train == nil {
		return nil, invalid("fit: no data to train on")
	}
	if dir == "" {
		return nil, invalid("fit: no folder for the run")
	}
	if err := spec.checkBefore(data, dir); err != nil {
		return nil, err
	}
	spec, err := spec.decided(ctx, data.Train, e)
	if err != nil {
		return nil, err
	}
	t, err := newTraining(spec, data.Train, dir, e)
	if err != nil {
		return nil, err
	}
	if t.written, err = t.spec.written(); err != nil {
		return nil, err
	}
	t.watching = t.heldOut(data)
	t.remarkSteps()
	return t.finish(ctx, data, t.newDir)
}

// checkBefore refuses what a new run cannot do, before a pilot makes the first step.
func (s Spec) checkBefore(data *datasets.Splits, dir string) error {
	s, err := s.resolve(data.Train.Len())
	if err != nil {
		return err
	}
	if err := checkText(s.Method); err != nil {
		return err
	}
	if _, err := s.written(); err != nil {
		return err
	}
	if err := s.checkHeldOut(dir, data); err != nil {
		return err
	}
	return CheckEmpty(dir)
}

// Resume goes on with the run of a folder, which a killed process may have left, on the data that
// it began with. The samples are those of a run that was never stopped. A finished run has nothing
// left to do.
func Resume(ctx context.Context, dir string, data *datasets.Splits, options ...Option) (*Run, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	if len(m.Parts) > 0 {
		return nil, invalid("resume %s: it was gathered: resume its parts", dir)
	}
	if data == nil || data.Train == nil {
		return nil, invalid("resume: no data to train on")
	}
	if m.Spec.Weights == "" && m.Spec.Cycles > 0 { // a run from before Weights
		m.Spec.Weights = StepSize
	}
	t, err := newTraining(m.Spec, data.Train, dir, environmentOf(options))
	if err != nil {
		return nil, errors.WithMessage(err, dir)
	}
	if !m.Data.isOf(t.data) {
		return nil, invalid("resume %s: the data %s are not those of the run", dir, data.Train.Name)
	}
	if err := t.spec.checkHeldOut(dir, data); err != nil {
		return nil, err
	}
	t.watching, t.manifest = t.heldOut(data), m
	return t.finish(ctx, data, t.oldDir)
}

// checkLabelled refuses data that are not valid, or whose labels are unknown.
func checkLabelled(data *datasets.Dataset) error {
	if err := data.Validate(); err != nil {
		return InvalidError{err}
	}
	if data.Labels == nil {
		return invalid("%s has no labels, wants one for each image", data.Name)
	}
	return nil
}

// checkHeldOut refuses, before hours of training, data that chains could not be watched on, and
// those that could not calibrate the run afterwards. There may be neither.
func (s Spec) checkHeldOut(dir string, splits *datasets.Splits) error {
	c, err := kindOf(s.Method)
	if err != nil {
		return err
	}
	d := splits.Train
	run := Run{dir: dir, manifest: &Manifest{Data: Data{
		Name: d.Name, Channels: d.Channels, Height: d.Height, Width: d.Width, ClassNames: d.ClassNames,
	}}}
	if watched := toWatch(splits); watched != nil && c.traits().tempered {
		if _, err := run.images(watched); err != nil {
			return err
		}
	}
	if splits.Validation == nil {
		return nil
	}
	_, err = run.relabelled(splits.Validation)
	return errors.WithMessage(err, "validation")
}

// isOf reports whether these are the data that a manifest describes.
func (d Data) isOf(data *datasets.Dataset) bool {
	if d.Size != data.Len() || d.Channels != data.Channels || d.Height != data.Height || d.Width != data.Width || !slices.Equal(d.ClassNames, data.ClassNames) ||
		!slices.Equal(d.Mean, data.Mean) || !slices.Equal(d.Std, data.Std) {
		return false
	}
	if d.Content == "" {
		return maps.Equal(d.Hashes, data.Hashes)
	}
	return d.Content == contentHash(data)
}

// finish makes the run, on the environment's device, and leaves a note of how that ended.
func (t *training) finish(ctx context.Context, data *datasets.Splits, open func(tensor.Device) error) (*Run, error) {
	var run *Run
	err := t.on(func(device tensor.Device) (err error) {
		if err := t.load(device); err != nil {
			return err
		}
		defer t.session.Close()
		defer func() { err = cmp.Or(err, t.writer.release()) }() // also when an observer panics
		err = t.begin(device, open)
		defer t.measured.probe.close()
		began := err == nil
		if began {
			err = t.run(ctx, device)
		}
		if err == nil {
			run = &Run{dir: t.dir, manifest: t.manifest, environment: t.environment, left: &leftOut{}}
			if data.Validation != nil {
				err = t.unfinished(t.calibrate(ctx, run.With(WithDevice(device)), data.Validation))
			}
		}
		if began {
			err = t.note(ctx, err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return run, nil
}

// newDir makes the run's folder completely, or leaves none.
func (t *training) newDir(device tensor.Device) error {
	if err := os.MkdirAll(t.dir, 0o755); err != nil {
		return errors.Wrap(err, "pollen: run folder")
	}
	if err := t.writer.take(); err != nil {
		return err
	}
	if err := clearHalfMade(t.dir); err != nil {
		return err
	}
	if err := t.remarkRoom(t.dir, muchRoom); err != nil {
		return err
	}
	if err := t.fillDir(device); err != nil {
		return t.writer.undo(err)
	}
	return nil
}

// fillDir writes the manifest last: a folder that has one is a run that can be resumed.
func (t *training) fillDir(device tensor.Device) error {
	if err := t.writer.create(); err != nil {
		return err
	}
	if err := t.start(); err != nil {
		return err
	}
	checkpoint, err := checkpointOf(t)
	if err == nil {
		err = t.writer.writeCheckpoint(checkpoint)
	}
	if err != nil {
		return err
	}
	t.manifest = &Manifest{
		Format: t.spec.format(), Spec: t.written, Notes: t.notes, Data: describeData(t.data), Device: Describe(device), Steps: t.plan.Steps,
		Build: thisBuild(),
	}
	for i, p := range t.session.Program().Parameters() {
		t.manifest.Parameters += p.Shape.Elements()
		if i == 0 {
			t.manifest.Watched = fmt.Sprintf("%s[%d]", p.Name, p.Shape.Elements()/2)
		}
	}
	return t.writer.write(manifestFile, t.manifest, "  ")
}

// oldDir takes up the run where it was left.
func (t *training) oldDir(device tensor.Device) error {
	w := &t.writer
	if err := w.take(); err != nil {
		return err
	}
	if err := sweep(t.dir); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(t.dir, outcomeFile)); err != nil && !os.IsNotExist(err) {
		return errors.Wrap(err, "pollen: run folder")
	}
	whole, err := t.readCheckpoint()
	if err != nil {
		return err
	}
	made := int(t.session.Steps())
	if t.manifest.Format >= sealedFormat {
		err = w.recover(made)
	} else {
		err = w.cutBanks(made)
	}
	if err != nil {
		return err
	}
	files, err := w.samples.Files()
	if err != nil {
		return err
	}
	w.count, w.dropped = len(files), made
	t.remarkResumed(made, whole, device)
	if !whole {
		t.measured.from = made
	}
	tail, err := w.cutMetrics(made, t.manifest.Format)
	if err != nil {
		return err
	}
	if w.metrics, err = journal.Append(filepath.Join(t.dir, metricsFile), tail); err != nil {
		return errors.Wrap(err, "pollen: metrics")
	}
	return t.noteContinued(made, Describe(device), thisBuild())
}

// readCheckpoint puts the training back to the newest checkpoint that is whole, and a damaged newer
// one aside. It reports whether what was measured before came back, too.
func (t *training) readCheckpoint() (whole bool, err error) {
	checkpoint, problems, err := loadCheckpoint(t.dir, t.manifest.Format)
	if err != nil {
		return false, err
	}
	for _, problem := range problems {
		t.remark(fmt.Sprintf("%v; goes on from the checkpoint before, after %d steps", problem, checkpoint.steps))
		if err := file.Move(problem.File, filepath.Join(t.dir, asideCheckpoint)); err != nil {
			return false, errors.Wrap(err, "pollen: checkpoint")
		}
	}
	if whole, err = checkpoint.restore(t); err != nil {
		return false, damaged(filepath.Join(t.dir, checkpointFile), errors.WithMessage(err, "checkpoint"))
	}
	return whole, nil
}

// remarkResumed says where the run goes on, and what differs from where it began.
func (t *training) remarkResumed(made int, whole bool, device tensor.Device) {
	switch {
	case made >= t.plan.Steps:
		t.remark(fmt.Sprintf("all %d steps were made before: nothing is left to do", t.plan.Steps))
	case whole:
		t.remark(fmt.Sprintf("resumed after %d of %d steps", made, t.plan.Steps))
	default:
		t.remark(fmt.Sprintf("resumed after %d of %d steps; temperatures and R-hat cover the rest", made, t.plan.Steps))
	}
	if now := thisBuild(); now.Revision != t.manifest.Revision {
		t.remark(fmt.Sprintf("the run was begun by another build (%s) than this one (%s): its bits may differ from here on", t.manifest.Revision, now.Revision))
	}
	if now := Describe(device); now != t.manifest.Device {
		t.remark(fmt.Sprintf("the run was begun on another device (%s) than this one (%s)", t.manifest.Device, now))
	}
}

// Try makes some steps of the run that a specification describes, and keeps nothing: it is for
// estimating what a run costs. The observer is called after every two steps. It returns how many
// steps the run would have.
func Try(ctx context.Context, spec Spec, data *datasets.Dataset, steps int, options ...Option) (total int, err error) {
	const window = 2
	if data == nil {
		return 0, invalid("try: no data to train on")
	}
	if steps < 1 {
		return 0, invalid("try: %d steps, wants at least 1", steps)
	}
	e := environmentOf(options)
	if spec, err = spec.decided(ctx, data, e); err != nil {
		return 0, err
	}
	t, err := newTraining(spec, data, "", e)
	if err != nil {
		return 0, err
	}
	t.remarkSteps()
	err = t.on(func(device tensor.Device) error {
		if err := t.load(device); err != nil {
			return err
		}
		defer t.session.Close()
		if err := t.remarkRoom(".", 0); err != nil {
			return err
		}
		return t.try(ctx, steps, window)
	})
	return t.plan.Steps, err
}
