package predictive

import (
	"cmp"
	"slices"

	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Ensemble has all samples loaded. It is not safe for concurrent use.
type Ensemble struct {
	model   Model
	members []members
}

// members are samples that are loaded together.
type members struct {
	*samples.EnsemblePredictor
	positions []int // of the members among the samples of the run
}

// Ensemble loads the model's samples. It computes batches of the given size, and capacity images at
// once. inputs has the shape of the network's inputs. read passes the sample at a position on to
// load, and returns its error.
func (m Model) Ensemble(device tensor.Device, inputs samples.Images, batch, capacity int, read func(position int, load func(samples.Sample) error) error,
) (e *Ensemble, err error) {
	// Passes of one sample differ only within an ensemble, so that all samples are in one if there
	// are several passes. So they are for Dirichlet distributions.
	var featured, plain []int
	for i := range m.Samples {
		if m.Detector != nil && (m.Dirichlet || m.Passes > 1 || m.Detector.At(i) >= 0) {
			featured = append(featured, i)
		} else {
			plain = append(plain, i)
		}
	}
	openPlain := samples.NewEnsemblePredictor
	if m.Dirichlet {
		openPlain = samples.NewLogitEnsemble
	}
	e = &Ensemble{model: m}
	for _, group := range []struct {
		positions []int
		open      func(tensor.Device, samples.Images, int, int, int, samples.Network) (*samples.EnsemblePredictor, error)
	}{{featured, samples.NewFeatureEnsemble}, {plain, openPlain}} {
		if len(group.positions) == 0 {
			continue
		}
		loaded, err := group.open(device, inputs, batch, capacity, len(group.positions), m.Apply)
		if err != nil {
			e.Close()
			return nil, err
		}
		e.members = append(e.members, members{loaded, group.positions})
		for member, position := range group.positions {
			if err := read(position, func(s samples.Sample) error { return loaded.Load(member, s) }); err != nil {
				e.Close()
				return nil, err
			}
		}
	}
	return e, nil
}

// Predict predicts images, whose inputs of the network are inputs. name is the name of the data.
func (e *Ensemble) Predict(name string, inputs, images samples.Images) (*evaluate.Predictions, error) {
	average, err := evaluate.NewPredictive(images.Len(), e.members[0].Classes())
	if err != nil {
		return nil, err
	}
	strange := e.model.strangeness(images)
	type prediction struct {
		probabilities []float32
		weight        float64
	}
	// With two ensembles, predictions arrive in another order than the run's. They wait here,
	// by position, until all of them can be added in that order.
	var waiting []prediction
	if len(e.members) > 1 {
		waiting = make([]prediction, e.model.Samples)
	}
	for _, m := range e.members {
		call := 0
		err := m.Predict(inputs, e.model.Passes, func(probabilities []float32, weight float64) error {
			member := call
			call++
			if featured := m.FeatureCount(); strange != nil && featured > 0 && member < len(m.positions) { // of the first pass
				read := func(first int, to []float32) error { return m.Features(member, first, to) }
				if err := strange.addFeatures(images.Len(), featured, m.positions[member], read); err != nil {
					return err
				}
			}
			if e.model.Dirichlet { // all samples are in one ensemble
				logits := make([]float32, len(probabilities))
				if err := m.Logits(member, logits); err != nil {
					return err
				}
				return average.AddDirichlet(probabilities, logits, weight)
			}
			if waiting == nil {
				return average.Add(probabilities, weight)
			}
			waiting[m.positions[member]] = prediction{slices.Clone(probabilities), weight}
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

// Close frees the memory.
func (e *Ensemble) Close() (err error) {
	for _, m := range e.members {
		err = cmp.Or(err, m.Close())
	}
	return err
}
