package main

import (
	"context"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// predictBatch is the batch of predictions: it has no bearing on their values.
const predictBatch = 100

// prediction is the posterior average on one data set.
type prediction struct {
	data          *datasets.Dataset
	probabilities []float64 // [N K]
	uncertainty   evaluate.Uncertainty
	samples       int
}

// sampled is a run that has samples.
type sampled struct {
	*Manifest
	network layers.Sequential
	files   []string // of the samples
}

// openSampled opens a run, and says so if it has not drawn all its samples.
func openSampled(folder string, c *console) (*sampled, error) {
	manifest, err := readManifest(folder)
	if err != nil {
		return nil, err
	}
	bank, err := samples.OpenBank(filepath.Join(folder, samplesFolder))
	if err != nil {
		return nil, err
	}
	network, err := manifest.Config.network(manifest.Classes)
	if err != nil {
		return nil, err
	}
	files, err := bank.Files()
	if err != nil {
		return nil, err
	}
	if manifest.Config.isSampler() {
		plan, _, err := manifest.Config.plan(manifest.Config.Data, manifest.DataSize)
		if err != nil {
			return nil, err
		}
		if all := plan.Samples() * manifest.Config.Chains; len(files) < all {
			c.remark("%s has %d of %d samples: it was not finished", folder, len(files), all)
		}
	}
	return &sampled{manifest, network, files}, nil
}

// images are a data set's as the run's network sees them.
func (r *sampled) images(data *datasets.Dataset) samples.Images {
	return samples.Images{
		Pixels: data.Images, Channels: data.Channels, Height: data.Height, Width: data.Width, Mean: []float64{r.Mean}, Deviation: []float64{r.Deviation},
	}
}

// each hands over all samples, as often as predictions are made with each. What it is for is shown.
func (r *sampled) each(ctx context.Context, what, on string, c *console, use func(samples.Sample) error) error {
	shown := c.progress(what, 0, len(r.files))
	defer shown.end()
	for i, file := range r.files {
		if err := ctx.Err(); err != nil {
			return errors.Wrapf(err, "train: %s", what)
		}
		sample, err := samples.ReadSample(file)
		if err != nil {
			return err
		}
		for range r.Config.passes() {
			if err := use(sample); err != nil {
				return errors.Wrap(err, file)
			}
		}
		shown.update(i+1, on)
	}
	return nil
}

// predict averages the probabilities of all samples of a run, weighted by their step size.
func (r *sampled) predict(ctx context.Context, data *datasets.Dataset, device tensor.Device, c *console) (*prediction, error) {
	predictor, err := samples.NewPredictor(device, tensor.Float32, r.images(data), predictBatch, r.network.Apply)
	if err != nil {
		return nil, err
	}
	defer predictor.Close()
	average, err := evaluate.NewPredictive(data.Len(), predictor.Classes())
	if err != nil {
		return nil, err
	}
	probabilities := make([]float32, data.Len()*predictor.Classes())
	err = r.each(ctx, "scores", "on "+data.Name, c, func(sample samples.Sample) error {
		if err := predictor.Predict(sample, probabilities); err != nil {
			return err
		}
		return average.Add(probabilities, sample.Weight)
	})
	if err != nil {
		return nil, err
	}
	return &prediction{data: data, probabilities: average.Mean(), uncertainty: average.Uncertainty(), samples: average.Samples()}, nil
}

// assessment is how a run does on data of the kind it learnt, and on another kind.
type assessment struct {
	in, out   *prediction
	scores    scores
	detection evaluate.Detection
	outMean   float64 // confidence
}

// assess scores a run. Entropy is the score by which the other kind is to be told.
func assess(ctx context.Context, folder string, in, out *datasets.Dataset, device tensor.Device, c *console) (*assessment, error) {
	a := &assessment{}
	run, err := openSampled(folder, c)
	if err != nil {
		return nil, err
	}
	if a.in, err = run.predict(ctx, in, device, c); err != nil {
		return nil, err
	}
	if a.scores, err = scoreOf(a.in.probabilities, in.Labels, in.Classes); err != nil {
		return nil, err
	}
	if out == nil {
		return a, nil
	}
	if a.out, err = run.predict(ctx, out, device, c); err != nil {
		return nil, err
	}
	if a.detection, err = evaluate.Detect(a.in.uncertainty.Entropy, a.out.uncertainty.Entropy); err != nil {
		return nil, err
	}
	for _, confidence := range a.out.uncertainty.Confidence {
		a.outMean += confidence / float64(out.Len())
	}
	return a, nil
}
