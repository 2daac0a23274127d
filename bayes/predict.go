package bayes

import (
	"cmp"
	"context"
	"sync"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/predictive"
	"github.com/pollen-ml/pollen/internal/pretrained"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

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

// Assess scores the run on labelled data like those it was trained on and, if other is not nil, how
// well it detects that other is out of distribution. The labels of other are not used. It returns
// the errors of Predict, and an InvalidError if labels are missing or of unknown classes.
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

// Predictor predicts as Run.Predict does, but keeps the network and all samples loaded, as servers
// need, which get many requests for a few images each. Close frees the memory.
type Predictor struct {
	data      Data
	decisions *Decisions
	samples   int // number of samples times passes, as in evaluate.Predictions
	partSize  int // maximum number of images in a part of Answer
	digest    string
	levels    levels        // with which it was loaded
	host      tensor.Device // nil when the device is the caller's

	// mu serializes Answer and Close: an ensemble has one set of activations on the device.
	mu        sync.Mutex
	images    samples.Images        // shape and moments
	extractor *pretrained.Extractor // nil if the network reads images
	ensemble  *predictive.Ensemble  // nil after Close
}

// Predictor loads the run's network and the samples that it has so far. The network computes batch
// images at once: a large batch takes less time for many images, a small one for a single image.
// Memory holds all samples, a batch's activations in each thread, and PartSize images.
//
// On the host, results equal Predict's on a batch of images, bit for bit, and do not depend on the
// other images, except with Monte Carlo dropout, whose passes are random.
func (r *Run) Predictor(batch int) (*Predictor, error) {
	if batch < 1 {
		return nil, invalid("predictor: batch must be at least 1, got %d", batch)
	}
	if err := r.checkLevels(); err != nil {
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
	p := &Predictor{data: r.manifest.Data, levels: r.levels, partSize: predictorBatches * batch, images: parts.images}
	if p.digest, err = r.digestOf(files); err != nil {
		return nil, err
	}
	model, err := r.model(parts, len(files))
	if err != nil {
		return nil, err
	}
	p.samples = len(files) * model.Passes
	calibration, err := r.calibrationIfAny(p.samples)
	if err != nil {
		return nil, err
	}
	if p.decisions, err = r.decisionsBy(calibration); err != nil {
		return nil, err
	}
	if model.Detector == nil {
		p.decisions.InDistributionRate = 0
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
	if parts.frozen != nil {
		p.extractor = parts.frozen.Extractor(device, nil)
	}
	p.ensemble, err = model.Ensemble(device, parts.inputs(), batch, p.partSize, func(i int, load func(samples.Sample) error) error {
		// intactFiles has read the files only if damaged ones may be left out.
		sample, err := files[i].ReadIntact()
		if err != nil {
			return err
		}
		return errors.Wrap(load(sample), files[i].Path)
	})
	if err == nil {
		err = p.warmUp()
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	if p.extractor != nil {
		p.extractor.KeepIn(r.featureDir, r.now, r.remark)
	}
	return p, nil
}

// warmUp predicts a black image, so that no later call waits for what is loaded or prepared when it
// is first needed.
func (p *Predictor) warmUp() error {
	if p.extractor != nil { // predict may know the features of black images
		if err := p.extractor.WarmUp(); err != nil {
			return err
		}
	}
	if _, err := p.predict(context.Background(), make([]byte, p.images.Bytes(1))); !isNotFinite(err) {
		return err
	}
	return nil // finite has checked the samples on other images
}

// predict predicts a part of some images.
func (p *Predictor) predict(ctx context.Context, pixels []byte) (*evaluate.Predictions, error) {
	images := p.images
	images.Pixels = pixels
	inputs := images
	if p.extractor != nil {
		var err error
		if inputs, err = p.extractor.Extract(ctx, pixels); err != nil {
			return nil, err
		}
	}
	return p.ensemble.Predict(p.data.Name, inputs, images)
}

// Answer returns an answer for each of n images, whose pixels are [n C H W] bytes with the size and
// channels of those trained on. It may be called by several goroutines, which wait for each other.
// It splits the images into parts of at most PartSize, and returns the context's error if that ends
// between two parts.
func (p *Predictor) Answer(ctx context.Context, pixels []byte) ([]Answer, error) {
	if err := checkContext(ctx, "answer"); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	size := p.data.Channels * p.data.Height * p.data.Width
	switch {
	case p.ensemble == nil:
		return nil, errors.New("pollen: answer: the predictor is closed")
	case len(pixels) == 0 || len(pixels)%size != 0:
		return nil, invalid("answer: %d bytes are not one or more images of %dx%dx%d", len(pixels), p.data.Channels, p.data.Height, p.data.Width)
	}
	all := make([]Answer, 0, len(pixels)/size)
	for len(pixels) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, errors.Wrap(err, "pollen: answer")
		}
		part := pixels[:min(len(pixels), p.partSize*size)]
		pixels = pixels[len(part):]
		predictions, err := p.predict(ctx, part)
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
// the predictor was loaded. Errors are as for Run.Digest.
func (p *Predictor) Current(run *Run) (bool, error) {
	digest, err := run.Digest()
	return err == nil && digest == p.digest && run.levels == p.levels, err
}

// PartSize returns the number of images that Answer handles together, several batches.
func (p *Predictor) PartSize() int { return p.partSize }

// Decisions returns how answers are decided.
func (p *Predictor) Decisions() *Decisions { return p.decisions }

// Close frees the memory. Answer returns an error afterwards.
func (p *Predictor) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	var err error
	if p.extractor != nil {
		err = p.extractor.Close()
		p.extractor = nil
	}
	if p.ensemble != nil {
		err = cmp.Or(err, p.ensemble.Close())
		p.ensemble = nil
	}
	if p.host != nil {
		err = cmp.Or(err, p.host.Close())
	}
	return err
}
