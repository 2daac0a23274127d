package bayes

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/detector"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Fit trains a network on data.Train as spec describes, and returns the run, which it writes to
// dir, a new or empty directory.
//
// If data.Validation is not nil, Fit calibrates the run's prediction sets and its
// out-of-distribution test on it. Samplers' convergence is watched on some of the validation
// images, or of the test images if there are none, see Mixing. Run.Splits lists all images.
//
// An invalid specification, data or option is an InvalidError. If ctx ends or something fails
// during training, the error is an UnfinishedError, the samples are kept, and Resume continues the
// run, as it does after a crash. It wraps a DiskFullError if the disk was nearly full.
func Fit(ctx context.Context, spec Spec, data *datasets.Splits, dir string, options ...Option) (*Run, error) {
	if err := checkContext(ctx, "fit"); err != nil {
		return nil, err
	}
	e := environmentOf(options)
	if err := e.checkLevels(); err != nil {
		return nil, err
	}
	if data == nil || data.Train == nil {
		return nil, invalid("fit: no data to train on")
	}
	if dir == "" {
		return nil, invalid("fit: no directory for the run")
	}
	asked := spec
	spec = asked.recommendedFor(data.Train, e)
	if err := checkBeforePilot(spec, data, dir); err != nil {
		return nil, err
	}
	if asked.needsLength(spec) || asked.needsMirroring(spec, data.Train.Len()) {
		piloted, err := asked.piloted(ctx, spec, data.Train, e)
		if err != nil {
			return nil, err
		}
		spec = piloted.recommendedFor(data.Train, e)
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
	if err := t.holdOut(data); err != nil { // before finish, which loads these images
		return nil, err
	}
	if err := t.teaching.open(nil); err != nil {
		return nil, err
	}
	t.remarkSteps()
	return t.finish(ctx, data, t.beginRun)
}

// checkBeforePilot returns the errors of a specification, data and directory that can be found
// before a pilot makes its first step: a mistake must not cost minutes of a pilot. newTraining
// checks most of it again, for what the pilot chose.
func checkBeforePilot(spec Spec, data *datasets.Splits, dir string) error {
	spec, err := spec.resolve(data.Train.Len())
	if err != nil {
		return err
	}
	if err := checkText(spec.Method); err != nil {
		return err
	}
	if spec.WarmStart != nil {
		if err := checkText(spec.WarmStart); err != nil {
			return err
		}
		if _, _, err := spec.divided(data.Train); err != nil {
			return err
		}
	}
	if _, err := spec.written(); err != nil {
		return err
	}
	if err := checkHeldOut(dir, data, spec.examplesOf(data.Train.Len())); err != nil {
		return err
	}
	return rundir.CheckEmpty(dir)
}

// Resume continues the run in dir, which was stopped or whose process was killed, on the data that
// it began with. The samples have the same bits as without the interruption. If the run is
// finished, Resume only opens it.
//
// The errors are as for Open and Fit, and LockedError if another process writes to dir.
func Resume(ctx context.Context, dir string, data *datasets.Splits, options ...Option) (*Run, error) {
	if err := checkContext(ctx, "resume"); err != nil {
		return nil, err
	}
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	if len(m.Parts) > 0 {
		return nil, invalid("resume %s: it is a gathered run: resume its parts", dir)
	}
	if data == nil || data.Train == nil {
		return nil, invalid("resume: no data to train on")
	}
	if _, err := newRun(dir, m, environment{}).parts(); err != nil {
		return nil, errors.WithMessage(err, "pollen: "+dir)
	}
	t, err := newTraining(m.Spec, data.Train, dir, environmentOf(options))
	if err != nil {
		return nil, errors.WithMessage(err, "pollen: "+dir)
	}
	// The checkpoint has no data: with other images in the same order of minibatches, the chains
	// would continue on another posterior without notice.
	if !m.Data.isOf(t.data) {
		return nil, invalid("resume %s: the data %s differ from the data of the run: restore them, or start another run", dir, data.Train.Name)
	}
	if err := checkHeldOut(dir, data, t.data.Len()); err != nil {
		return nil, err
	}
	t.manifest = m
	if err := t.holdOut(data); err != nil {
		return nil, err
	}
	return t.finish(ctx, data, t.recoverRun)
}

// checkHeldOut refuses, before hours of training, held-out data that the run could not be watched,
// calibrated or assessed on: other image sizes, classes without a counterpart, missing labels, and
// the images to train on. Both kinds of data are optional, as are the labels of test data. trained
// is the number of the images in splits.Train that are trained on.
func checkHeldOut(dir string, splits *datasets.Splits, trained int) error {
	d, described := splits.Train, describeData(splits.Train)
	if splits.Validation != nil {
		heldOut, err := described.relabelled(dir, splits.Validation)
		if err != nil {
			return errors.WithMessage(err, "pollen: validation")
		}
		if heldOut.Len() == trained && trained == d.Len() && contentHash(heldOut) == contentHash(d) {
			return invalid("validation: %s has the images to train on: guarantees need images that the run has not seen", heldOut.Name)
		}
	}
	test := splits.Test
	if test == nil || test.Len() == 0 {
		return nil
	}
	err := described.checkImages(dir, test)
	if test.Labels != nil {
		_, err = described.relabelled(dir, test)
	}
	return errors.WithMessage(err, "pollen: test")
}

// finish makes the run on the environment's device, and records its outcome. open makes the run's
// directory (Fit) or recovers an interrupted run's (Resume). It is called after the program is
// loaded, so that a network that does not compile leaves no directory behind.
//
// The order of the deferred calls matters: held-out predictor, then writer, which waits for a
// checkpoint in flight and releases the lock, then session. Nothing may write after the lock is
// released.
func (t *training) finish(ctx context.Context, data *datasets.Splits, open func(tensor.Device) error) (*Run, error) {
	var run *Run
	err := t.on(func(device tensor.Device) (err error) {
		if err := t.load(ctx, device); err != nil {
			return err
		}
		defer t.session.Close()
		t.writer = t.newWriter()
		defer func() { err = cmp.Or(err, t.writer.Close()) }() // also when an observer panics
		err = t.begin(ctx, device, open)
		defer t.measured.HeldOut.Close()
		defer t.measured.Validation.Close()
		defer t.probe.Close()
		// Only a run that has begun has an outcome to record: otherwise, another process may have
		// locked the directory.
		began := err == nil
		if began {
			err = t.unfinished(t.beginSplits(data))
		}
		if err == nil {
			err = t.run(ctx, device)
		}
		if err == nil {
			run = newRun(t.dir, t.manifest, t.environment)
			err = t.unfinished(t.calibrate(ctx, run.With(WithDevice(device)), data.Validation))
		}
		if err == nil {
			err = t.unfinished(t.endSplits(data))
		}
		if began {
			err = t.recordOutcome(ctx, err)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return run, nil
}

// newWriter returns the only writer of the run's directory. The kind of method decides where states
// go: into samples, or into states from which samples are drawn at the end.
func (t *training) newWriter() *rundir.Writer {
	return rundir.NewWriter(t.dir, rundir.Options{
		FirstChain: t.spec.FirstChain, Chains: t.spec.Chains, Retention: t.spec.retention(t.plan),
		States: t.kind.traits().collected, Drawn: t.kind.traits().drawn, WithoutDamaged: t.withoutDamaged, Remark: t.remark,
		KeepFirst: t.keepsFirst(),
	})
}

// beginRun writes the directory of a new run: a checkpoint at step 0, which has the initial values
// of all chains, and then the manifest. A run that is killed before its first window can therefore
// be resumed, too.
func (t *training) beginRun(device tensor.Device) error {
	return t.writer.Begin(func() (first rundir.Checkpoint, manifest any, err error) {
		if err := t.remarkRoom(t.dir, muchRoom); err != nil {
			return first, nil, err
		}
		if err := t.start(); err != nil {
			return first, nil, err
		}
		if first, err = t.checkpoint(); err != nil {
			return first, nil, err
		}
		data := describeData(t.data)
		data.Content = contentHash(t.data)
		t.manifest = &Manifest{
			Format: rundir.Format, Spec: t.written, Notes: t.notes, Data: *data, Device: tensor.Describe(device), Steps: t.plan.Steps,
			Build: thisBuild(), Teacher: t.teaching.described(),
		}
		if t.manifest.Model, err = t.spec.copyModel(t.dir); err != nil {
			return first, nil, err
		}
		// The watched weight is the middle one of the first parameter, as in job.watched.
		for i, p := range t.session.Program().Parameters() {
			t.manifest.Parameters += p.Shape.Elements()
			if i == 0 {
				t.manifest.Watched = fmt.Sprintf("%s[%d]", p.Name, p.Shape.Elements()/2)
			}
		}
		return first, t.manifest, nil
	})
}

// recoverRun prepares the directory and the session of an interrupted run to continue. If another
// build or device continues the run, the manifest records the step after which the bits may differ.
func (t *training) recoverRun(device tensor.Device) error {
	var restoring error
	err := t.writer.Recover(func(c rundir.Checkpoint) error {
		restoring = t.restore(c)
		return restoring
	})
	if errors.As(restoring, new(*InvalidError)) { // not a damaged checkpoint
		return restoring
	}
	if err != nil {
		return err
	}
	made := int(t.session.Steps())
	t.remarkResumed(made, device)
	if made == t.plan.Steps {
		return nil
	}
	if err := t.teaching.open(t.manifest.Teacher); err != nil {
		return err
	}
	parts := t.manifest.continuedBy(made, tensor.Describe(device), thisBuild())
	if reflect.DeepEqual(parts, t.manifest.Continued) || len(parts)+len(t.manifest.Continued) == 0 {
		return nil
	}
	t.manifest.Continued = parts
	return t.writer.Write(rundir.ManifestFile, t.manifest, "  ")
}

// remarkResumed reports where the run continues, and how that differs from where it began.
func (t *training) remarkResumed(made int, device tensor.Device) {
	if made >= t.plan.Steps {
		t.remark(fmt.Sprintf("all %d steps were made before: nothing is left to do", t.plan.Steps))
	} else {
		t.remark(fmt.Sprintf("resumed after %d of %d steps", made, t.plan.Steps))
	}
	if now := thisBuild(); now.Revision != t.manifest.Revision {
		t.remark(fmt.Sprintf("the run was begun by another build (%s) than this one (%s): its bits may differ from here on", t.manifest.Revision, now.Revision))
	}
	if now := tensor.Describe(device); now != t.manifest.Device {
		t.remark(fmt.Sprintf("the run was begun on another device (%s) than this one (%s)", t.manifest.Device, now))
	}
}

// recordOutcome writes the outcome of a run that ended with err, and returns err, or the error of
// writing. If another process has taken over the run, it returns that error, whatever else went
// wrong: this process must not write an outcome into a run that is still in progress.
func (t *training) recordOutcome(ctx context.Context, err error) error {
	if lost := t.writer.Check(); lost != nil {
		if err == nil || errors.As(lost, new(*LockedError)) {
			return lost
		}
		return err
	}
	// A context that ended makes any error a stop: the failure is usually its consequence.
	ended, cause := rundir.Outcome{State: string(Finished)}, err
	if unfinished := (*UnfinishedError)(nil); errors.As(err, &unfinished) {
		cause = unfinished.Cause // without the directory, which may be moved, and the progress
	}
	switch {
	case err != nil && ctx.Err() != nil:
		ended = rundir.Outcome{State: string(Stopped), Error: cause.Error()}
	case err != nil:
		ended = rundir.Outcome{State: string(Failed), Error: cause.Error()}
	}
	return cmp.Or(err, t.writer.Finish(ended))
}

// start moves the chains of a new run to the last samples of the run Spec.Start, if it is given.
// Only the parameters are taken over: momenta, preconditioners and thermostats start fresh and
// adapt during burn-in. It is called before the first checkpoint. A resumed run continues from a
// checkpoint without reading Start again, and retrain does not read it either, see keepsFirst.
func (t *training) start() error {
	if t.spec.Start == "" {
		starts, err := t.teaching.start()
		for i := 0; i < len(starts) && err == nil; i++ {
			err = errors.WithMessage(t.startAt(i, starts[i]), "distil: networks")
		}
		return err
	}
	from, err := Open(t.spec.Start)
	if errors.As(err, new(*NotARunError)) {
		return &InvalidError{errors.WithMessage(err, "pollen: start")}
	}
	if err != nil {
		return errors.WithMessage(err, "pollen: start")
	}
	last, err := from.lastSamples()
	if err != nil {
		return errors.WithMessage(err, "pollen: start")
	}
	if last == nil {
		return invalid("start %s: the run has no samples yet", t.spec.Start)
	}
	if again, err := t.drawsAgain(from); err != nil {
		return errors.WithMessage(err, "pollen: start")
	} else if again {
		t.remark(fmt.Sprintf("%s has the seed %d, too: its chains had the same noise, and these approach their samples where they mix; use another seed for new ones",
			t.spec.Start, t.spec.Seed))
	}
	theirs, err := from.manifest.Spec.starts()
	if err != nil {
		return errors.WithMessagef(err, "start %s", t.spec.Start)
	}
	ours, err := t.spec.starts()
	if err != nil {
		return err
	}
	for chain := range t.session.Chains() {
		s, err := last[(t.spec.FirstChain+chain/t.spec.replicasOfEach())%len(last)].Read()
		if err == nil {
			moveStarts(s, theirs, ours)
			err = t.startAt(chain, s)
		}
		if err == nil {
			err = t.checkStart(chain, s)
		}
		if err != nil {
			return errors.WithMessagef(err, "start %s", t.spec.Start)
		}
	}
	return nil
}

// lastSamples returns the last sample of each chain.
func (r *Run) lastSamples() (last []rundir.File, err error) {
	files, err := r.listSamples()
	if err != nil {
		return nil, err
	}
	before := ""
	for _, f := range files { // by part of a gathered run, then by chain, then by step
		number, _, err := samples.ParseFileName(f.Path)
		if err != nil {
			return nil, err
		}
		// Parts of a gathered run may have chains of equal number, hence the directory.
		chain := fmt.Sprint(filepath.Dir(f.Path), number)
		if chain != before {
			last = append(last, f)
		}
		last[len(last)-1], before = f, chain
	}
	return last, nil
}

// drawsAgain reports whether some chains have the same noise as chains of another run, namely those
// with the same seed and number. Noise depends only on seed, chain and step, so two such chains
// approach each other where they mix, and the second adds little information. The intervals
// compared are numbers of session chains, which include replicas.
func (t *training) drawsAgain(from *Run) (bool, error) {
	runs, err := from.Parts()
	if runs == nil {
		runs = []*Run{from}
	}
	return slices.ContainsFunc(runs, func(r *Run) bool {
		s, each, theirs := r.manifest.Spec, t.spec.replicasOfEach(), r.manifest.Spec.replicasOfEach()
		return s.Seed == t.spec.Seed && s.NoiseTemperature() > 0 && t.spec.NoiseTemperature() > 0 &&
			s.FirstChain*theirs < (t.spec.FirstChain+t.spec.Chains)*each && t.spec.FirstChain*each < (s.FirstChain+s.Chains)*theirs
	}), err
}

// startAt sets the parameters of a chain to a sample's, matched by name and shape, so that the
// order of layers does not matter.
func (t *training) startAt(chain int, s samples.Sample) error {
	for _, p := range t.session.Program().Parameters() {
		at := slices.IndexFunc(s.Parameters, func(q samples.Parameter) bool { return q.Name == p.Name && q.Shape.Equal(p.Shape) })
		if at < 0 {
			return invalid("it has no parameter %s of shape %v: its network is another one", p.Name, p.Shape)
		}
		if err := t.session.WriteFloats(p.Name, chain, s.Parameters[at].Values); err != nil {
			return err
		}
	}
	return nil
}

// run makes the remaining steps. If the context ends, it returns to the beginning of the present
// window, writes a checkpoint there, and keeps its samples.
//
// An error of saving takes precedence over a stop, since Resume must not be promised a checkpoint
// that does not exist; diagnostics are written even after a failure, as they often explain it.
func (t *training) run(ctx context.Context, device tensor.Device) error {
	err := t.warm(ctx, device)
	if err == nil {
		err = t.sample(ctx)
	}
	stopped := err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err())
	if saving := t.writer.Wait(); saving != nil && (err == nil || stopped) {
		err, stopped = saving, false
	}
	if err == nil {
		err = t.kind.conclude(ctx, &t.job, device)
	}
	err = t.diverged(err)
	if stopped && (t.warmUp == nil || t.warmUp.done) { // a warm start saves itself
		if saving := t.saveNow(); saving != nil {
			err, stopped = saving, false
		}
	}
	t.warn()
	err = cmp.Or(err, t.writer.CloseMetrics())
	d, failed := t.diagnose(ctx, device)
	if failed == nil {
		failed = t.writer.Write(rundir.DiagnosticsFile, d, "")
	}
	err = cmp.Or(err, failed)
	return t.unfinished(err)
}

// unfinished wraps err in an UnfinishedError with the progress so far; nil stays nil.
func (t *training) unfinished(err error) error {
	if err == nil {
		return nil
	}
	warming := t.warmUp != nil && !t.warmUp.done
	for _, stop := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, stop) && !warming { // the text of err repeats the steps
			err = stop
		}
	}
	e := &UnfinishedError{Dir: t.dir, Made: int(t.session.Steps()), Steps: t.plan.Steps, Samples: t.writer.Samples(), Cause: err}
	if warming {
		e.WarmEpochs = t.warmUp.epochs
	}
	return e
}

// warn remarks on a run that has learnt nothing: large steps can kill all ReLUs of a network while
// its loss stays finite. A run whose loss is above 98 % of the loss of guessing gets the remark.
func (t *training) warn() {
	const like = 0.98
	if guessing := guessing(t.data, t.classWeights); t.measured.Loss > like*guessing {
		below := "not"
		if t.measured.Loss < guessing {
			below = "hardly"
		}
		advice := "more epochs or another learning rate may help, or the method auto, which finds a rate"
		if !t.kind.traits().rated || mayChoose(t.spec.Method) {
			advice = "more epochs may help, or another network, if this one cannot tell these classes apart"
		}
		t.remark(fmt.Sprintf("the loss of the last steps, %.3f, is %s below the loss of guessing among the %d classes by their frequencies, %.3f; %s",
			t.measured.Loss, below, t.data.Classes, guessing, advice))
	}
}

// calibrate fits the finished run's detector, and calibrates the run if there are held-out images.
func (t *training) calibrate(ctx context.Context, run *Run, heldOut *datasets.Dataset) error {
	d, err := run.fitDetector(ctx, t.data)
	if err == nil {
		err = t.writer.Write(rundir.DetectorFile, d, "")
	}
	// Without a calibration, which needs all samples, a damaged one is no reason to fail.
	if errors.As(err, new(*detector.UnfitError)) || heldOut == nil && errors.As(err, new(*DamagedError)) {
		t.remark(fmt.Sprintf("no in-distribution decisions: %v", err))
		err = nil
	}
	if err != nil || heldOut == nil {
		return err
	}
	var atCentre func(heldOut *datasets.Dataset) (*evaluate.Predictions, error)
	if kind, ok := t.kind.(centred); ok {
		atCentre = func(heldOut *datasets.Dataset) (*evaluate.Predictions, error) {
			spec, states, err := kind.centre(&t.job)
			if err != nil {
				return nil, err
			}
			return run.atCentres(ctx, heldOut, spec, states)
		}
	}
	c, err := run.calibrationOn(ctx, heldOut, atCentre)
	if err != nil {
		return err
	}
	t.validated = run.calibratedOn
	// Calibrate may have replaced the calibration of a run that was finished before.
	if before, err := run.Calibration(); err == nil && before.Content != "" && before.Content != c.Content && before.Samples == c.Samples {
		t.remark(fmt.Sprintf("the run keeps its calibration on %s", before.Data))
		return nil
	}
	return t.writer.Write(rundir.CalibrationFile, c, "")
}
