package diagnostics_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/diagnostics"
)

func TestVerdictInWords(t *testing.T) {
	none := diagnostics.Number(math.NaN())
	of := func(layer string, weights int, temperature, standardError, kinetic, heating diagnostics.Number) diagnostics.Temperature {
		return diagnostics.Temperature{
			Layer: layer, Weights: weights, Configurational: temperature, StandardError: standardError, Kinetic: kinetic, GradientNoise: heating,
		}
	}
	mixed := &diagnostics.Mixing{Chains: 2, RHat: 1.049, BulkESS: 30}
	const beginning = "split R-hat of predictions is 1.049 (30 effective samples); "
	for want, layers := range map[string][]diagnostics.Temperature{
		"in equilibrium: " + beginning + "every layer is within 5 % of T = 1": {of("a", 10, 1.04, 0.01, 1, 0.3)},
		"not in equilibrium: " + beginning + "90 % of the weights are within 5 % of T = 1; in too short a run to tell: b": {
			of("a", 90, 1, 0.01, 1, 0), of("b", 10, 1.2, 0.2, 1, 0)},
		"not in equilibrium: " + beginning + "99 % of the weights are within 5 % of T = 1; still growing: a": {
			of("a", 1, 0.2, 0.01, 1, 0), of("b", 998, 1, 0.01, 1, 0)},
		"not in equilibrium: " + beginning + "0 % of the weights are within 5 % of T = 1; still growing: a (the scale of the logits still grows)": {
			of("a", 1, 0.2, 0.01, none, 0.5)},
		"not in equilibrium: " + beginning + "0 % of the weights are within 5 % of T = 1; still shrinking: a (the scale of the logits still shrinks)": {
			of("a", 1, 1.5, 0.01, 1.01, 0.5)},
		"not in equilibrium: " + beginning + "0 % of the weights are within 5 % of T = 1; heated by the noise of minibatches: a, b, c": {
			of("a", 1, 1.5, 0.01, 1.4, 0), of("b", 1, 1.2, 0.01, none, 0.2), of("c", 1, 1.01, 0.01, 1.1, 0)},
		"": {of("a", 1, none, none, none, none)},
	} {
		d := diagnostics.Report{Temperatures: append([]diagnostics.Temperature{{Layer: "all"}}, layers...), Predicted: mixed}
		got := d.Verdict(1)
		if got.Text != want || got.InEquilibrium != strings.HasPrefix(want, "in ") || got.Heated != strings.Contains(want, "heated") {
			t.Errorf("%+v: %+v, want %q", layers, got, want)
		}
	}
	deep := diagnostics.Report{Temperatures: []diagnostics.Temperature{{}}}
	for i := range 9 {
		deep.Temperatures = append(deep.Temperatures, of(fmt.Sprint("conv", i+1), 1, 0.5, 0.01, 1, 0))
	}
	want := "not in equilibrium: 0 % of the weights are within 5 % of T = 1; still growing: conv1, conv2, conv3, conv4 and 5 other layers" +
		" (the scale of the logits still grows)"
	if got := deep.Verdict(1).Text; got != want {
		t.Errorf("of many layers: %q, want %q", got, want)
	}
	d := diagnostics.Report{Temperatures: []diagnostics.Temperature{{}, of("a", 1, 1.5, 0.01, 1, 0)}}
	if got := d.Verdict(0); got != (diagnostics.Verdict{}) {
		t.Errorf("at temperature 0: %+v", got)
	}
}

// A layer counts as heated if its kinetic temperature has more than half of the excess of the
// configurational one: of 1.07, 1.04 has, and 1.02 has not, so that the weights are still
// shrinking.
func TestHeatedOrShrinking(t *testing.T) {
	for kinetic, want := range map[diagnostics.Number]string{1.04: "heated by the noise of minibatches: a", 1.02: "still shrinking: a"} {
		layer := diagnostics.Temperature{Layer: "a", Weights: 1, Configurational: 1.07, StandardError: 0.001, Kinetic: kinetic}
		d := diagnostics.Report{Temperatures: []diagnostics.Temperature{{}, layer}}
		if got := d.Verdict(1).Text; !strings.Contains(got, want) {
			t.Errorf("kinetic %v of 1.07: %q, want %q", kinetic, got, want)
		}
	}
}

