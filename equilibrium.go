package pollen

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// equilibriumTolerance is how far, relatively, a temperature may be from the requested one in
// equilibrium, and how large its standard error before a run cannot tell; differences below
// clearErrors standard errors are none.
const (
	equilibriumTolerance = 0.05
	clearErrors          = 2
)

// Equilibrium says in words how many of the weights, or that all, are in equilibrium at the
// requested temperature, within 5 % of it or two standard errors, what keeps the others from it,
// and at which temperature what predictions depend on is, if measured: "" if no temperature was.
func (d *Diagnostics) Equilibrium(temperature float64) (verdict string, all bool) {
	if temperature == 0 || len(d.Temperatures) < 2 { // at temperature 0 there is no equilibrium to miss
		return "", false
	}
	states, weights, total := d.byState(temperature)
	if total == 0 { // a layer was not measured, or diagnostics of an older version
		return "", false
	}
	layers := d.Temperatures[1:]
	share := math.Floor(100 * float64(weights[balanced]) / float64(total))
	verdict = fmt.Sprintf("%.0f %% of the weights are in equilibrium, within %g %% of T = %g", share, 100*equilibriumTolerance, temperature)
	last := layers[len(layers)-1].Layer
	for _, s := range []struct {
		state state
		says  string
		scale string // where it is the last layer, whose weights scale the logits
	}{
		{growing, "still growing", "the scale of the logits still grows"},
		{shrinking, "still shrinking", "the scale of the logits still shrinks"},
		{heated, "heated by the noise of minibatches", ""},
		{vague, "in too short a run to tell", ""},
	} {
		if names := states[s.state]; len(names) > 0 {
			verdict += fmt.Sprintf("; %s: %s", s.says, listed(names))
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

// byState are the layers by what their temperatures say, and the numbers of their weights, also in
// all, which is 0 if one was not measured.
func (d *Diagnostics) byState(temperature float64) (layers map[state][]string, weights map[state]int, total int) {
	layers, weights = map[state][]string{}, map[state]int{}
	for _, t := range d.Temperatures[1:] {
		s := t.state(temperature)
		if s == unmeasured {
			return nil, nil, 0
		}
		layers[s], weights[s] = append(layers[s], t.Layer), weights[s]+t.Weights
		total += t.Weights
	}
	return layers, weights, total
}

// listed names a few layers, and counts the others.
func listed(names []string) string {
	const most, few = 8, 4
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d other layers", strings.Join(names[:few], ", "), len(names)-few)
}

// state is what a layer's temperature says.
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

// state judges the configurational temperature, and the kinetic one, which is exact far sooner.
func (t Temperature) state(requested float64) state {
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
