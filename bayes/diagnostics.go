package bayes

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// Diagnostics describe the chains of a run, from its first step on, however often it was resumed.
// Values that were not measured are NaN, null in JSON.
type Diagnostics struct {
	// Made is the number of steps made, From the step at which the diagnostics begin, 0, and
	// Samples the number of samples of all chains.
	Made    int `json:"made"`
	From    int `json:"from"`
	Samples int `json:"samples"`

	// Watched is the weight whose trace is recorded, and Trace its values in the first chain, at
	// evenly spaced steps.
	Watched string    `json:"watched"`
	Trace   []float64 `json:"trace"`

	// WarmStart is where the chains began; nil without a warm start, and for a gathered run.
	WarmStart *WarmStart `json:"warmStart,omitempty"`

	// Halvings has the number of times that each chain was trained again, at half its learning rate
	// each time, because it diverged; nil if none was. Chains that sample are never trained again,
	// see WarmStart.
	Halvings []int `json:"halvings,omitempty"`

	// Predicted describes how well the chains mix in their predictions for held-out images,
	// measured also at states between samples; nil without held-out images.
	Predicted *diagnostics.Mixing `json:"predicted,omitempty"`

	// WeightRHat is split R-hat of the watched weight in the sampling phase, near 1 if the chains
	// agree. LossRHat is split R-hat of the loss. On minibatches the loss is mostly their noise, so
	// that LossRHat is near 1 even for chains that do not agree.
	WeightRHat diagnostics.Number `json:"weightRHat"`
	LossRHat   diagnostics.Number `json:"lossRHat"`

	// Weights and Losses are values of the watched weight and of the loss, by chain, evenly spaced,
	// from which the R-hat of a gathered run is computed.
	Weights [][]float64 `json:"weights,omitempty"`
	Losses  [][]float64 `json:"losses,omitempty"`

	// Temperatures has the temperature of all weights, and then of each layer.
	Temperatures []diagnostics.Temperature `json:"temperatures,omitempty"`
	// Predictions is the temperature of the directions of weight space that predictions depend on,
	// weighted by their curvature lambda. It serves as an alarm, which the few steepest directions
	// decide. Determination weights each direction by lambda/(lambda + prior) instead, so that each
	// direction that the data determine counts once, as in the spread of predictions. They are nil
	// if they were not measured, the latter also for networks of more than a million weights.
	Predictions   *diagnostics.Measured `json:"predictions,omitempty"`
	Determination *diagnostics.Measured `json:"determination,omitempty"`
	// Acceptance is the mean acceptance probability of a Metropolis test.
	Acceptance diagnostics.Number `json:"acceptance"`
	// Diverged is the fraction of NUTS' trajectories that diverged, see mcmc.TraceDiverged.
	Diverged diagnostics.Number `json:"diverged"`
	// Swaps is the fraction of replica exchange's swap attempts that succeeded.
	Swaps diagnostics.Number `json:"swaps"`
}

// WarmStart is where the chains of a run began after its warm start, see Spec.WarmStart.
type WarmStart struct {
	// HeldOut is the number of training images held out, whose loss stopped the optimizer.
	HeldOut int `json:"heldOut"`
	// Epochs is the number of epochs that the optimizer made.
	Epochs int `json:"epochs"`
	// Epoch has, for each chain, the epoch with the best weights, where it began to sample; 0 means
	// initial values. Loss and Accuracy are the scores of these weights on the images held out.
	Epoch    []int                `json:"epoch"`
	Loss     []diagnostics.Number `json:"loss"`
	Accuracy []diagnostics.Number `json:"accuracy"`
	// Halvings has the number of times that the learning rate of each chain was halved because it
	// diverged, in the warm start or where a cycle explored.
	Halvings []int `json:"halvings"`
	// Losses has, for each chain, the losses at its initial values and after each epoch, until it
	// had not improved for Spec.WarmPatience epochs.
	Losses [][]diagnostics.Number `json:"losses"`
}

// String describes the warm start in a sentence.
func (w *WarmStart) String() string {
	var loss, accuracy float64
	for i := range w.Epoch {
		loss += float64(w.Loss[i]) / float64(len(w.Epoch))
		accuracy += float64(w.Accuracy[i]) / float64(len(w.Epoch))
	}
	after := fmt.Sprintf("epoch %d", w.Epoch[0])
	if least, most := slices.Min(w.Epoch), slices.Max(w.Epoch); least < most {
		after = fmt.Sprintf("epochs %d to %d", least, most)
	}
	return fmt.Sprintf("warm start: the chains begin where %d epochs of the optimizer were best, after %s: "+
		"loss %.3f, accuracy %.3f on %d training images held out", w.Epochs, after, loss, accuracy, w.HeldOut)
}