// Weights at their temperature are in equilibrium only if chains agree in their predictions.
func TestVerdictOnModes(t *testing.T) {
	none := diagnostics.Number(math.NaN())
	layer := diagnostics.Temperature{Layer: "a", Weights: 1, Configurational: 1, StandardError: 0.01, Kinetic: 1}
	const mode, rHat = "at its temperature within one mode: ", "split R-hat of predictions is "
	for want, mixing := range map[string]*diagnostics.Mixing{
		"in equilibrium: " + rHat + "1.010; every layer is within 5 % of T = 1":          {Chains: 4, RHat: 1.01, BulkESS: none},
		mode + rHat + "1.750 (9 effective samples); every layer is ":                     {Chains: 4, RHat: 1.75, BulkESS: 9},
		mode + rHat + "1.050; every layer":                                               {Chains: 2, RHat: 1.05, BulkESS: none},
		mode + rHat + "1.000, but one chain cannot show other modes; every":              {Chains: 1, RHat: 1, BulkESS: none},
		"at its temperature: every layer is within 5 % of T = 1, but no held-out images": nil,
	} {
		d := diagnostics.Report{Temperatures: []diagnostics.Temperature{{}, layer}, Predicted: mixing}
		if got := d.Verdict(1); !strings.HasPrefix(got.Text, want) || got.InEquilibrium != strings.HasPrefix(want, "in ") || !got.AtTemperature || got.Heated {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

// An alarm is raised where the interval of the temperature of predictions is above the requested
// one, and not by a value that may be chance.
func TestAlarm(t *testing.T) {
	of := func(value, standardError diagnostics.Number, groups int) *diagnostics.Measured {
		return &diagnostics.Measured{Value: value, StandardError: standardError, Groups: groups}
	}
	for _, c := range []struct {
		curvature, determination *diagnostics.Measured
		want                     string
	}{
		{of(8.04, 1.71, 16), of(1.2, 0.1, 16), "what predictions depend on is at T = 8 ± 2 by curvature and 1.2 ± 0.1 by determination"},
		{of(8.04, 1.71, 16), nil, "what predictions depend on is at T = 8 ± 2 by curvature, so that"},
		{of(1.1, 0.1, 16), of(1.6, 0.1, 16), "T = 1.1 ± 0.1 by curvature and 1.6 ± 0.1 by determination"},
		{of(8, 2.5, 4), of(1, 0.1, 4), ""}, // the lower end is 0
		{of(1.1, 0.1, 16), of(1.1, 0.1, 16), ""},
		{nil, nil, ""},
	} {
		d := diagnostics.Report{
			Temperatures: []diagnostics.Temperature{{}, {Layer: "a", Weights: 1, Configurational: 1, StandardError: 0.01, Kinetic: 1}},
			Predicted:    &diagnostics.Mixing{Chains: 2, RHat: 1}, Predictions: c.curvature, Determination: c.determination,
		}
		got := d.Verdict(1)
		if _, alarm, found := strings.Cut(got.Text, "alarm: "); found != (c.want != "") || !strings.Contains(alarm, c.want) || got.Heated != found {
			t.Errorf("%+v, want %q", got, c.want)
		}
	}
}

// A chain whose loss is far above the others' is named, which the mean over the chains hides.
// Losses that differ by chance are not.
func TestOutliers(t *testing.T) {
	d := &diagnostics.Report{Losses: [][]float64{{0.2, 0.4}, {1, 1.2}, {0.2, 0.2}}}
	got := d.Outliers()
	if len(got) != 1 || got[0].Chain != 1 || math.Abs(got[0].Loss-1.1)+math.Abs(got[0].Median-0.3) > 1e-9 {
		t.Errorf("%v, want chain 1 with a loss of 1.1, and a median of 0.3", got)
	}
	for _, losses := range [][]float64{nil, {3}, {0.001, 0.3}, {1.5, 2.3}, {0.1, 0.59, 0.1}} {
		if chains, _ := diagnostics.Outliers(losses); len(chains) > 0 {
			t.Errorf("of %v, %v are outliers", losses, chains)
		}
	}
}
