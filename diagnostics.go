package pollen

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/tensor"
)

// Diagnostics describe the chains of a run, from its first step on, however often it was resumed;
// of a run that an earlier version began, from where it was resumed. Values that were not measured
// are NaN, null in JSON.
type Diagnostics struct {
	Made    int `json:"made"` // steps
	From    int `json:"from"` // the step that they begin at
	Samples int `json:"samples"`

	Watched string    `json:"watched"` // a weight
	Trace   []float64 `json:"trace"`   // of it in the first chain; at most traceValues, evenly spaced

	Predicted  *Mixing     `json:"predicted,omitempty"` // of held-out images, from looks between samples, too; nil without any
	WeightRHat Number      `json:"weightRHat"`          // split R-hat of the watched weight, in the sampling phase
	LossRHat   Number      `json:"lossRHat"`            // of the minibatch loss, which on minibatches is mostly their noise
	Weights    [][]float64 `json:"weights,omitempty"`   // what the first is of, by chain, evenly spaced: for that of gathered runs
	Losses     [][]float64 `json:"losses,omitempty"`    // what the second is of

	Temperatures []Temperature `json:"temperatures,omitempty"` // of all parameters, then by layer
	Predictions  *Measured     `json:"predictions,omitempty"`  // temperature of what predictions depend on; nil where not measured
	Acceptance   Number        `json:"acceptance"`             // mean acceptance probability
	Diverged     Number        `json:"diverged"`               // share of NUTS' trajectories that did, see mcmc.TraceDiverged
	Swaps        Number        `json:"swaps"`                  // share of swap attempts that succeeded
}

// traceValues bounds the trace that is kept, and chainValues those of each chain.
const (
	traceValues = 10000
	chainValues = 500
)

// Temperature is the temperature of parameters in the sampling phase. Two errors of opposite sign
// meet in the configurational one: the noise of minibatches heats, and while weights grow or
// shrink, a drift of them is in it,
//
//	configurational = kinetic + drift,    drift = - friction d|theta|^2/dt / (2 d)
//
// in units of the step size for d weights, below 0 while they grow. Without velocities T (1 +
// GradientNoise) is in the place of the kinetic one, and the drift as rough as that estimate.
type Temperature struct {
	Layer           string `json:"layer"`           // "all" for all parameters
	Weights         int    `json:"weights"`         // how many there are
	Configurational Number `json:"configurational"` // in equilibrium the requested one
	StandardError   Number `json:"standardError"`   // of that
	Kinetic         Number `json:"kinetic"`         // of velocities, where there are any
	Drift           Number `json:"drift"`           // of the configurational one
	GradientNoise   Number `json:"gradientNoise"`   // by minibatches were nothing done against it, relative to T: an estimate from the last state
}

// Measured is a number with its standard error.
type Measured struct {
	Value         Number `json:"value"`
	StandardError Number `json:"standardError"`
}

// String rounds both to the first digit of the error, as "8 ± 2" or "110 ± 40".
func (m Measured) String() string {
	place := math.Floor(math.Log10(float64(m.StandardError)))
	if math.IsInf(place, 0) || math.IsNaN(place) {
		return fmt.Sprintf("%.3g ± %.3g", float64(m.Value), float64(m.StandardError))
	}
	unit := math.Pow(10, place)
	digits := max(0, -int(place))
	return fmt.Sprintf("%.*f ± %.*f", digits, math.Round(float64(m.Value)/unit)*unit, digits, math.Round(float64(m.StandardError)/unit)*unit)
}

// Number is a float64 that is null in JSON if it is not finite.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if v := float64(n); v-v != 0 {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

// UnmarshalJSON implements json.Unmarshaler.
func (n *Number) UnmarshalJSON(content []byte) error {
	if string(content) == "null" {
		*n = Number(math.NaN())
		return nil
	}
	return json.Unmarshal(content, (*float64)(n))
}

// Diagnostics reads the diagnostics that a finished or stopped run left.
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

// diagnose computes diagnostics from the steps made so far.
func (t *training) diagnose(ctx context.Context, device tensor.Device) (*Diagnostics, error) {
	m := &t.measured
	d := &Diagnostics{
		Made: int(t.session.Steps()), Samples: t.writer.Samples(), Watched: t.manifest.Watched, Trace: thinned(m.trace.values, traceValues),
		Predicted: m.probe.mixing(), LossRHat: Number(t.rHat(valuesOf(m.losses))), WeightRHat: Number(t.rHat(valuesOf(m.weights))),
		Acceptance: Number(m.accepted / m.proposals), Diverged: Number(m.diverged / m.proposals), Swaps: Number(math.NaN()),
	}
	if t.replicas != nil {
		if v, err := t.replicas.AcceptanceRate(t.session); err == nil {
			d.Swaps = Number(v)
		}
	}
	for i := range m.weights {
		if t.kind.traits().tempered {
			d.Weights = append(d.Weights, thinned(m.weights[i].values, chainValues))
			d.Losses = append(d.Losses, thinned(m.losses[i].values, chainValues))
		}
	}
	var err error
	if d.Temperatures, err = t.temperaturesByLayer(device); err != nil {
		return nil, err
	}
	d.Predictions, err = t.predictionTemperature(ctx, device)
	return d, err
}

