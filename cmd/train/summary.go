package main

import (
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/report"
)

// equilibriumTolerance is how far, relatively, a temperature may be from the requested one before a
// run reports disequilibrium, and how large its standard error before it cannot tell; differences
// below manyErrors standard errors are none.
const (
	equilibriumTolerance = 0.05
	manyErrors           = 2
	kineticTolerance     = 0.02 // of a layer's velocities, which the noise of minibatches heats
	mixedRHat            = 1.01 // the split R-hat above which chains have not mixed
)

// printChains prints what runs' chains did: how long, how hot, how well mixed.
func printChains(runs []compared, c *console) error {
	chains, temperatures, notes, err := summarize(runs)
	if err != nil || chains == nil {
		return err
	}
	if err := printTables(c, chains, temperatures); err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(c.out, note)
	}
	return nil
}

// observed is a run with the diagnostics of its chains.
type observed struct {
	*pollen.Diagnostics
	name string
	spec pollen.Spec
}

// summarize makes tables of runs' chains and of samplers' temperatures by layer, nil if none was
// measured, and notes on them. Runs without diagnostics are left out; if all are, chains is nil.
func summarize(runs []compared) (chains, temperatures *report.Table, notes []string, err error) {
	var all []observed
	for _, r := range runs {
		d, err := r.run.Diagnostics()
		switch {
		case err == nil:
			all = append(all, observed{d, r.name, r.run.Manifest().Spec})
		case !os.IsNotExist(errors.Cause(err)):
			return nil, nil, nil, err
		}
	}
	if len(all) == 0 {
		return nil, nil, nil, nil
	}
	chains = report.NewTable("run", report.Column{Title: "samples", Format: "%.0f"}, report.Column{Title: "steps", Format: "%.0f"},
		report.Column{Title: "split R-hat of the loss"}, report.Column{Title: "of " + all[0].Watched})
	var verdicts []string
	kinetic := false
	for _, o := range all {
		if err := chains.Add(o.name, float64(o.Samples), float64(o.Made), orDash("%.3f", o.LossRHat), orDash("%.3f", o.WeightRHat)); err != nil {
			return nil, nil, nil, err
		}
		verdicts = append(verdicts, o.verdict()...)
		if len(o.Temperatures) == 0 || isNaN(o.Temperatures[0].Configurational) { // no sampler by gradients, or nothing was measured
			continue
		}
		if temperatures == nil {
			temperatures = newTemperatures(o.Temperatures[1:])
			notes = []string{"Measured temperatures, in all and by layer, with standard errors, are configurational: in equilibrium they are the requested one."}
		}
		if err := o.addTemperatures(temperatures); err != nil {
			return nil, nil, nil, err
		}
		kinetic = kinetic || !isNaN(o.Temperatures[0].Kinetic)
	}
	if kinetic {
		notes = append(notes, "Kinetic ones, of samplers with momentum, are the velocities', which settle far sooner.")
	}
	return chains, temperatures, append(notes, verdicts...), nil
}

func isNaN(n pollen.Number) bool { return math.IsNaN(float64(n)) }

func newTemperatures(layers []pollen.Temperature) *report.Table {
	columns := []report.Column{{Title: "requested"}, {Title: "measured"}}
	for _, layer := range layers {
		columns = append(columns, report.Column{Title: layer.Layer})
	}
	return report.NewTable("temperature", columns...)
}

// requested is the temperature of the posterior to be sampled.
func (o observed) requested() float64 {
	if o.spec.Temperature == nil {
		return 0
	}
	return *o.spec.Temperature
}

// addTemperatures adds a row of configurational temperatures, and of kinetic ones with momentum.
func (o observed) addTemperatures(table *report.Table) error {
	configurational, kinetic := []any{fmt.Sprintf("%.3g", o.requested())}, []any{fmt.Sprintf("%.3g", o.requested())}
	for _, t := range o.Temperatures {
		configurational, kinetic = append(configurational, withError(t)), append(kinetic, orDash("%.3g", t.Kinetic))
	}
	err := table.Add(o.name, configurational...)
	if err != nil || isNaN(o.Temperatures[0].Kinetic) {
		return err
	}
	return table.Add(o.name+", kinetic", kinetic...)
}

