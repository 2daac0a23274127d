package diagnostics

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Verdict is a judgement on whether the chains of a run sampled their posterior.
type Verdict struct {
	// Text is a sentence without its final period; "" if no temperature was measured.
	Text string
	// InEquilibrium reports whether chains agree in their predictions and all weights have the
	// requested temperature, and AtTemperature whether the weights have it.
	InEquilibrium, AtTemperature bool
	// Heated reports whether minibatch noise keeps weights, or the directions that predictions
	// depend on, from their temperature: smaller steps or larger minibatches would help, and a
	// longer run would not.
	Heated bool
}

// String returns Text.
func (v Verdict) String() string { return v.Text }

// The temperature of predictions raises an alarm if the lower end of its 95 % interval exceeds the
// requested one by these factors.
const (
	alarmByCurvature     = 1.5
	alarmByDetermination = 1.25
)

// equilibriumTolerance is the largest relative difference between a temperature and the requested
// one in equilibrium, and the largest relative standard error with which that can be decided.
// Differences below clearErrors standard errors do not count.
const (
	equilibriumTolerance = 0.05
	clearErrors          = 2
)

// Verdict judges the chains at the requested temperature. They are in equilibrium if split R-hat of
// predictions is below MixedRHat, and every layer is within 5 % of the temperature or
// two standard errors. If only the latter holds, chains are at their temperature within one mode:
// each samples the surroundings of its own solution. The verdict names what keeps weights from
// their temperature, and raises an alarm if what predictions depend on is hotter.
func (d *Report) Verdict(temperature float64) Verdict {
	if temperature == 0 || len(d.Temperatures) < 2 { // there is no equilibrium at temperature 0
		return Verdict{}
	}
	states, weights, total := d.byState(temperature)
	if total == 0 { // a layer was not measured
		return Verdict{}
	}
	v := Verdict{AtTemperature: weights[balanced] == total, Heated: weights[heated] > 0}
	within := fmt.Sprintf("within %g %% of T = %g", 100*equilibriumTolerance, temperature)
	agree, mixing := d.mixed()
	switch {
	case !v.AtTemperature:
		// Rounded down, so that "100 %" means all.
		v.Text = fmt.Sprintf("not in equilibrium: %s%.0f %% of the weights are %s%s", mixing, math.Floor(100*float64(weights[balanced])/float64(total)),
			within, d.outOfEquilibrium(states))
	case agree:
		v.InEquilibrium = true
		v.Text = fmt.Sprintf("in equilibrium: %severy layer is %s", mixing, within)
	case d.Predicted == nil || math.IsNaN(float64(d.Predicted.RHat)):
		v.Text = fmt.Sprintf("at its temperature: every layer is %s, but no held-out images show whether chains agree in their predictions", within)
	default:
		v.Text = fmt.Sprintf("at its temperature within one mode: %severy layer is %s", mixing, within)
	}
	if alarm := d.alarm(temperature); alarm != "" {
		v.Text, v.Heated = v.Text+"; alarm: "+alarm, true
	}
	return v
}

// mixed reports whether chains agree in their predictions, and returns the beginning of a sentence
// on it, "" if it was not measured.
func (d *Report) mixed() (agree bool, text string) {
	p := d.Predicted
	if p == nil || math.IsNaN(float64(p.RHat)) {
		return false, ""
	}
	text = fmt.Sprintf("split R-hat of predictions is %.3f", float64(p.RHat))
	if !math.IsNaN(float64(p.BulkESS)) {
		kept := ""
		if d.Samples > 0 && float64(p.BulkESS) > float64(d.Samples) { // states between samples are observed, too
			kept = fmt.Sprintf(" over all steps, %d kept", d.Samples)
		}
		text += fmt.Sprintf(" (%.0f effective samples%s)", float64(p.BulkESS), kept)
	}
	if p.Chains == 1 {
		return false, text + ", but one chain cannot show other modes; "
	}
	return p.RHat < MixedRHat, text + "; "
}

// outOfEquilibrium lists the layers that are not at their temperature, by the reason.
func (d *Report) outOfEquilibrium(states map[state][]string) (text string) {
	last := d.Temperatures[len(d.Temperatures)-1].Layer
	for _, s := range []struct {
		state state
		text  string
		scale string // added if the last layer, whose weights scale the logits, is among them
	}{
		{growing, "still growing", "the scale of the logits still grows"},
		{shrinking, "still shrinking", "the scale of the logits still shrinks"},
		{heated, "heated by the noise of minibatches", ""},
		{vague, "in too short a run to tell", ""},
	} {
		if names := states[s.state]; len(names) > 0 {
			text += fmt.Sprintf("; %s: %s", s.text, listed(names))
			if s.scale != "" && slices.Contains(names, last) {
				text += " (" + s.scale + ")"
			}
		}
	}
	return text
}

// alarm returns a text if what predictions depend on is hotter than requested.
func (d *Report) alarm(temperature float64) string {
	hot := func(m *Measured, factor float64) bool {
		if m == nil {
			return false
		}
		low, _ := m.Interval()
		return low > factor*temperature
	}
	if !hot(d.Predictions, alarmByCurvature) && !hot(d.Determination, alarmByDetermination) {
		return ""
	}
	text := "what predictions depend on is at T = " + d.Predictions.String() + " by curvature"
	if d.Determination != nil {
		text += " and " + d.Determination.String() + " by determination"
	}
	return text + ", so that predictions are further from the posterior's"
}

// byState returns the layers by their states, and the numbers of weights by state and in total,
// which is 0 if a layer was not measured.
func (d *Report) byState(temperature float64) (layers map[state][]string, weights map[state]int, total int) {
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
// The cases are in the order of certainty. A layer is colder than requested if its weights still
// grow from their small initial values. A hotter layer has one of two causes: the noise of
// minibatches, if the kinetic temperature, too, is out of tolerance or has more than half of the
// excess, and otherwise weights that still shrink. If the standard error exceeds the tolerance,
// nothing can be decided.
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