// Outlier is a chain whose loss in the sampling phase is far above the others', so that its samples
// spoil the average.
type Outlier struct {
	Chain        int     // its index in Diagnostics.Losses
	Loss, Median float64 // the chain's mean loss, and the median of these over the chains
}

// Outliers returns the chains whose loss is more than twice the median over the chains, and more
// than half a nat above it.
func (d *Diagnostics) Outliers() (all []Outlier) {
	losses := make([]float64, len(d.Losses))
	for i, values := range d.Losses {
		losses[i] = stat.Mean(values, nil)
	}
	chains, median := outliers(losses)
	for _, i := range chains {
		all = append(all, Outlier{i, losses[i], median})
	}
	return all
}

// outliers returns the indices of losses that are far above the others, as Outliers does, and the
// median: the lower of the middle two if the number of losses is even.
func outliers(losses []float64) (chains []int, median float64) {
	const factor, nats = 2, 0.5
	if len(losses) == 0 {
		return nil, math.NaN()
	}
	median = slices.Sorted(slices.Values(losses))[(len(losses)-1)/2]
	for i, loss := range losses {
		if loss > max(factor*median, median+nats) {
			chains = append(chains, i)
		}
	}
	return chains, median
}

// Diagnostics reads the diagnostics of a run that has finished or was stopped. For a gathered run,
// it combines the diagnostics of the parts. The error's cause is os.ErrNotExist if there are none;
// the error is a DamagedError if the file was changed.
func (r *Run) Diagnostics() (*Diagnostics, error) {
	parts, err := r.Parts()
	if err != nil {
		return nil, err
	}
	if parts != nil {
		return diagnosticsOf(parts)
	}
	d := &Diagnostics{}
	if err := rundir.ReadFile(r.dir, rundir.DiagnosticsFile, d); err != nil {
		return nil, err
	}
	return d, nil
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

// spaced returns the pixels of some images of a data set, evenly spaced.
func spaced(data *datasets.Dataset) (pixels []byte) {
	n := min(heldOutImages, data.Len())
	for i := range n {
		pixels = append(pixels, data.Image(i*data.Len()/n)...)
	}
	return pixels
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
	c, err := kindOf(r.manifest.Spec.Method)
	if err != nil || heldOut == nil || !c.traits().tempered {
		return nil, err
	}
	images, err := r.images(heldOut)
	if err != nil {
		return nil, err
	}
	images.Pixels = spaced(heldOut)
	p, err := r.parts()
	if err != nil {
		return nil, err
	}
	traces := classTraces{images: images.Len(), chains: map[string][][]float64{}}
	err = r.on(func(device tensor.Device) error {
		inputs, err := r.read(ctx, device, p, r.manifest.Data.Name, images.Pixels)
		if err != nil {
			return err
		}
		predictor, err := samples.NewSamplePredictor(device, tensor.Float32, inputs, traces.images, p.network.Apply)
		if err != nil {
			return err
		}
		defer predictor.Close()
		probabilities := make([]float32, traces.images*predictor.Classes())
		return r.eachOf(ctx, "mixing", heldOut, func(chain string, sample samples.Sample) error {
			if err := predictor.Predict(sample, probabilities); err != nil {
				return err
			}
			traces.add(chain, probabilities)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return measure.Mixing(traces.byImage()), nil
}

// classTraces are the probabilities of one class of each image, by chain.
type classTraces struct {
	images  int
	chains  map[string][][]float64 // by directory and number, for each image
	names   []string               // of the chains, in the order in which they were added
	classes []int                  // of the images
}

// add adds the probabilities that a sample of a chain predicts.
func (t *classTraces) add(chain string, probabilities []float32) {
	if t.chains[chain] == nil {
		t.names, t.chains[chain] = append(t.names, chain), make([][]float64, t.images)
	}
	k := len(probabilities) / t.images
	for i := range t.images {
		row := probabilities[i*k:][:k]
		// The traced quantity is the probability of the class that the very first sample
		// predicts: it must be the same class for all samples and chains.
		if len(t.classes) == i {
			t.classes = append(t.classes, slices.Index(row, slices.Max(row)))
		}
		t.chains[chain][i] = append(t.chains[chain][i], float64(row[t.classes[i]]))
	}
}

// byImage returns the traces of each image by chain, cut to the length of the shortest.
func (t *classTraces) byImage() [][][]float64 {
	shortest := math.MaxInt
	for _, chain := range t.chains {
		shortest = min(shortest, len(chain[0]))
	}
	traces := make([][][]float64, t.images)
	for i := range traces {
		for _, name := range t.names {
			traces[i] = append(traces[i], t.chains[name][i][:shortest])
		}
	}
	return traces
}

// diagnosticsOf combines the diagnostics of the parts of a gathered run. Temperatures are means
// over all chains, and R-hat compares all chains by the values that each part kept, NaN if one kept
// none. How predictions mix is not combined, see Run.Mixing.
func diagnosticsOf(parts []*Run) (*Diagnostics, error) {
	all := &Diagnostics{}
	var weights, losses [][]float64
	var halvings []int
	traced := true
	var total float64
	var layers []estimates // configurational temperatures
	var predictions, determination estimates
	for i, part := range parts {
		d, err := part.Diagnostics()
		if err != nil {
			return nil, err
		}
		all.Samples += d.Samples
		if i == 0 {
			all.Made, all.From, all.Watched, all.Trace = d.Made, d.From, d.Watched, d.Trace
			all.Temperatures, layers = make([]diagnostics.Temperature, len(d.Temperatures)), make([]estimates, len(d.Temperatures))
		}
		if len(d.Temperatures) != len(all.Temperatures) {
			return nil, errors.Errorf("pollen: %s has temperatures of %d layers, %s of %d", part.dir, len(d.Temperatures), parts[0].dir, len(all.Temperatures))
		}
		// The combined run is as far as its slowest part. Means over parts are weighted by chains
		// times steps.
		all.Made, all.From = min(all.Made, d.Made), max(all.From, d.From)
		weights, losses = append(weights, d.Weights...), append(losses, d.Losses...)
		if halvings = append(halvings, d.Halvings...); d.Halvings == nil {
			halvings = append(halvings, make([]int, part.manifest.Spec.Chains)...)
		}
		traced = traced && len(d.Weights) > 0 && d.Watched == all.Watched
		share := float64(part.manifest.Spec.Chains * (d.Made - d.From))
		total += share
		for j, t := range d.Temperatures {
			at := &all.Temperatures[j]
			at.Layer, at.Weights = t.Layer, t.Weights
			layers[j].add(&diagnostics.Measured{Value: t.Configurational, StandardError: t.StandardError}, share)
			at.Kinetic += diagnostics.Number(share) * t.Kinetic
			at.Drift += diagnostics.Number(share) * t.Drift
			at.GradientNoise += diagnostics.Number(share) * t.GradientNoise
		}
		predictions.add(d.Predictions, share)
		determination.add(d.Determination, share)
		all.Acceptance += diagnostics.Number(share) * d.Acceptance
		all.Diverged += diagnostics.Number(share) * d.Diverged
		all.Swaps += diagnostics.Number(share) * d.Swaps
	}
	n := diagnostics.Number(total)
	for j := range all.Temperatures {
		t := &all.Temperatures[j]
		t.Kinetic, t.Drift, t.GradientNoise = t.Kinetic/n, t.Drift/n, t.GradientNoise/n
		mean := layers[j].mean()
		t.Configurational, t.StandardError = mean.Value, mean.StandardError
	}
	all.Acceptance, all.Diverged, all.Swaps = all.Acceptance/n, all.Diverged/n, all.Swaps/n
	if !traced {
		weights, losses = nil, nil
	}
	if slices.Max(halvings) > 0 {
		all.Halvings = halvings
	}
	all.Predictions, all.Determination = predictions.mean(), determination.mean()
	all.WeightRHat, all.LossRHat = measure.RHat(weights), measure.RHat(losses)
	return all, nil
}

// estimates are independent estimates of one quantity, each with its share of their mean.
type estimates []estimate

type estimate struct {
	diagnostics.Measured
	share float64
}

// add adds an estimate, unless it is nil.
func (e *estimates) add(m *diagnostics.Measured, share float64) {
	if m != nil {
		*e = append(*e, estimate{*m, share})
	}
}

// mean returns the weighted mean; nil without estimates. Its standard error is the larger of two,
// one from their own errors and one from their spread, as for the chains of a
// diagnostics.Thermometer.
func (e estimates) mean() *diagnostics.Measured {
	if len(e) == 0 {
		return nil
	}
	total, mean, within, between := 0.0, 0.0, 0.0, 0.0
	groups := 0
	for _, m := range e {
		groups += m.Groups
		total += m.share
		mean += m.share * float64(m.Value)
		within += math.Pow(m.share*float64(m.StandardError), 2)
	}
	mean /= total
	for _, m := range e {
		between += math.Pow(m.share*(float64(m.Value)-mean), 2)
	}
	if n := float64(len(e)); n > 1 && !(within > between*n/(n-1)) { // or NaN, of a run too short for one
		within, groups = between*n/(n-1), len(e)
	}
	return &diagnostics.Measured{Value: diagnostics.Number(mean), StandardError: diagnostics.Number(math.Sqrt(within) / total), Groups: groups}
}
