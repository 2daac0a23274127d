package bayes

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Run is the directory of a run, which may be finished, interrupted, or still sampling in another
// process. A Run holds no file open and caches no sample: every call reads the directory as it is
// then, so that a Run of a growing directory predicts with more and more samples. Use a Predictor
// to keep samples loaded.
type Run struct {
	environment
	dir      string
	manifest *Manifest // as it was when the run was opened; it changes only when a run is resumed
	// calibratedOn has the predictions of the last calibration by this Run.
	calibratedOn *evaluate.Predictions
	undetected   bool            // predictions have no scores of the detector
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

// Manifest returns the description of the run.
func (r *Run) Manifest() Manifest { return *r.manifest }

// Expected returns how many samples the finished run has. With Spec.Keep it may have more before
// its end.
func (r *Run) Expected() (int, error) {
	c, err := kindOf(r.manifest.Spec.Method)
	if err != nil {
		return 0, err
	}
	// Such methods draw exactly Samples at the end; others follow the plan, which may yield a few
	// more.
	if t := c.traits(); t.collected || t.drawn {
		return r.manifest.Spec.Samples * r.manifest.Spec.Chains, nil
	}
	plan, _, err := r.manifest.Spec.plan(c, r.manifest.Data.Size)
	if err != nil {
		return 0, err
	}
	return rundir.Retention{Plan: plan, Keep: r.manifest.Spec.Keep}.Samples() * r.manifest.Spec.Chains, nil
}

// Finished reports whether the run has all its samples. It uses only the files, not the recorded
// outcome, so that it is also right for a copy, and for a run whose process was killed after its
// last sample.
func (r *Run) Finished() (bool, error) {
	expected, err := r.Expected()
	if err != nil {
		return false, err
	}
	files, err := r.Samples()
	if err != nil || len(files) < expected || r.manifest.Spec.Keep == 0 {
		return err == nil && len(files) >= expected, err
	}
	// Before its end a run may have the same number of samples, closer to each other.
	kind, err := kindOf(r.manifest.Spec.Method)
	if err != nil {
		return false, err
	}
	plan, _, err := r.manifest.Spec.plan(kind, r.manifest.Data.Size)
	if err != nil {
		return false, err
	}
	kept := rundir.Retention{Plan: plan, Keep: r.manifest.Spec.Keep}
	for _, path := range files {
		if _, step, err := samples.ParseFileName(path); err != nil || !kept.Has(step, plan.Steps) {
			return false, err
		}
	}
	return true, nil
}

// Network returns the trained network, from images to logits. The error is DamagedError if it has
// more parameters than the run.
func (r *Run) Network() (layers.Sequential, error) {
	if _, err := r.parts(); err != nil {
		return nil, err
	}
	return r.manifest.Spec.Build(r.manifest.Data.Classes())
}

// checkParameters refuses a network with more parameters than the run and its largest sample have,
// before memory is allocated for it.
func (r *Run) checkParameters(p parts) error {
	limit, made := r.manifest.Parameters, 0
	largest, size := r.largestSample()
	if size > 0 {
		limit = min(limit, int(size/4)) // they are float32
	}
	// A manifest that a stranger wrote may name a network with billions of weights. Building a
	// graph allocates none of them, and this hook stops it at the first parameter that is too many.
	var excess error
	b := graph.New(tensor.Float32)
	b.Hooks.Parameter = func(name string, initialize graph.Initializer, shape ...int) *graph.Node {
		if s := tensor.Shape(shape); s.Validate() != nil || s.Elements() > limit-made {
			excess = errors.Errorf("the network has more parameters than the %d of the run's samples", limit)
			b.Fail(excess)
			return nil
		}
		made += tensor.Shape(shape).Elements()
		return b.Parameter(name, initialize, shape...)
	}
	p.network.Apply(b, b.Data("input", tensor.Float32, append([]int{1}, p.inputs().Shape()...)...))
	if excess == nil {
		return nil // any other error is reported where the network is used
	}
	if _, _, err := samples.ReadWithChecksum(largest); size > 0 && err != nil { // cut, and so are the others
		if r.withoutDamaged {
			return errors.Errorf("pollen: all samples of %s are damaged", r.dir)
		}
		return errors.WithStack(&DamagedError{File: largest, Cause: err})
	}
	return errors.WithStack(&DamagedError{File: filepath.Join(r.dir, rundir.ManifestFile), Cause: excess})
}

// largestSample returns the path and the size in bytes of the largest sample of the run, or of its
// first part; 0 if there is none.
func (r *Run) largestSample() (path string, size int64) {
	dir := append(r.places(), r.dir)[0]
	files, err := samples.NewStore(filepath.Join(dir, rundir.SamplesDir)).Files()
	if err != nil {
		return "", 0 // which is reported where the samples are used
	}
	for _, file := range files {
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Size() > size {
			path, size = file, info.Size()
		}
	}
	return path, size
}

// images returns the images of a data set for the run's network. They keep the run's mean and
// standard deviation, not those of the data set: a network must see pixels normalised as in
// training.
func (r *Run) images(data *datasets.Dataset) (samples.Images, error) {
	d := &r.manifest.Data
	if data == nil || data.Len() == 0 {
		return samples.Images{}, invalid("%s: no images to predict", r.dir)
	}
	if data.Channels != d.Channels || data.Height != d.Height || data.Width != d.Width {
		return samples.Images{}, invalid("%s has images of %dx%dx%d, must have the %dx%dx%d of %s, which was trained on %s", data.Name,
			data.Channels, data.Height, data.Width, d.Channels, d.Height, d.Width, r.dir, d.Name)
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

// reader returns a reader of the run's own samples.
func (r *Run) reader() *rundir.Reader {
	return &rundir.Reader{Dir: r.dir, Keep: r.manifest.Spec.Keep, WithoutDamaged: r.withoutDamaged, Remark: r.remark, LeftOut: r.left}
}

// LeftOut returns the paths of the damaged and missing samples that were left out so far, see
// WithoutDamaged, and of those that the run itself continued without.
func (r *Run) LeftOut() []string { return r.left.Files() }

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

// sampleFiles returns the samples so far; it is an error if a task finds none.
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

// each passes each sample to use, in the order of listSamples, as often as the method predicts with
// it: once, or Spec.Samples times with MC dropout, whose passes differ in their masks. A sample of
// which use returns a samples.NotFiniteError counts as damaged.
func (r *Run) each(ctx context.Context, task string, data *datasets.Dataset, use func(samples.Sample) error) error {
	return r.eachOf(ctx, task, data, func(_ string, s samples.Sample) error { return use(s) })
}

// eachOf is each, with a text that identifies the sample's chain among those of all parts.
func (r *Run) eachOf(ctx context.Context, task string, data *datasets.Dataset, use func(chain string, s samples.Sample) error) error {
	files, err := r.sampleFiles(task)
	if err != nil {
		return err
	}
	c, err := kindOf(r.manifest.Spec.Method)
	if err != nil {
		return err
	}
	passes := c.passes(&r.manifest.Spec)
	// Progress counts files, not passes, and includes damaged ones, so that Done reaches Total.
	used := 0
	for i, f := range files {
		if err := ctx.Err(); err != nil {
			return errors.Wrapf(err, "pollen: %s", task)
		}
		sample, err := f.Read()
		if err != nil {
			if err := r.reader().Skip(f.Path, err); err != nil {
				return err
			}
			continue
		}
		err = use(fmt.Sprint(filepath.Dir(f.Path), sample.Chain), sample)
		if isNotFinite(err) { // use has added nothing to its results
			if err := r.reader().Skip(f.Path, err); err != nil {
				return err
			}
			continue
		}
		used++
		for pass := 1; err == nil && pass < passes; pass++ {
			err = use(fmt.Sprint(filepath.Dir(f.Path), sample.Chain), sample)
		}
		if err != nil {
			return errors.Wrap(err, f.Path)
		}
		r.observe(Event{Task: task, On: data.Name, Done: i + 1, Total: len(files), Images: data.Len() * passes})
	}
	if used == 0 {
		return errors.Errorf("pollen: %s: all samples of %s are damaged", task, r.dir)
	}
	return nil
}

// Predictions returns the posterior predictive on a data set: probabilities averaged over all
// samples by Spec.Weights,
//
//	p(y | x) = sum_s w_s p(y | x, theta_s) / sum_s w_s.
//
// visit, if not nil, is called with the probabilities [N K] and the weight of each sample; the
// slice is reused for the next sample. The errors are those of Predict.
func (r *Run) Predictions(ctx context.Context, data *datasets.Dataset, visit func(probabilities []float32, weight float64) error,
) (*evaluate.Predictions, error) {
	return r.predictions(ctx, data, visit, nil)
}

// predictions is Predictions, and fills in means, if it is not nil, with predictions at the means
// of the chains.
func (r *Run) predictions(ctx context.Context, data *datasets.Dataset, visit func(probabilities []float32, weight float64) error, means *chainMeans,
) (*evaluate.Predictions, error) {
	if err := checkContext(ctx, "predict"); err != nil {
		return nil, err
	}
	images, err := r.images(data)
	if err != nil {
		return nil, err
	}
	p, err := r.parts()
	if err != nil {
		return nil, err
	}
	files, err := r.intactFiles("predict")
	if err != nil {
		return nil, err
	}
	kind, err := kindOf(r.manifest.Spec.Method)
	if err != nil {
		return nil, err
	}
	passes := kind.passes(&r.manifest.Spec)
	found, err := r.detectorIfAny(len(files))
	if err != nil {
		return nil, err
	}
	var average *evaluate.Predictive
	var strange *strangeness
	err = r.on(func(device tensor.Device) error {
		if err := r.checkPredictions(device, data.Len(), p, len(files), found != nil); err != nil {
			return err
		}
		inputs, err := r.inputs(ctx, device, p, images)
		if err != nil {
			return err
		}
		predictors, err := newPredictors(device, inputs, p.network, found, len(files), passes, kind.traits().dirichlet)
		if err != nil {
			return err
		}
		defer predictors.close()
		if average, err = evaluate.NewPredictive(data.Len(), predictors.classes); err != nil {
			return err
		}
		if found != nil {
			strange = newStrangeness(found, images.Pixels, r.detectorShape())
		}
		probabilities, logits := make([]float32, data.Len()*predictors.classes), []float32(nil)
		if kind.traits().dirichlet {
			logits = make([]float32, len(probabilities))
		}
		if err := means.begin(cmp.Or(predictors.plain, predictors.featured), data.Len()); err != nil {
			return err
		}
		defer means.end(data)
		return r.eachOf(ctx, "predict", data, func(chain string, sample samples.Sample) error {
			// The average counts passes, several of which may be of one sample.
			means.add(chain, sample)
			position, pass := average.Samples()/passes, average.Samples()%passes
			predictor, featured := predictors.of(position)
			if err := predictor.Predict(sample, probabilities); err != nil {
				return err
			}
			if visit != nil {
				if err := visit(probabilities, sample.Weight); err != nil {
					return err
				}
			}
			if featured {
				if err := strange.add(predictor, data.Len(), position, pass, sample.Weight); err != nil {
					return err
				}
			}
			if !kind.traits().dirichlet {
				return average.Add(probabilities, sample.Weight)
			}
			if err := predictor.Logits(logits); err != nil {
				return err
			}
			return average.AddDirichlet(probabilities, logits, sample.Weight)
		})
	})
	if err != nil {
		return nil, err
	}
	// Scores are comparable with those of the calibration only if they are of the same samples.
	predictions := average.Predictions(data.Name, data.Labels)
	if strange != nil && average.Samples() == len(files)*passes { // none was left out
		predictions.Strangeness, err = strange.scores()
	}
	return predictions, err
}

// Assess scores the run on labelled data like those it was trained on and, if other is not nil, how
// well it detects that other is out of distribution. The labels of other are not used. The errors
// are those of Predict; labels that are missing or of unknown classes are an InvalidError.
func (r *Run) Assess(ctx context.Context, test, other *datasets.Dataset) (*evaluate.Assessment, error) {
	c := evaluate.Case{Sets: r.setRule, RiskConfidence: r.riskConfidence}
	if r.risk > 0 {
		c.Risks = []float64{r.risk}
	}
	test, err := r.relabelled(test)
	if err != nil {
		return nil, err
	}
	if c.In, err = r.Predictions(ctx, test, nil); err != nil {
		return nil, err
	}
	if c.Calibration, err = r.calibrationIfAny(c.In.Samples); err != nil {
		return nil, err
	}
	if other != nil {
		if c.Out, err = r.Predictions(ctx, other, nil); err != nil {
			return nil, err
		}
	}
	return evaluate.Assess(c)
}

// relabelled returns a data set with labels that number the run's classes. Each data set numbers
// its own classes, so that "dog" may be 1 in one and 0 in another: labels are matched by class
// name. Missing labels and classes that the run was not trained on are errors.
func (r *Run) relabelled(data *datasets.Dataset) (*datasets.Dataset, error) {
	known := r.manifest.Data.ClassNames
	if _, err := r.images(data); err != nil {
		return nil, err
	}
	if err := checkLabelled(data); err != nil {
		return nil, err
	}
	if slices.Equal(data.ClassNames, known) {
		return data, nil
	}
	numbers := make([]int32, len(data.ClassNames))
	for i, name := range data.ClassNames {
		at := slices.Index(known, name)
		if at < 0 {
			return nil, invalid("%s has a class %q, which %s was not trained on; its classes are %s", data.Name, name, r.dir, strings.Join(known, ", "))
		}
		numbers[i] = int32(at)
	}
	other := *data
	other.Classes, other.ClassNames, other.Labels = len(known), known, make([]int32, len(data.Labels))
	for i, label := range data.Labels {
		other.Labels[i] = numbers[label]
	}
	return &other, nil
}

// Gradient returns the gradient of -log p(label) by the pixels, [N C H W], where p is the run's
// posterior predictive; see samples.InputGradient.
func (r *Run) Gradient(ctx context.Context, data *datasets.Dataset) (gradient []float64, err error) {
	if err := checkContext(ctx, "gradient"); err != nil {
		return nil, err
	}
	data, err = r.relabelled(data)
	if err != nil {
		return nil, err
	}
	images, err := r.images(data)
	if err != nil {
		return nil, err
	}
	network, err := r.Network()
	if err != nil {
		return nil, err
	}
	err = r.on(func(device tensor.Device) error {
		if err := r.checkGradient(device, data.Len(), network); err != nil {
			return err
		}
		g, err := samples.NewInputGradient(device, tensor.Float32, images, data.Labels, predictBatch, network.Apply)
		if err != nil {
			return err
		}
		defer g.Close()
		if err := r.each(ctx, "gradient", data, g.Add); err != nil {
			return err
		}
		gradient = g.Gradient()
		return nil
	})
	return gradient, err
}

// checkLabelled refuses data that are not valid, or whose labels are unknown.
func checkLabelled(data *datasets.Dataset) error {
	if err := data.Validate(); err != nil {
		return InvalidError{err}
	}
	if data.Labels == nil {
		return invalid("%s has no labels: each image must have one", data.Name)
	}
	return nil
}
