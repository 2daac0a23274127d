package bayes

import (
	"cmp"
	"context"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
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
	return r.predictions(ctx, data, visit, nil)
}

// predictions is like Predictions. If means is not nil, it also fills in the predictions at the
// means of the chains.
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
	found, err := r.detectorIfAny(len(files))
	if err != nil {
		return nil, err
	}
	a := averaging{passes: kind.passes(&r.manifest.Spec), images: data.Len(), visit: visit}
	err = r.on(func(device tensor.Device) error {
		if err := r.checkPredictions(device, data.Len(), p, len(files), found != nil); err != nil {
			return err
		}
		inputs, err := r.read(ctx, device, p, data.Name, images.Pixels)
		if err != nil {
			return err
		}
		dirichlet := kind.traits().dirichlet
		if a.predictors, err = newPredictors(device, inputs, p.network, found, len(files), a.passes, dirichlet); err != nil {
			return err
		}
		defer a.predictors.close()
		if a.average, err = evaluate.NewPredictive(data.Len(), a.predictors.classes); err != nil {
			return err
		}
		if found != nil {
			a.strange = newStrangeness(found, images.Pixels, r.detectorShape())
		}
		a.probabilities = make([]float32, data.Len()*a.predictors.classes)
		if dirichlet {
			a.logits = make([]float32, len(a.probabilities))
		}
		if err := means.begin(cmp.Or(a.predictors.plain, a.predictors.featured), data.Len()); err != nil {
			return err
		}
		defer means.end(data)
		return r.eachOf(ctx, "predict", data, func(chain string, sample samples.Sample) error {
			means.add(chain, sample)
			return a.add(sample)
		})
	})
	if err != nil {
		return nil, err
	}
	// Scores are comparable with the calibration's only if they are of the same samples.
	predictions := a.average.Predictions(data.Name, data.Labels)
	if a.strange != nil && a.average.Samples() == len(files)*a.passes { // none was left out
		predictions.Strangeness, err = a.strange.scores()
	}
	return predictions, err
}

// averaging averages the predictions of samples for images, and the scores of a detector.
type averaging struct {
	predictors            *predictors
	passes                int // of each sample
	images                int
	average               *evaluate.Predictive
	strange               *strangeness // nil without a detector
	visit                 func(probabilities []float32, weight float64) error
	probabilities, logits []float32 // of one sample; logits is nil except for Dirichlet distributions
}

// add adds a pass of a sample.
func (a *averaging) add(sample samples.Sample) error {
	// The average counts passes, several of which may be of one sample.
	position, pass := a.average.Samples()/a.passes, a.average.Samples()%a.passes
	predictor, featured := a.predictors.of(position)
	if err := predictor.Predict(sample, a.probabilities); err != nil {
		return err
	}
	if a.visit != nil {
		if err := a.visit(a.probabilities, sample.Weight); err != nil {
			return err
		}
	}
	if featured {
		if err := a.strange.add(predictor, a.images, position, pass, sample.Weight); err != nil {
			return err
		}
	}
	if a.logits == nil {
		return a.average.Add(a.probabilities, sample.Weight)
	}
	if err := predictor.Logits(a.logits); err != nil {
		return err
	}
	return a.average.AddDirichlet(a.probabilities, a.logits, sample.Weight)
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