// withError is the configurational temperature with its standard error.
func withError(t pollen.Temperature) string {
	if isNaN(t.Configurational) || isNaN(t.StandardError) {
		return orDash("%.3g", t.Configurational)
	}
	if t.StandardError >= 9.5 { // %.1g would write 1e+01
		return fmt.Sprintf("%.3g ± %.0f", float64(t.Configurational), float64(t.StandardError))
	}
	return fmt.Sprintf("%.3g ± %.1g", float64(t.Configurational), float64(t.StandardError))
}

// verdict reports what is wrong with a sampler's chains, if anything.
func (o observed) verdict() []string {
	if o.spec.Temperature == nil {
		return nil
	}
	var notes []string
	if augment := o.spec.Augment.String(); augment != "" {
		notes = append(notes, fmt.Sprintf("%s: images were changed at random (%s): temperatures are not those of the posterior of the images, see pollen.Augment.",
			o.name, augment))
	}
	if off, vague := o.disequilibrium(); len(off) > 0 {
		notes = append(notes, fmt.Sprintf("%s: not in equilibrium: measured temperature %s, requested %g.", o.name, strings.Join(off, ", "), o.requested()))
	} else if len(vague) > 0 {
		notes = append(notes, fmt.Sprintf("%s: too short to tell whether it is in equilibrium: the standard error is above %g %% in %s.",
			o.name, 100*equilibriumTolerance, strings.Join(vague, ", ")))
	}
	if hot := o.kineticOff(); len(hot) > 0 {
		notes = append(notes, fmt.Sprintf("%s: kinetic temperature %s, requested %g. Smaller rates or larger batches would bring it closer.",
			o.name, strings.Join(hot, ", "), o.requested()))
	}
	if !isNaN(o.Acceptance) {
		notes = append(notes, fmt.Sprintf("%s: proposals were accepted with the mean probability %.2f.", o.name, float64(o.Acceptance)))
	}
	if o.Diverged > 0 {
		notes = append(notes, fmt.Sprintf("%s: %.1f %% of the trajectories diverged: a higher acceptance-rate takes smaller steps.", o.name, 100*o.Diverged))
	}
	if len(o.spec.Temperatures) > 0 {
		notes = append(notes, fmt.Sprintf("%s: %s %% of the attempts to swap neighbours among the temperatures %s succeeded.", o.name,
			orDash("%.0f", 100*o.Swaps), strings.ReplaceAll(strings.Trim(fmt.Sprint(o.spec.Temperatures), "[]"), " ", ", ")))
	}
	if o.LossRHat > mixedRHat || o.WeightRHat > mixedRHat {
		notes = append(notes, fmt.Sprintf("%s: not mixed: split R-hat above %g. A longer run would come closer.", o.name, mixedRHat))
	}
	return notes
}

// disequilibrium is where the configurational temperature is off, or its error too large to tell.
func (o observed) disequilibrium() (off, vague []string) {
	tolerance := equilibriumTolerance * o.requested()
	if tolerance == 0 { // at temperature 0 there is no equilibrium to miss
		return nil, nil
	}
	for _, t := range o.Temperatures {
		switch difference := math.Abs(float64(t.Configurational) - o.requested()); {
		case isNaN(t.Configurational):
		case difference > tolerance && !(difference <= manyErrors*float64(t.StandardError)):
			off = append(off, fmt.Sprintf("%s in %s", withError(t), t.Layer))
		case !(float64(t.StandardError) <= tolerance):
			vague = append(vague, t.Layer)
		}
	}
	return off, vague
}

// kineticOff is where the velocities do not have the requested temperature.
func (o observed) kineticOff() (off []string) {
	requested := o.requested()
	for _, t := range o.Temperatures[min(1, len(o.Temperatures)):] {
		if requested > 0 && math.Abs(float64(t.Kinetic)-requested) > kineticTolerance*requested {
			off = append(off, fmt.Sprintf("%.3g in %s", float64(t.Kinetic), t.Layer))
		}
	}
	return off
}

// orDash prints a number, or "-" if it was not measured.
func orDash(format string, v pollen.Number) string {
	if isNaN(v) {
		return "-"
	}
	return fmt.Sprintf(format, float64(v))
}
