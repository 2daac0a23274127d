package bayes

import (
	"context"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/predictive"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Predictions returns the posterior predictive on a data set: probabilities averaged over all
// samples by Spec.Weights,
//
//	p(y | x) = sum_s w_s p(y | x, theta_s) / sum_s w_s.
//
// visit, if not nil, is called with the probabilities [N K] and the weight of each sample; the
// slice is reused for the next sample. The errors are as for Predict.
func (r *Run) Predictions(ctx context.Context, data *datasets.Dataset, visit func(probabilities []float32, weight float64) error,
) (*evaluate.Predictions, error) {
	p, _, err := r.predictions(ctx, data, visit, false)
	return p, err
}

// predictions is like Predictions. If withMeans is true, it also returns the predictions at the
// means of the chains; nil if they are not finite.
func (r *Run) predictions(ctx context.Context, data *datasets.Dataset, visit func(probabilities []float32, weight float64) error, withMeans bool,
) (average, atMeans *evaluate.Predictions, err error) {
	if err := checkContext(ctx, "predict"); err != nil {
		return nil, nil, err
	}
	images, err := r.images(data)
	if err != nil {
		return nil, nil, err
	}
	p, err := r.parts()
	if err != nil {
		return nil, nil, err
	}
	files, err := r.intactFiles("predict")
	if err != nil {
		return nil, nil, err
	}
	model, err := r.model(p, len(files))
	if err != nil {
		return nil, nil, err
	}
	err = r.on(func(device tensor.Device) error {
		if err := r.checkPredictions(device, data.Len(), p, len(files), model.Detector != nil); err != nil {
			return err
		}
		inputs, err := r.read(ctx, device, p, data.Name, images.Pixels)
		if err != nil {
			return err
		}
		a, err := model.Average(device, inputs, images, predictBatch, withMeans)
		if err != nil {
			return err
		}
		defer a.Close()
		err = r.each(ctx, "predict", data, func(chain string, sample samples.Sample) error { return a.Add(chain, sample, visit) })
		if err != nil {
			return err
		}
		atMeans = a.AtMeans(data.Name, data.Labels)
		average, err = a.Predictions(data.Name, data.Labels)
		return err
	})
	return average, atMeans, err
}

// model returns what predicts with a number of samples.
func (r *Run) model(p parts, files int) (predictive.Model, error) {
	d, err := r.detectorIfAny(files)
	return predictive.Model{
		Apply: p.network.Apply, Samples: files, Passes: r.passes(), Dirichlet: r.manifest.kind().traits().dirichlet, Detector: d,
	}, err
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
		if err := r.each(ctx, "gradient", data, func(_ string, sample samples.Sample) error { return g.Add(sample) }); err != nil {
			return err
		}
		gradient = g.Gradient()
		return nil
	})
	return gradient, err
}
