package pollen

import (
	"cmp"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/detector"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/layers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// ensembles are the loaded samples of a run. Those whose features a detector needs are members of
// one ensemble, the others of another, which is faster. positions has the positions of their
// members among the samples of the run.
type ensembles struct {
	detector  *detector.Detector // nil without one
	shape     detector.Shape
	all       []*samples.EnsemblePredictor
	positions [][]int
	passes    int
	samples   int // without passes
}

// loadEnsembles loads samples. Passes of one sample differ only within an ensemble, so that all
// samples are in one if there are several passes.
func loadEnsembles(device tensor.Device, images samples.Images, batch int, files []rundir.File, network layers.Sequential,
	d *detector.Detector, shape detector.Shape, passes int,
) (e *ensembles, err error) {
	e = &ensembles{detector: d, shape: shape, passes: passes, samples: len(files)}
	var featured, plain []int
	for i := range files {
		if d != nil && (passes > 1 || d.At(i) >= 0) {
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
		return samples.NewEnsemblePredictor(device, images, batch, predictorBatches*batch, len(plain), network.Apply)
	})
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// predict predicts n images. The average has the samples in the order of the run, since sums depend
// on it.
func (e *ensembles) predict(name string, pixels []byte, n int) (*evaluate.Predictions, error) {
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
	var waiting []prediction // by position, if there are two ensembles
	if len(e.all) > 1 {
		waiting = make([]prediction, e.samples)
	}
	for i, ensemble := range e.all {
		call := 0
		err := ensemble.Predict(pixels, e.passes, func(probabilities []float32, weight float64) error {
			member := call
			call++
			if featured := ensemble.FeatureCount(); featured > 0 && member < len(e.positions[i]) { // of the first pass
				read := func(first int, to []float32) error { return ensemble.Features(member, first, to) }
				if err := strange.addFeatures(n, featured, e.positions[i][member], read); err != nil {
					return err
				}
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
	for _, ensemble := range e.all {
		err = cmp.Or(err, ensemble.Close())
	}
	return err
}