// temperaturesByLayer are those of all parameters, and then by layer.
func (t *training) temperaturesByLayer(device tensor.Device) ([]Temperature, error) {
	heating, err := t.gradientNoise(device)
	if err != nil {
		return nil, err
	}
	m := t.measured.thermometer
	all := Temperature{
		Layer: "all", Configurational: Number(m.Temperature()), StandardError: Number(m.TemperatureError()), Kinetic: Number(m.KineticTemperature()),
	}
	list := make([]Temperature, 1, 1+len(m.Layers))
	for i, layer := range m.Layers {
		list = append(list, Temperature{
			Layer: layer, Configurational: Number(m.Layer(i)), StandardError: Number(m.LayerError(i)), Kinetic: Number(m.KineticLayer(i)),
		})
	}
	for _, p := range t.session.Program().Parameters() {
		if len(m.Layers) == 0 { // a method without temperatures
			break
		}
		n := p.Shape.Elements()
		for _, of := range []*Temperature{&all, &list[1+slices.Index(m.Layers, langevin.LayerOf(p.Name))]} {
			of.GradientNoise = Number((float64(of.GradientNoise)*float64(of.Weights) + heating[p.Name]*float64(n)) / float64(of.Weights+n))
			of.Weights += n
		}
	}
	list[0] = all
	for i := range list {
		at := &list[i]
		if heating == nil {
			at.GradientNoise = Number(math.NaN())
		}
		equilibrium := at.Kinetic
		if math.IsNaN(float64(equilibrium)) {
			equilibrium = Number(t.spec.temperature()) * (1 + at.GradientNoise)
		}
		at.Drift = at.Configurational - equilibrium
	}
	return list, nil
}

// rHat is the split R-hat of chains; NaN if they are too short to be split, and for methods that do
// not sample.
func (t *training) rHat(chains [][]float64) float64 {
	v, err := diagnostics.SplitRHat(chains)
	if err != nil || !t.kind.traits().tempered {
		return math.NaN()
	}
	return v
}

// thinned is at most about that many values of a trace, evenly spaced.
func thinned(trace []float64, most int) []float64 {
	if len(trace) <= most {
		return trace
	}
	var short []float64
	for at := 0; at < len(trace); at += 1 + len(trace)/most {
		short = append(short, trace[at])
	}
	return short
}

// diagnosticsOf are the diagnostics of runs together, from those that each left: temperatures are
// means over all chains, and R-hat is of all chains, by the values that each run kept of its own:
// NaN if one kept none, as runs of earlier versions. Run.Mixing is how predictions mix.
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
		all.Made, all.From = min(all.Made, d.Made), max(all.From, d.From)
		weights, losses = append(weights, d.Weights...), append(losses, d.Losses...)
		traced = traced && len(d.Weights) > 0 && d.Watched == all.Watched
		share := float64(part.manifest.Spec.Chains * (d.Made - d.From))
		total, shares = total+share, append(shares, share)
		for j, t := range d.Temperatures {
			at := &all.Temperatures[j]
			at.Layer, at.Weights = t.Layer, t.Weights
			layers[j] = append(layers[j], Measured{t.Configurational, t.StandardError})
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
	all.WeightRHat, all.LossRHat = togetherRHat(weights), togetherRHat(losses)
	return all, nil
}

// meanOf is the mean of independent numbers by their shares; nil without any. Its error is the
// larger of that by their own errors and that by their spread, as a thermometer's of chains.
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
	return &Measured{Number(mean), Number(math.Sqrt(within) / total)}
}

// togetherRHat is the split R-hat of chains, cut to the length of the shortest; NaN if that is too
// short.
func togetherRHat(chains [][]float64) Number {
	shortest := math.MaxInt
	for _, chain := range chains {
		shortest = min(shortest, len(chain))
	}
	if len(chains) == 0 {
		return Number(math.NaN())
	}
	var cut [][]float64
	for _, chain := range chains {
		cut = append(cut, chain[:shortest])
	}
	v, err := diagnostics.SplitRHat(cut)
	if err != nil {
		return Number(math.NaN())
	}
	return Number(v)
}
