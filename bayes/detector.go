package bayes

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/detector"
	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/internal/strange"
	"github.com/pollen-ml/pollen/layers"
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
	if err := r.features(ctx, images, positions, fitter.Add); err != nil {
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

// features passes the features of images under the samples at the given positions to use, in order.
func (r *Run) features(ctx context.Context, images samples.Images, positions []int, use func(position int, features []float32) error) error {
	files, err := r.intactFiles("detector")
	if err != nil {
		return err
	}
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
	d := &detector.Detector{}
	err := rundir.ReadFile(r.dir, rundir.DetectorFile, d)
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

// predictors has a predictor of the samples whose features a detector needs, featured, and one of
// the others, plain, which is faster.
type predictors struct {
	plain, featured *samples.SamplePredictor // nil if not used
	detector        *detector.Detector
	classes         int
}

// newPredictors loads the predictors for a run with the given number of sample files; d may be nil.
// Passes of one sample differ only if one predictor makes all of them. If logits is true, all
// predictors store the logits.
func newPredictors(device tensor.Device, images samples.Images, network layers.Sequential, d *detector.Detector, files, passes int, logits bool,
) (p *predictors, err error) {
	p = &predictors{detector: d}
	if logits && d == nil {
		if p.plain, err = samples.NewLogitPredictor(device, images, predictBatch, network.Apply); err != nil {
			return nil, err
		}
		p.classes = p.plain.Classes()
		return p, nil
	}
	if d != nil {
		if p.featured, err = samples.NewFeaturePredictor(device, images, predictBatch, network.Apply); err != nil {
			return nil, err
		}
		p.classes = p.featured.Classes()
	}
	if d == nil || !logits && passes == 1 && len(d.Members) < files {
		if p.plain, err = samples.NewSamplePredictor(device, tensor.Float32, images, predictBatch, network.Apply); err != nil {
			p.close()
			return nil, err
		}
		p.classes = p.plain.Classes()
	}
	return p, nil
}

// of returns the predictor of the sample at a position, and whether it has features that the
// detector needs.
func (p *predictors) of(position int) (predictor *samples.SamplePredictor, featured bool) {
	featured = p.detector != nil && p.detector.At(position) >= 0
	if featured || p.plain == nil {
		return p.featured, featured
	}
	return p.plain, false
}

func (p *predictors) close() {
	for _, predictor := range []*samples.SamplePredictor{p.plain, p.featured} {
		if predictor != nil {
			predictor.Close()
		}
	}
}

// strangeness accumulates the scores of predictions by which images are judged in or out of
// distribution.
type strangeness struct {
	scorer   *detector.Scorer
	detector *detector.Detector

	weight           float64 // of the samples so far
	maxLogit, energy []float64
	logits, features []float32
}

func newStrangeness(d *detector.Detector, pixels []byte, shape detector.Shape) *strangeness {
	return &strangeness{scorer: d.Scorer(pixels, shape), detector: d}
}

// featureRows is the number of images whose features are read together.
const featureRows = 1024

// add adds a prediction of n images by the sample at a position, whose features the detector has:
// its logits and, in the first pass, its features.
func (s *strangeness) add(p *samples.SamplePredictor, n, position, pass int, weight float64) error {
	if pass == 0 {
		if err := s.addFeatures(n, p.FeatureCount(), position, p.Features); err != nil {
			return err
		}
	}
	if s.maxLogit == nil {
		s.maxLogit, s.energy, s.logits = make([]float64, n), make([]float64, n), make([]float32, n*p.Classes())
	}
	if err := p.Logits(s.logits); err != nil {
		return err
	}
	// Each image has the weighted mean of its scores over the samples, updated as in
	// mean += w/W (x - mean), where W is the weight so far. The energy is -log sum exp of the
	// logits; the largest one is taken out so that no exponential overflows.
	s.weight += weight
	for i := range n {
		row := s.logits[i*p.Classes() : (i+1)*p.Classes()]
		largest := slices.Max(row)
		sum := 0.0
		for _, v := range row {
			sum += math.Exp(float64(v - largest))
		}
		s.maxLogit[i] += weight / s.weight * (-float64(largest) - s.maxLogit[i])
		s.energy[i] += weight / s.weight * (-float64(largest) - math.Log(sum) - s.energy[i])
	}
	return nil
}

// addFeatures reads the features of n images in parts, if the detector has the sample at a
// position.
func (s *strangeness) addFeatures(n, width, position int, read func(first int, to []float32) error) error {
	member := s.detector.At(position)
	if member < 0 {
		return nil
	}
	for first := 0; first < n; first += featureRows {
		rows := min(featureRows, n-first)
		s.features = slices.Grow(s.features[:0], rows*width)[:rows*width]
		if err := read(first, s.features); err != nil {
			return err
		}
		if err := s.scorer.Add(member, first, s.features); err != nil {
			return err
		}
	}
	return nil
}

// scores returns the scores of predictions.
func (s *strangeness) scores() (evaluate.Strangeness, error) {
	d, err := s.scorer.Scores()
	return evaluate.Strangeness{
		MaxLogit: s.maxLogit, Energy: s.energy,
		ImageStatistics: d.Statistics, Mahalanobis: d.Mahalanobis, RelativeMahalanobis: d.RelativeMahalanobis, Nonconformity: d.Combined,
	}, err
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
	err = r.features(ctx, images, positions, func(_ int, features []float32) error {
		member++
		return scorer.Add(member-1, 0, features)
	})
	if err != nil {
		return nil, err
	}
	scores, err := scorer.Scores()
	return scores.Combined, err
}

// ensembles are the loaded samples of a run. Those whose features a detector needs are members of
// one ensemble, the others of another, which is faster. positions has the positions of their
// members among the samples of the run.
type ensembles struct {
	images    samples.Images        // shape and moments
	extractor *pretrained.Extractor // nil if the network reads images
	detector  *detector.Detector    // nil without one
	shape     detector.Shape
	all       []*samples.EnsemblePredictor
	positions [][]int
	passes    int
	samples   int // without passes
	dirichlet bool
}

// loadEnsembles loads samples. Passes of one sample differ only within an ensemble, so that all
// samples are in one if there are several passes. If dirichlet is true, the ensembles store logits.
func loadEnsembles(device tensor.Device, p parts, batch int, files []rundir.File, d *detector.Detector, shape detector.Shape, passes int, dirichlet bool,
) (e *ensembles, err error) {
	images, network := p.inputs(), p.network
	e = &ensembles{images: p.images, detector: d, shape: shape, passes: passes, samples: len(files), dirichlet: dirichlet}
	if p.frozen != nil {
		e.extractor = p.frozen.Extractor(device, nil)
	}
	var featured, plain []int // positions among the files
	for i := range files {
		if d != nil && (dirichlet || passes > 1 || d.At(i) >= 0) {
			featured = append(featured, i)
		} else {
			plain = append(plain, i)
		}
	}
	load := func(positions []int, open func() (*samples.EnsemblePredictor, error)) {
		if err != nil || len(positions) == 0 {
			return
		}
		var loaded *samples.EnsemblePredictor
		if loaded, err = open(); err != nil {
			return
		}
		e.all, e.positions = append(e.all, loaded), append(e.positions, positions)
		for member, position := range positions {
			// Intact has read the files only if damaged ones may be left out.
			var sample samples.Sample
			if sample, err = files[position].ReadIntact(); err == nil {
				err = errors.Wrap(loaded.Load(member, sample), files[position].Path)
			}
			if err != nil {
				return
			}
		}
	}
	load(featured, func() (*samples.EnsemblePredictor, error) {
		return samples.NewFeatureEnsemble(device, images, batch, predictorBatches*batch, len(featured), network.Apply)
	})
	load(plain, func() (*samples.EnsemblePredictor, error) {
		if dirichlet {
			return samples.NewLogitEnsemble(device, images, batch, predictorBatches*batch, len(plain), network.Apply)
		}
		return samples.NewEnsemblePredictor(device, images, batch, predictorBatches*batch, len(plain), network.Apply)
	})
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// warmUp predicts a black image, so that no later call waits for what is loaded or prepared when it
// is first needed.
func (e *ensembles) warmUp() error {
	black := make([]byte, e.images.Bytes(1))
	if e.extractor != nil { // predict may know the features of black images
		if err := e.extractor.WarmUp(); err != nil {
			return err
		}
	}
	if _, err := e.predict(context.Background(), "a black image", black, 1); !isNotFinite(err) {
		return err
	}
	return nil // finite has checked the samples on other images
}

// predict predicts n images. It adds the samples in the order of the run, since rounding depends on
// the order.
func (e *ensembles) predict(ctx context.Context, name string, pixels []byte, n int) (*evaluate.Predictions, error) {
	inputs, err := e.images, error(nil)
	inputs.Pixels = pixels
	if e.extractor != nil {
		if inputs, err = e.extractor.Extract(ctx, pixels); err != nil {
			return nil, err
		}
	}
	average, err := evaluate.NewPredictive(n, e.all[0].Classes())
	if err != nil {
		return nil, err
	}
	var strange *strangeness
	if e.detector != nil {
		strange = newStrangeness(e.detector, pixels, e.shape)
	}
	type prediction struct {
		probabilities []float32
		weight        float64
	}
	// With two ensembles, predictions arrive in another order than the run's. They wait here,
	// by position, until all of them can be added in that order.
	var waiting []prediction
	if len(e.all) > 1 {
		waiting = make([]prediction, e.samples)
	}
	for i, ensemble := range e.all {
		call := 0
		err := ensemble.Predict(inputs, e.passes, func(probabilities []float32, weight float64) error {
			member := call
			call++
			if featured := ensemble.FeatureCount(); strange != nil && featured > 0 && member < len(e.positions[i]) { // of the first pass
				read := func(first int, to []float32) error { return ensemble.Features(member, first, to) }
				if err := strange.addFeatures(n, featured, e.positions[i][member], read); err != nil {
					return err
				}
			}
			if e.dirichlet { // all samples are in one ensemble
				logits := make([]float32, len(probabilities))
				if err := ensemble.Logits(member, logits); err != nil {
					return err
				}
				return average.AddDirichlet(probabilities, logits, weight)
			}
			if waiting == nil {
				return average.Add(probabilities, weight)
			}
			waiting[e.positions[i][member]] = prediction{slices.Clone(probabilities), weight}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, w := range waiting {
		if err := average.Add(w.probabilities, w.weight); err != nil {
			return nil, err
		}
	}
	predictions := average.Predictions(name, nil)
	if strange != nil {
		predictions.Strangeness, err = strange.scores()
	}
	return predictions, err
}

func (e *ensembles) close() (err error) {
	if e.extractor != nil {
		err = e.extractor.Close()
	}
	for _, ensemble := range e.all {
		err = cmp.Or(err, ensemble.Close())
	}
	return err
}
