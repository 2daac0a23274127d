package pollen

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// The types of numbers in Diagnostics.
type (
	// Number is a float64 that is null in JSON if it is not finite.
	Number = diagnostics.Number
	// Measured is an estimate with its standard error.
	Measured = diagnostics.Measured
	// Temperature is the temperature of the weights of a layer in the sampling phase.
	Temperature = diagnostics.Temperature
	// Mixing describes how well chains have mixed in what they predict.
	Mixing = diagnostics.Mixing
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

	// WarmStart is where the chains began; nil without a warm start, and of a gathered run.
	WarmStart *WarmStart `json:"warmStart,omitempty"`

	// Predicted is how the chains mix in what they predict for held-out images, by states between
	// samples, too; nil without held-out images.
	Predicted *Mixing `json:"predicted,omitempty"`

	// WeightRHat is split R-hat of the watched weight in the sampling phase, near 1 if the chains
	// agree. LossRHat is that of the loss, which on minibatches is mostly their noise, and so near
	// 1 even for chains that do not agree.
	WeightRHat Number `json:"weightRHat"`
	LossRHat   Number `json:"lossRHat"`

	// Weights and Losses are values of the watched weight and of the loss, by chain, evenly spaced,
	// from which the R-hat of a gathered run is computed.
	Weights [][]float64 `json:"weights,omitempty"`
	Losses  [][]float64 `json:"losses,omitempty"`

	// Temperatures are those of all weights, then by layer.
	Temperatures []Temperature `json:"temperatures,omitempty"`
	// Predictions is the temperature of what predictions depend on; nil if it was not measured.
	Predictions *Measured `json:"predictions,omitempty"`
	// Acceptance is the mean acceptance probability of a Metropolis test.
	Acceptance Number `json:"acceptance"`
	// Diverged is the fraction of NUTS' trajectories that diverged, see mcmc.TraceDiverged.
	Diverged Number `json:"diverged"`
	// Swaps is the fraction of replica exchange's swap attempts that succeeded.
	Swaps Number `json:"swaps"`
}

// Diagnostics reads the diagnostics of a run that has finished or was stopped; of a gathered run,
// it combines those of its parts. The error's cause is os.ErrNotExist if there are none, and the
// error is DamagedError if they were changed.
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

