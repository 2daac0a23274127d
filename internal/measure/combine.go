package measure

import (
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/diagnostics"
)

// Part is a part of a gathered run: its directory, its number of chains, and what was measured.
type Part struct {
	Dir    string
	Chains int
	*diagnostics.Report
}

// Combine combines what was measured of the parts of a gathered run. Temperatures are means over
// all chains, and R-hat compares all chains by the values that each part kept, NaN if one kept
// none. How predictions mix is not combined.
func Combine(parts []Part) (*diagnostics.Report, error) {
	all := &diagnostics.Report{}
	var weights, losses [][]float64
	var halvings []int
	traced := true
	var total float64
	var layers []estimates // configurational temperatures
	var predictions, determination estimates
	for i, d := range parts {
		all.Samples += d.Samples
		if i == 0 {
			all.Made, all.From, all.Watched, all.Trace = d.Made, d.From, d.Watched, d.Trace
			all.Temperatures, layers = make([]diagnostics.Temperature, len(d.Temperatures)), make([]estimates, len(d.Temperatures))
		}
		if len(d.Temperatures) != len(all.Temperatures) {
			return nil, errors.Errorf("pollen: %s has temperatures of %d layers, %s of %d", d.Dir, len(d.Temperatures), parts[0].Dir, len(all.Temperatures))
		}
		// The combined run is as far as its slowest part. Means over parts are weighted by chains
		// times steps.
		all.Made, all.From = min(all.Made, d.Made), max(all.From, d.From)
		weights, losses = append(weights, d.Weights...), append(losses, d.Losses...)
		if halvings = append(halvings, d.Halvings...); d.Halvings == nil {
			halvings = append(halvings, make([]int, d.Chains)...)
		}
		traced = traced && len(d.Weights) > 0 && d.Watched == all.Watched
		share := float64(d.Chains * (d.Made - d.From))
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
	all.WeightRHat, all.LossRHat = RHat(weights), RHat(losses)
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
