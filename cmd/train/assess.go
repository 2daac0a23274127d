package main

import (
	"context"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/langevin"
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

// predict averages the probabilities of all samples of a run, weighted by their step size.
func predict(ctx context.Context, folder string, data *datasets.Dataset, device tensor.Device, c *console) (*prediction, error) {
	manifest, err := readManifest(folder)
	if err != nil {
		return nil, err
	}
	bank, err := langevin.OpenBank(filepath.Join(folder, samplesFolder))
	if err != nil {
		return nil, err
	}
	network, err := manifest.Config.network(manifest.Classes)
	if err != nil {
		return nil, err
	}
	predictor, err := langevin.NewPredictor(device, tensor.Float32, langevin.Images{
		Pixels: data.Images, Channels: data.Channels, Height: data.Height, Width: data.Width,
		Mean: manifest.Mean, Deviation: manifest.Deviation,
	}, predictBatch, network.Apply)
	if err != nil {
		return nil, err
	}
	defer predictor.Close()
	average, err := evaluate.NewPredictive(data.Len(), predictor.Classes())
	if err != nil {
		return nil, err
	}
	files, err := bank.Files()
	if err != nil {
		return nil, err
	}
	probabilities := make([]float32, data.Len()*predictor.Classes())
	shown := c.progress("scores", 0, len(files))
	defer shown.end()
	for i, file := range files {
		if err := ctx.Err(); err != nil {
			return nil, errors.Wrap(err, "train: scores")
		}
		sample, err := langevin.ReadSample(file)
		if err != nil {
			return nil, err
		}
		for range manifest.Config.passes() {
			if err := predictor.Predict(sample, probabilities); err != nil {
				return nil, errors.Wrap(err, file)
			}
			if err := average.Add(probabilities, sample.Weight); err != nil {
				return nil, errors.Wrap(err, file)
			}
		}
		shown.update(i+1, "on "+data.Name)
	}
	return &prediction{data: data, probabilities: average.Mean(), uncertainty: average.Uncertainty(), samples: average.Samples()}, nil
}

// assessment is how a run does on data of the kind it learnt, and on another kind.
type assessment struct {
	in, out   *prediction
	scores    evaluate.Scores
	detection evaluate.Detection
	outMean   float64 // confidence
}

// assess scores a run. Entropy is the score by which the other kind is to be told.
func assess(ctx context.Context, folder string, in, out *datasets.Dataset, device tensor.Device, c *console) (*assessment, error) {
	a := &assessment{}
	var err error
	if a.in, err = predict(ctx, folder, in, device, c); err != nil {
		return nil, err
	}
	if a.scores, err = evaluate.Score(a.in.probabilities, in.Labels, in.Classes); err != nil {
		return nil, err
	}
	if out == nil {
		return a, nil
	}
	if a.out, err = predict(ctx, folder, out, device, c); err != nil {
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