// heldOutImages is how many held-out images chains are watched on.
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
// validation images, or of the test images if there are none; of a gathered run, all chains
// together. It is nil without such images, for methods that do not sample, and if chains have too
// few samples. Chains are cut to the length of the shortest.
func (r *Run) Mixing(ctx context.Context, data *datasets.Splits) (*Mixing, error) {
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
	n := images.Len()
	p, err := r.parts()
	if err != nil {
		return nil, err
	}
	chains := map[string][][]float64{} // by directory and number, for each image
	var names []string
	var classes []int
	err = r.on(func(device tensor.Device) error {
		inputs, err := r.inputs(ctx, device, p, images)
		if err != nil {
			return err
		}
		predictor, err := samples.NewSamplePredictor(device, tensor.Float32, inputs, n, p.network.Apply)
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
				// The traced quantity is the probability of the class that the very first sample
				// predicts: it must be the same class for all samples and chains.
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
	return measure.Mixing(traces), nil
}

// diagnosticsOf combines the diagnostics of the parts of a gathered run. Temperatures are means
// over all chains, and R-hat is that of all chains by the values that each part kept, NaN if one
// kept none. How predictions mix is not combined, see Run.Mixing.
func diagnosticsOf(parts []*Run) (*Diagnostics, error) {
	all := &Diagnostics{}
	var weights, losses [][]float64
	traced := true
	var total float64
	var shares, sharesOfPredictions []float64
	var layers [][]Measured // configurational temperatures, by layer and part
	var predictions []Measured
	for i, part := range parts {
		d, err := part.Diagnostics()
		if err != nil {
			return nil, err
		}
		all.Samples += d.Samples
		if i == 0 {
			all.Made, all.From, all.Watched, all.Trace = d.Made, d.From, d.Watched, d.Trace
			all.Temperatures, layers = make([]Temperature, len(d.Temperatures)), make([][]Measured, len(d.Temperatures))
		}
		if len(d.Temperatures) != len(all.Temperatures) {
			return nil, errors.Errorf("pollen: %s has temperatures of %d layers, %s of %d", part.dir, len(d.Temperatures), parts[0].dir, len(all.Temperatures))
		}
		// The combined run is as far as its slowest part. Means over parts are weighted by chains
		// times steps.
		all.Made, all.From = min(all.Made, d.Made), max(all.From, d.From)
		weights, losses = append(weights, d.Weights...), append(losses, d.Losses...)
		traced = traced && len(d.Weights) > 0 && d.Watched == all.Watched
		share := float64(part.manifest.Spec.Chains * (d.Made - d.From))
		total, shares = total+share, append(shares, share)
		for j, t := range d.Temperatures {
			at := &all.Temperatures[j]
			at.Layer, at.Weights = t.Layer, t.Weights
			layers[j] = append(layers[j], Measured{Value: t.Configurational, StandardError: t.StandardError})
			at.Kinetic += Number(share) * t.Kinetic
			at.Drift += Number(share) * t.Drift
			at.GradientNoise += Number(share) * t.GradientNoise
		}
		if d.Predictions != nil {
			predictions, sharesOfPredictions = append(predictions, *d.Predictions), append(sharesOfPredictions, share)
		}
		all.Acceptance += Number(share) * d.Acceptance
		all.Diverged += Number(share) * d.Diverged
		all.Swaps += Number(share) * d.Swaps
	}
	n := Number(total)
	for j := range all.Temperatures {
		t := &all.Temperatures[j]
		t.Kinetic, t.Drift, t.GradientNoise = t.Kinetic/n, t.Drift/n, t.GradientNoise/n
		mean := meanOf(layers[j], shares)
		t.Configurational, t.StandardError = mean.Value, mean.StandardError
	}
	all.Acceptance, all.Diverged, all.Swaps = all.Acceptance/n, all.Diverged/n, all.Swaps/n
	if !traced {
		weights, losses = nil, nil
	}
	all.Predictions = meanOf(predictions, sharesOfPredictions)
	all.WeightRHat, all.LossRHat = measure.RHat(weights), measure.RHat(losses)
	return all, nil
}

// meanOf returns the mean of independent estimates, weighted by shares; nil without any. Its error
// is the larger of two: that by their own errors and that by their spread, as a thermometer's of
// chains.
func meanOf(measured []Measured, shares []float64) *Measured {
	if len(measured) == 0 {
		return nil
	}
	total, mean, within, between := 0.0, 0.0, 0.0, 0.0
	for i, m := range measured {
		total += shares[i]
		mean += shares[i] * float64(m.Value)
		within += math.Pow(shares[i]*float64(m.StandardError), 2)
	}
	mean /= total
	for i, m := range measured {
		between += math.Pow(shares[i]*(float64(m.Value)-mean), 2)
	}
	if n := float64(len(measured)); n > 1 && !(within > between*n/(n-1)) { // or NaN, of a run too short for one
		within = between * n / (n - 1)
	}
	return &Measured{Value: Number(mean), StandardError: Number(math.Sqrt(within) / total)}
}

// equilibriumTolerance is the largest relative difference between a temperature and the requested
// one in equilibrium, and the largest relative standard error with which that can be decided.
// Differences below clearErrors standard errors do not count.
const (
	equilibriumTolerance = 0.05
	clearErrors          = 2
)

// Equilibrium describes how many of the weights are in equilibrium at the requested temperature,
// within 5 % of it or two standard errors, what keeps the others from it, and the temperature of
// what predictions depend on, if it was measured. It also reports whether all weights are. The
// verdict is "" if no temperature was measured.
func (d *Diagnostics) Equilibrium(temperature float64) (verdict string, all bool) {
	if temperature == 0 || len(d.Temperatures) < 2 { // there is no equilibrium at temperature 0
		return "", false
	}
	states, weights, total := d.byState(temperature)
	if total == 0 { // a layer was not measured
		return "", false
	}
	layers := d.Temperatures[1:]
	// Rounded down, so that "100 %" means all.
	share := math.Floor(100 * float64(weights[balanced]) / float64(total))
	verdict = fmt.Sprintf("%.0f %% of the weights are in equilibrium, within %g %% of T = %g", share, 100*equilibriumTolerance, temperature)
	last := layers[len(layers)-1].Layer
	for _, s := range []struct {
		state state
		text  string
		scale string // where it is the last layer, whose weights scale the logits
	}{
		{growing, "still growing", "the scale of the logits still grows"},
		{shrinking, "still shrinking", "the scale of the logits still shrinks"},
		{heated, "heated by the noise of minibatches", ""},
		{vague, "in too short a run to tell", ""},
	} {
		if names := states[s.state]; len(names) > 0 {
			verdict += fmt.Sprintf("; %s: %s", s.text, listed(names))
			if s.scale != "" && slices.Contains(names, last) {
				verdict += " (" + s.scale + ")"
			}
		}
	}
	if p := d.Predictions; p != nil {
		verdict += "; what predictions depend on is at T = " + p.String()
	}
	return verdict + ".", weights[balanced] == total
}

// byState returns the layers by their states, and the numbers of weights by state and in total,
// which is 0 if a layer was not measured.
func (d *Diagnostics) byState(temperature float64) (layers map[state][]string, weights map[state]int, total int) {
	layers, weights = map[state][]string{}, map[state]int{}
	for _, t := range d.Temperatures[1:] {
		s := stateOf(t, temperature)
		if s == unmeasured {
			return nil, nil, 0
		}
		layers[s], weights[s] = append(layers[s], t.Layer), weights[s]+t.Weights
		total += t.Weights
	}
	return layers, weights, total
}

// listed returns the names of a few layers and the number of the others.
func listed(names []string) string {
	const most, few = 8, 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d other layers", strings.Join(names[:few], ", "), len(names)-few)
}

// state is the state of a layer, by its temperatures.
type state int

// The states.
const (
	unmeasured state = iota
	balanced
	growing
	shrinking
	heated
	vague
)

// stateOf returns the state of a layer. It uses the kinetic temperature, too, which is exact far
// sooner than the configurational one.
//
// The cases are in the order of certainty. Colder than requested is a weight that still grows from
// its small initial value. Hotter has two causes: the noise of minibatches, if the kinetic
// temperature, too, is out of tolerance or has more than half of the excess, and otherwise a weight
// that still shrinks. If the standard error exceeds the tolerance, nothing can be decided.
func stateOf(t Temperature, requested float64) state {
	off, tolerance := float64(t.Configurational)-requested, equilibriumTolerance*requested
	hot := float64(t.Kinetic) - requested
	if math.IsNaN(float64(t.Kinetic)) {
		hot = float64(t.GradientNoise) * requested
	}
	clear := math.Abs(off) > tolerance && !(math.Abs(off) <= clearErrors*float64(t.StandardError))
	switch {
	case math.IsNaN(float64(t.Configurational)):
		return unmeasured
	case clear && off < 0:
		return growing
	case hot > tolerance || clear && hot > off/2:
		return heated
	case clear:
		return shrinking
	case !(float64(t.StandardError) <= tolerance):
		return vague
	}
	return balanced
}
