package export

import (
	"context"
	"fmt"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/memory"
)

// predicted has the predictions of a run for images, by sample.
type predicted struct {
	images *datasets.Dataset // nil without any, as are all predictions
	draws  *bayes.Draws
	passes int
	// probabilities are [S N K]. Each of the S predictions is one pass of one sample.
	probabilities []float32
	weights       []float64 // [S]
	average       *evaluate.Predictions
}

// predict returns the predictions of a run for images. Their labels, if any, become numbers of
// the run's classes.
func predict(ctx context.Context, run *bayes.Run, images *datasets.Dataset) (p *predicted, err error) {
	if images == nil || images.Len() == 0 {
		return nil, invalid("no images to predict")
	}
	var labels []int32
	if images.Labels != nil { // before the predictions, since classes may be unknown
		if labels, err = run.Labels(images); err != nil {
			return nil, err
		}
	}
	if p, err = unpredicted(run); err != nil {
		return nil, err
	}
	p.images = images
	s, k := p.draws.Len()*p.passes, run.Manifest().Data.Classes()
	if err := checkKept(s, images.Len(), k); err != nil {
		return nil, err
	}
	p.probabilities = make([]float32, 0, s*images.Len()*k)
	p.average, err = run.Predictions(ctx, images, func(probabilities []float32, weight float64) error {
		p.probabilities, p.weights = append(p.probabilities, probabilities...), append(p.weights, weight)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(p.weights) != p.draws.Len()*p.passes {
		return nil, invalid("%s got new samples while it was read: try again", run.Dir())
	}
	p.average.Labels = labels
	return p, nil
}

// unpredicted returns the draws of a run, without images and predictions.
func unpredicted(run *bayes.Run) (p *predicted, err error) {
	p = &predicted{}
	if p.draws, err = run.Draws(); err == nil {
		p.passes = p.draws.Passes()
	}
	return p, err
}

// checkKept returns a MemoryError if s predictions for n images and k classes cannot be kept. Those
// for ArviZ also have a label and a likelihood of 8 bytes each.
func checkKept(s, n, k int) error {
	each := int64(4*k + 2*8)
	return memory.Check(fmt.Sprintf("export: keeping %d predictions for each of %d images", s, n), each*int64(s)*int64(n), func(int64) []string {
		return []string{"fewer images", "a run of fewer samples"}
	})
}

// size returns the numbers of predictions by sample, of images and of classes.
func (p *predicted) size() (s, n, k int) { return len(p.weights), p.images.Len(), p.average.Classes }

// place returns the sample of a prediction, its chain, its number in the chain and its step.
func (p *predicted) place(prediction int) (chain, draw, step int) {
	sample := prediction / p.passes
	chain = p.draws.Chain(sample)
	for i := range sample {
		if p.draws.Chain(i) == chain {
			draw++
		}
	}
	return chain, draw*p.passes + prediction%p.passes, p.draws.Step(sample)
}
