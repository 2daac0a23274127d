package predictive

import (
	"cmp"

	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Average averages the predictions of samples for images, and the scores of a detector.
type Average struct {
	model Model
	// featured predicts with the samples whose features the detector needs, and plain with the
	// others; nil if not used.
	plain, featured *samples.SamplePredictor

	images                int
	average               *evaluate.Predictive
	strange               *strangeness // nil without a detector
	means                 *means       // nil if not asked for
	probabilities, logits []float32    // of one sample; logits is nil except for Dirichlet distributions
}

// Average returns the average of no samples yet for images, whose inputs of the network are inputs,
// and computes batches of the given size. If atMeans is true, it also averages the predictions of
// the networks at the mean weights of each chain's samples.
func (m Model) Average(device tensor.Device, inputs, images samples.Images, batch int, atMeans bool) (a *Average, err error) {
	a = &Average{model: m, images: images.Len()}
	if err := a.load(device, inputs, batch); err != nil {
		a.Close()
		return nil, err
	}
	classes := cmp.Or(a.plain, a.featured).Classes()
	if a.average, err = evaluate.NewPredictive(a.images, classes); err == nil && atMeans {
		a.means, err = newMeans(cmp.Or(a.plain, a.featured), a.images)
	}
	if err != nil {
		a.Close()
		return nil, err
	}
	a.strange = m.strangeness(images)
	a.probabilities = make([]float32, a.images*classes)
	if m.Dirichlet {
		a.logits = make([]float32, len(a.probabilities))
	}
	return a, nil
}

// load loads the predictors. Passes of one sample differ only if one predictor makes all of them.
// For Dirichlet distributions, all predictors store the logits.
func (a *Average) load(device tensor.Device, inputs samples.Images, batch int) (err error) {
	m := &a.model
	if m.Dirichlet && m.Detector == nil {
		a.plain, err = samples.NewLogitPredictor(device, inputs, batch, m.Apply)
		return err
	}
	if m.Detector != nil {
		if a.featured, err = samples.NewFeaturePredictor(device, inputs, batch, m.Apply); err != nil {
			return err
		}
	}
	if m.Detector == nil || !m.Dirichlet && m.Passes == 1 && len(m.Detector.Members) < m.Samples {
		a.plain, err = samples.NewSamplePredictor(device, tensor.Float32, inputs, batch, m.Apply)
	}
	return err
}

// predictor returns the predictor of the sample at a position, and whether it has features that the
// detector needs.
func (a *Average) predictor(position int) (predictor *samples.SamplePredictor, featured bool) {
	featured = a.model.Detector != nil && a.model.Detector.At(position) >= 0
	if featured || a.plain == nil {
		return a.featured, featured
	}
	return a.plain, false
}

// Add adds a pass of a sample; chain identifies its chain. Samples are added in the order of the
// run, and all passes of a sample one after the other. visit, if not nil, is called with the
// probabilities [N K], in a slice that the next pass reuses. A pass whose probabilities are not
// finite is an error, and is not added.
func (a *Average) Add(chain string, sample samples.Sample, visit func(probabilities []float32, weight float64) error) error {
	// The average counts passes, several of which may be of one sample.
	position, pass := a.average.Samples()/a.model.Passes, a.average.Samples()%a.model.Passes
	predictor, featured := a.predictor(position)
	if err := predictor.Predict(sample, a.probabilities); err != nil {
		return err
	}
	if visit != nil {
		if err := visit(a.probabilities, sample.Weight); err != nil {
			return err
		}
	}
	if featured {
		if err := a.strange.add(predictor, a.images, position, pass, sample.Weight); err != nil {
			return err
		}
	}
	if err := a.addTo(predictor, sample.Weight); err != nil {
		return err
	}
	// The means come last: they predict with the same predictor, and only with finite samples.
	if a.means != nil {
		a.means.add(chain, sample)
	}
	return nil
}

// addTo adds the predictor's last pass to the average.
func (a *Average) addTo(predictor *samples.SamplePredictor, weight float64) error {
	if a.logits == nil {
		return a.average.Add(a.probabilities, weight)
	}
	if err := predictor.Logits(a.logits); err != nil {
		return err
	}
	return a.average.AddDirichlet(a.probabilities, a.logits, weight)
}

// Predictions returns the average for the data set called name. It has the scores of the detector
// unless samples were left out: the scores of others are not comparable.
func (a *Average) Predictions(name string, labels []int32) (p *evaluate.Predictions, err error) {
	p = a.average.Predictions(name, labels)
	if a.strange != nil && a.average.Samples() == a.model.Samples*a.model.Passes {
		p.Strangeness, err = a.strange.scores()
	}
	return p, err
}

// AtMeans returns the average of the predictions at the means of the chains, which centre the
// samples of a chain that stays around one mode; nil if it was not asked for or is not finite.
func (a *Average) AtMeans(name string, labels []int32) *evaluate.Predictions {
	if a.means == nil {
		return nil
	}
	return a.means.predictions(name, labels)
}

// Close frees the memory.
func (a *Average) Close() {
	for _, predictor := range []*samples.SamplePredictor{a.plain, a.featured} {
		if predictor != nil {
			predictor.Close()
		}
	}
}
