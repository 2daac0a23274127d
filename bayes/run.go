package bayes

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
)

// Run is the directory of a run, which may be finished, interrupted, or still sampling in another
// process. A Run holds no file open and caches no sample: every call reads the directory as it is
// then, so that a Run of a growing directory predicts with more and more samples. Use a Predictor
// to keep samples loaded. Several goroutines may use a Run. Methods that write to its directory,
// such as Calibrate, return a LockedError while another one does.
type Run struct {
	environment
	dir      string
	manifest *Manifest // as it was when the run was opened; it changes only when a run is resumed
	// calibratedOn has the predictions of the last calibration by this Run.
	calibratedOn *evaluate.Predictions
	undetected   bool            // predictions are made without the detector
	left         *rundir.LeftOut // shared with the Runs that With makes and with parts, so that each file is remarked once
}

func newRun(dir string, m *Manifest, e environment) *Run {
	return &Run{environment: e, dir: dir, manifest: m, left: &rundir.LeftOut{}}
}

// Open opens the run in dir. The error is NotARunError if there is none, and DamagedError if its
// manifest was changed.
func Open(dir string, options ...Option) (*Run, error) {
	e := environmentOf(options)
	if err := e.checkLevels(); err != nil {
		return nil, err
	}
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	return newRun(dir, m, e), nil
}

// With returns the same run with some options changed.
func (r *Run) With(options ...Option) *Run {
	other := *r
	other.apply(options)
	return &other
}

// Dir returns the run's directory.
func (r *Run) Dir() string { return r.dir }

// Level returns the probability with which prediction sets contain the true class, see WithLevel.
func (r *Run) Level() float64 { return r.level }

// InDistributionRate returns the fraction of in-distribution images that are recognized as such,
// see WithInDistributionRate.
func (r *Run) InDistributionRate() float64 { return r.inDistributionRate }

// Manifest returns the description of the run.
func (r *Run) Manifest() Manifest { return *r.manifest }

// Expected returns the number of samples of the finished run. With Spec.Keep it may have more
// before its end.
func (r *Run) Expected() (int, error) {
	s, kind := &r.manifest.Spec, r.manifest.kind()
	plan, _, err := s.plan(kind, r.manifest.Data.Size)
	if err != nil {
		return 0, err
	}
	return s.expected(kind, plan), nil
}

// expected returns the number of samples of a finished run with a plan.
func (s *Spec) expected(kind methodKind, plan langevin.Plan) int {
	// Such methods draw exactly Samples at the end; others follow the plan, which may yield a few
	// more.
	if t := kind.traits(); t.collected || t.drawn {
		return s.Samples * s.Chains
	}
	return s.retention(plan).Samples() * s.Chains
}

// retention returns which samples of a plan are kept.
func (s *Spec) retention(plan langevin.Plan) rundir.Retention {
	return rundir.Retention{Plan: plan, Keep: s.Keep}
}

// passes returns how many predictions each sample makes: one, or Spec.Samples with MC dropout,
// whose passes differ in their masks.
func (r *Run) passes() int { return r.manifest.kind().passes(&r.manifest.Spec) }

// Finished reports whether the run has all its samples. It uses only the files, not the recorded
// outcome, so that it is also right for a copy, and for a run whose process was killed after its
// last sample.
func (r *Run) Finished() (bool, error) {
	s, kind := &r.manifest.Spec, r.manifest.kind()
	plan, _, err := s.plan(kind, r.manifest.Data.Size)
	if err != nil {
		return false, err
	}
	files, err := r.Samples()
	if expected := s.expected(kind, plan); err != nil || len(files) < expected || s.Keep == 0 {
		return err == nil && len(files) >= expected, err
	}
	// Before its end a run may have the same number of samples, closer to each other.
	for _, path := range files {
		if _, step, err := samples.ParseFileName(path); err != nil || !s.retention(plan).Has(step, plan.Steps) {
			return false, err
		}
	}
	return true, nil
}

// images returns the images of a data set for the run's network. They keep the run's mean and
// standard deviation, not the data set's: a network must see pixels normalised as in training.
func (r *Run) images(data *datasets.Dataset) (samples.Images, error) {
	if err := r.manifest.Data.checkImages(r.dir, data); err != nil {
		return samples.Images{}, err
	}
	images := r.shape()
	images.Pixels = data.Images
	return images, nil
}

// shape returns the shape and moments of images for the run's network.
func (r *Run) shape() samples.Images {
	d := &r.manifest.Data
	return samples.Images{
		Channels: d.Channels, Height: d.Height, Width: d.Width, Mean: d.Mean, Std: d.Std,
	}
}

// predictBatch is the batch size of predictions. It changes their values only by rounding.
const predictBatch = 100

// predictorBatches is the number of batches that a Predictor handles together, so that the host's
// threads switch between samples less often.
const predictorBatches = 8

// reader returns a reader of the run's own samples.
func (r *Run) reader() *rundir.Reader {
	return &rundir.Reader{Dir: r.dir, Keep: r.manifest.Spec.Keep, WithoutDamaged: r.withoutDamaged, Remark: r.remark, LeftOut: r.left}
}

// LeftOut returns the paths of the damaged and missing samples that were left out so far, see
// WithoutDamaged, and of those that the run itself continued without.
func (r *Run) LeftOut() []string { return r.left.Files() }

// places returns the directories of a gathered run's parts.
func (r *Run) places() []string {
	var places []string
	for _, place := range r.manifest.Parts {
		if place = filepath.FromSlash(place); !filepath.IsAbs(place) {
			place = filepath.Join(r.dir, place)
		}
		places = append(places, place)
	}
	return places
}

