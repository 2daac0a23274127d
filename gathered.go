package pollen

import (
	"context"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// diagnosticsOf are the diagnostics of runs together, from those that each left: temperatures are
// means over all chains. What needs the traces of all chains is not in them; see Run.Mixing.
func diagnosticsOf(parts []*Run) (*Diagnostics, error) {
	none := Number(math.NaN())
	all := &Diagnostics{WeightRHat: none, LossRHat: none, Swaps: none}
	var total float64
	for i, part := range parts {
		d, err := part.Diagnostics()
		if err != nil {
			return nil, err
		}
		all.Samples += d.Samples
		if i == 0 {
			all.Made, all.From, all.Watched, all.Trace = d.Made, d.From, d.Watched, d.Trace
			all.Temperatures = make([]Temperature, len(d.Temperatures))
		}
		if len(d.Temperatures) != len(all.Temperatures) {
			return nil, errors.Errorf("pollen: %s has temperatures of %d layers, %s of %d", part.folder, len(d.Temperatures), parts[0].folder, len(all.Temperatures))
		}
		all.Made, all.From = min(all.Made, d.Made), max(all.From, d.From)
		share := float64(part.manifest.Spec.Chains * (d.Made - d.From))
		total += share
		for j, t := range d.Temperatures {
			at := &all.Temperatures[j]
			at.Layer, at.Weights = t.Layer, t.Weights
			at.Configurational += Number(share) * t.Configurational
			at.StandardError += Number(share*share) * t.StandardError * t.StandardError
			at.Kinetic += Number(share) * t.Kinetic
			at.Drift += Number(share) * t.Drift
			at.Heating += Number(share) * t.Heating
		}
		all.Acceptance += Number(share) * d.Acceptance
		all.Diverged += Number(share) * d.Diverged
	}
	n := Number(total)
	for j := range all.Temperatures {
		t := &all.Temperatures[j]
		t.Configurational, t.Kinetic, t.Drift, t.Heating = t.Configurational/n, t.Kinetic/n, t.Drift/n, t.Heating/n
		t.StandardError = Number(math.Sqrt(float64(t.StandardError))) / n
	}
	all.Acceptance, all.Diverged = all.Acceptance/n, all.Diverged/n
	return all, nil
}

// Mixing is how well the chains have mixed, those of a gathered run together, in what their samples
// predict for some of the validation images, or of the test images where there are none. It is nil
// without either, for methods that do not sample, and where chains have too few samples for that.
// Chains are cut to the length of the shortest.
func (r *Run) Mixing(ctx context.Context, data *datasets.Splits) (*Mixing, error) {
	heldOut := data.Validation
	if heldOut == nil {
		heldOut = data.Test
	}
	c, err := courseOf(r.manifest.Spec.Method)
	if err != nil || heldOut == nil || !c.traits().tempered {
		return nil, err
	}
	images, err := r.images(heldOut)
	if err != nil {
		return nil, err
	}
	n := min(probeImages, heldOut.Len())
	images.Pixels = nil
	for i := range n {
		images.Pixels = append(images.Pixels, heldOut.Image(i*heldOut.Len()/n)...)
	}
	network, err := r.Network()
	if err != nil {
		return nil, err
	}
	chains := map[string][][]float64{} // by folder and number, of each image
	var names []string
	var classes []int
	err = r.on(func(device tensor.Device) error {
		predictor, err := samples.NewPredictor(device, tensor.Float32, images, n, network.Apply)
		if err != nil {
			return err
		}
		defer predictor.Close()
		k := predictor.Classes()
		probabilities := make([]float32, n*k)
		return r.eachOf(ctx, "mixing", heldOut, func(chain string, sample samples.Sample) error {
			if err := predictor.Predict(sample, probabilities); err != nil {
				return err
			}
			if chains[chain] == nil {
				names, chains[chain] = append(names, chain), make([][]float64, n)
			}
			for i := range n {
				row := probabilities[i*k:][:k]
				if len(classes) == i {
					classes = append(classes, slices.Index(row, slices.Max(row)))
				}
				chains[chain][i] = append(chains[chain][i], float64(row[classes[i]]))
			}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	shortest := math.MaxInt
	for _, chain := range chains {
		shortest = min(shortest, len(chain[0]))
	}
	traces := make([][][]float64, n)
	for i := range traces {
		for _, name := range names {
			traces[i] = append(traces[i], chains[name][i][:shortest])
		}
	}
	return mixingOf(traces), nil
}
