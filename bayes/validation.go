package bayes

import (
	"context"
	"os"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// holdOut chooses the images that are not trained on: those that the chains are watched on, evenly
// spaced ones of the validation data, or of the test data if there are none, without their labels,
// and those that they are scored on. There are none to watch for methods that do not sample.
func (t *training) holdOut(splits *datasets.Splits) error {
	t.splits = splits
	if data := toWatch(splits); data != nil && t.kind.traits().tempered {
		pixels, _ := spaced(data, heldOutImages)
		t.watching = new(imagesLike(t.data, pixels))
	}
	return t.chooseValidation(splits)
}

// These limit the number of validation images on which a run is scored: to maxValidation images, to
// validationShare minibatches, so that scores take a few percent of the time of the steps between
// them, and to maxValidationValues probabilities.
const (
	maxValidation       = 500
	validationShare     = 15
	maxValidationValues = 100_000
)

// chooseValidation chooses evenly spaced validation images, on which the chains are scored while
// they train. There are none if the data have none, and for methods that draw their samples at the
// end, such as bbb, whose states are not networks.
func (t *training) chooseValidation(data *datasets.Splits) error {
	d := data.Validation
	if d == nil || d.Len() == 0 || t.kind.traits().drawn {
		return nil
	}
	labels, err := describeData(t.data).relabelled(t.dir, d)
	if err != nil {
		return err
	}
	pixels, numbers := spaced(d, min(maxValidation, max(1, validationShare*t.spec.Batch), max(1, maxValidationValues/t.data.Classes)))
	t.validation = new(imagesLike(t.data, pixels))
	for _, at := range numbers {
		t.labels = append(t.labels, labels.Labels[at])
	}
	return nil
}

// newValidation loads the validation images.
func (t *training) newValidation(ctx context.Context, device tensor.Device) error {
	if t.validation == nil {
		return nil
	}
	images, err := t.features(ctx, device, t.validation.Pixels)
	if err != nil {
		return err
	}
	t.measured.Validation, err = measure.NewValidation(device, images, t.labels, t.parts.network, standardBatch, max(t.spacing(), exactWindow))
	return err
}

// score scores the states of the chains for a line of the metrics and an event. kept reports
// whether they are samples.
func (t *training) score(line *rundir.Metrics, event *Event, states []samples.Sample, kept bool) error {
	s, err := t.measured.Validation.Score(states, line.Step, kept && !t.kind.traits().collected)
	if isNotFinite(err) {
		return nil // a state that is not kept may be of a chain before it has settled
	}
	if err != nil {
		return err
	}
	event.ValidationLoss, event.ValidationAccuracy, event.ValidationNLL, event.AverageAccuracy = s.Loss, s.Accuracy, s.NLL, s.AverageAccuracy
	line.ValidationLoss, line.ValidationAccuracy, line.ValidationNLL = &s.Loss, &s.Accuracy, &s.NLL
	return nil
}

// ValidationTrace has the scores on validation images during training, by the number of steps made.
type ValidationTrace struct {
	Steps               []int
	Loss, Accuracy, NLL []float64 // see Event
}

// ValidationTrace returns the scores on validation images of a run's steps so far; it is empty
// without validation images, and for a gathered run.
func (r *Run) ValidationTrace() (v ValidationTrace, err error) {
	lines, err := rundir.ReadMetrics(r.dir)
	if os.IsNotExist(errors.Cause(err)) {
		return v, nil
	}
	for _, line := range lines {
		if line.ValidationLoss != nil && line.ValidationAccuracy != nil && line.ValidationNLL != nil {
			v.Steps, v.Loss = append(v.Steps, line.Step), append(v.Loss, *line.ValidationLoss)
			v.Accuracy, v.NLL = append(v.Accuracy, *line.ValidationAccuracy), append(v.NLL, *line.ValidationNLL)
		}
	}
	return v, err
}
