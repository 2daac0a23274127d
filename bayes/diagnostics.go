package bayes

import (
	"context"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Diagnostics reads the diagnostics of a run that has finished or was stopped. For a gathered run,
// it combines the diagnostics of the parts. The error's cause is os.ErrNotExist if there are none;
// the error is a DamagedError if the file was changed.
func (r *Run) Diagnostics() (*diagnostics.Report, error) {
	parts, err := r.Parts()
	if err != nil {
		return nil, err
	}
	if parts != nil {
		measured := make([]measure.Part, len(parts))
		for i, part := range parts {
			d, err := part.Diagnostics()
			if err != nil {
				return nil, err
			}
			measured[i] = measure.Part{Dir: part.dir, Chains: part.manifest.Spec.Chains, Report: d}
		}
		return measure.Combine(measured)
	}
	return rundir.ReadFile[diagnostics.Report](r.dir, rundir.DiagnosticsFile)
}

// heldOutImages is the maximum number of held-out images on which chains are watched.
const heldOutImages = 50

// toWatch returns the validation data, or the test data if there are none; nil without either.
func toWatch(splits *datasets.Splits) *datasets.Dataset {
	if splits == nil {
		return nil
	}
	for _, data := range []*datasets.Dataset{splits.Validation, splits.Test} {
		if data != nil && data.Len() > 0 {
			return data
		}
	}
	return nil
}

// spaced returns the pixels of at most n images of a data set, evenly spaced, and their numbers.
func spaced(data *datasets.Dataset, n int) (pixels []byte, numbers []int) {
	n = min(n, data.Len())
	for i := range n {
		at := i * data.Len() / n
		pixels, numbers = append(pixels, data.Image(at)...), append(numbers, at)
	}
	return pixels, numbers
}

// Mixing returns how well the chains have mixed in what their samples predict for some of the
// validation images, or of the test images if there are none. For a gathered run, it takes all
// chains together. It is nil without such images, for methods that do not sample, and if chains
// have too few samples. Chains are cut to the length of the shortest.
func (r *Run) Mixing(ctx context.Context, data *datasets.Splits) (*diagnostics.Mixing, error) {
	if err := checkContext(ctx, "mixing"); err != nil {
		return nil, err
	}
	heldOut := toWatch(data)
	if heldOut == nil || !r.manifest.kind().traits().tempered {
		return nil, nil
	}
	images, err := r.images(heldOut)
	if err != nil {
		return nil, err
	}
	images.Pixels, _ = spaced(heldOut, heldOutImages)
	p, err := r.parts()
	if err != nil {
		return nil, err
	}
	traces := measure.NewClassTraces(images.Len())
	err = r.on(func(device tensor.Device) error {
		inputs, err := r.read(ctx, device, p, r.manifest.Data.Name, images.Pixels)
		if err != nil {
			return err
		}
		predictor, err := samples.NewSamplePredictor(device, tensor.Float32, inputs, images.Len(), p.network.Apply)
		if err != nil {
			return err
		}
		defer predictor.Close()
		probabilities := make([]float32, images.Len()*predictor.Classes())
		return r.each(ctx, "mixing", heldOut, func(chain string, sample samples.Sample) error {
			if err := predictor.Predict(sample, probabilities); err != nil {
				return err
			}
			traces.Add(chain, probabilities)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return traces.Mixing(), nil
}