// Parts returns the runs that were gathered into this one; nil if it is not a gathered run.
func (r *Run) Parts() ([]*Run, error) {
	var parts []*Run
	for _, place := range r.places() {
		part, err := Open(place)
		if err == nil && len(part.manifest.Parts) > 0 {
			// Gather makes no such run. If it were read, it might be a part of itself.
			err = &DamagedError{File: filepath.Join(r.dir, rundir.ManifestFile), Cause: rundir.NestedError(place)}
		}
		if err != nil {
			return nil, errors.WithMessagef(err, "%s was gathered from runs that stay in their places: put them back, or gather copies of their samples", r.dir)
		}
		part.environment, part.left = r.environment, r.left
		parts = append(parts, part)
	}
	return parts, nil
}

// Samples returns the paths of the sample files, by chain and then by step; none if the run has not
// drawn any yet. If a file is missing that the run's index lists, or the index does not list a
// file, the error is DamagedError.
func (r *Run) Samples() ([]string, error) {
	files, err := r.listSamples()
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.Path
	}
	return paths, err
}

// listSamples returns the samples of the run, or of its parts.
func (r *Run) listSamples() ([]rundir.File, error) {
	parts, err := r.Parts()
	if err != nil {
		return nil, err
	}
	if parts == nil {
		return r.reader().List()
	}
	var all []rundir.File
	for _, part := range parts {
		files, err := part.reader().List()
		if err != nil {
			return nil, err
		}
		all = append(all, files...)
	}
	return all, nil
}

// sampleFiles returns the samples so far. It is an error if there are none; the error names the
// task.
func (r *Run) sampleFiles(task string) ([]rundir.File, error) {
	files, err := r.listSamples()
	if err == nil && len(files) == 0 {
		err = errors.Errorf("pollen: %s: %s has no samples yet", task, r.dir)
	}
	return files, err
}

// intactFiles returns the samples so far without those that are damaged, if they may be left out.
func (r *Run) intactFiles(task string) ([]rundir.File, error) {
	files, err := r.sampleFiles(task)
	if err != nil {
		return nil, err
	}
	return r.reader().Intact(files)
}

// each passes each sample to use, in the order of listSamples, with a text that identifies its
// chain among all parts' chains, as often as the method predicts with it, see passes. A sample for
// which use returns a samples.NotFiniteError counts as damaged.
func (r *Run) each(ctx context.Context, task string, data *datasets.Dataset, use func(chain string, s samples.Sample) error) error {
	files, err := r.sampleFiles(task)
	if err != nil {
		return err
	}
	passes := r.passes()
	// Progress counts files, not passes, and includes damaged ones, so that Done reaches Total.
	used := 0
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return errors.Wrapf(err, "pollen: %s", task)
		}
		sample, err := f.Read()
		damaged, chain := err != nil, fmt.Sprint(filepath.Dir(f.Path), sample.Chain)
		if err == nil {
			err = use(chain, sample)
			damaged = isNotFinite(err) // use has added nothing to its results
		}
		if damaged {
			if err := r.reader().Skip(f.Path, err); err != nil {
				return err
			}
			continue
		}
		used++
		for pass := 1; err == nil && pass < passes; pass++ {
			err = use(chain, sample)
		}
		if err != nil {
			return errors.Wrap(err, f.Path)
		}
		r.observe(Event{Task: task, On: data.Name, Of: data.Len(), Done: i + 1, Total: len(files), Images: data.Len() * passes})
	}
	if used == 0 {
		return errors.Errorf("pollen: %s: all samples of %s are damaged", task, r.dir)
	}
	return nil
}

// Digest returns a SHA-256, in hexadecimal digits, that identifies the content of the run: all that
// its answers and scores depend on, but not how or where it is stored, nor its figures.
// docs/formats.md defines it. Whoever signs the digest signs the run: two runs have the same digest
// only if their manifests, samples, calibrations and diagnostics are the same, bit for bit.
//
// Digest takes the checksums of samples from the run's index. Verify, and all calls that read
// samples, compare them with the files. The digest of a run that still samples changes with each
// sample. Files that WithoutDamaged leaves out are not counted. The error is DamagedError if a file
// is damaged or missing.
func (r *Run) Digest() (string, error) {
	files, err := r.listSamples()
	if err == nil && len(files) > 0 {
		files, err = r.reader().Intact(files)
	}
	if err != nil {
		return "", err
	}
	return r.digestOf(files)
}

// digestOf returns the digest of the run with these of its samples.
func (r *Run) digestOf(files []rundir.File) (string, error) {
	parts, err := r.Parts()
	if err != nil {
		return "", err
	}
	if parts == nil {
		return r.reader().Digest(files, nil)
	}
	sums := map[string]string{} // by the place in the manifest
	for i, part := range parts {
		dir := filepath.Join(part.dir, rundir.SamplesDir)
		others := func(f rundir.File) bool { return filepath.Dir(f.Path) != dir }
		if sums[r.manifest.Parts[i]], err = part.digestOf(slices.DeleteFunc(slices.Clone(files), others)); err != nil {
			return "", err
		}
	}
	return r.reader().Digest(nil, sums)
}

// relabelled returns a data set whose labels are the numbers of the run's classes, see
// Data.relabelled.
func (r *Run) relabelled(data *datasets.Dataset) (*datasets.Dataset, error) {
	return r.manifest.Data.relabelled(r.dir, data)
}

// checkLabelled refuses data that are not valid, or whose labels are unknown.
func checkLabelled(data *datasets.Dataset) error {
	if err := data.Validate(); err != nil {
		return &InvalidError{err}
	}
	if data.Labels == nil {
		return invalid("%s has no labels: each image must have one", data.Name)
	}
	return nil
}
