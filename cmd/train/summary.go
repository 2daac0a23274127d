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

// mixedRHat is the split R-hat above which chains have not mixed.
const mixedRHat = 1.01

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
		report.Column{Title: "split R-hat of predictions"}, report.Column{Title: "of " + all[0].Watched},
		report.Column{Title: "ESS of predictions"}, report.Column{Title: "in the tails"})
	var verdicts []string
	images := ""
	for _, o := range all {
		m := o.mixing()
		if err := chains.Add(o.name, float64(o.Samples), float64(o.Made), orDash("%.3f", m.RHat), orDash("%.3f", o.WeightRHat),
			orDash("%.0f", m.BulkESS), orDash("%.0f", m.TailESS)); err != nil {
			return nil, nil, nil, err
		}
		if m.Images > 0 && images == "" {
			images = fmt.Sprintf("Predictions are of %d held-out images: 95 %% of split R-hats are below that, the effective sample size (ESS) is the median.", m.Images)
		}
		verdicts = append(verdicts, o.verdict()...)
		if len(o.Temperatures) == 0 || isNaN(o.Temperatures[0].Configurational) { // no sampler by gradients, or nothing was measured
			continue
		}
		if temperatures == nil {
			temperatures = newTemperatures(o.Temperatures[1:])
			notes = []string{
				"Measured temperatures, in all and by layer, with standard errors, are configurational, in equilibrium the requested one: the",
				"kinetic ones, of velocities, and the drift of weights that grow (-) or shrink (+). Noise is how much hotter, as a share, the noise",
				"of minibatches makes a sampler that does nothing against it; without velocities, the drift is what that estimate leaves.",
				"In all of them weights count alike; what predictions depend on are a few directions, which that noise heats most.",
			}
		}
		if err := o.addTemperatures(temperatures); err != nil {
			return nil, nil, nil, err
		}
	}
	if images != "" {
		notes = append([]string{images}, notes...)
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
	row := func(name, requested string, value func(t pollen.Temperature) string, shown func(t pollen.Temperature) bool) error {
		values := []any{requested}
		for _, t := range o.Temperatures {
			values = append(values, value(t))
		}
		if !shown(o.Temperatures[0]) {
			return nil
		}
		return table.Add(name, values...)
	}
	number := func(format string, of func(t pollen.Temperature) pollen.Number) func(t pollen.Temperature) string {
		return func(t pollen.Temperature) string { return orDash(format, of(t)) }
	}
	measured := func(of func(t pollen.Temperature) pollen.Number) func(t pollen.Temperature) bool {
		return func(t pollen.Temperature) bool { return !isNaN(of(t)) }
	}
	split := func(of func(t pollen.Temperature) pollen.Number) func(t pollen.Temperature) bool {
		return func(t pollen.Temperature) bool { return t.Weights > 0 && !isNaN(of(t)) } // older versions did not
	}
	kinetic := func(t pollen.Temperature) pollen.Number { return t.Kinetic }
	drift := func(t pollen.Temperature) pollen.Number { return t.Drift }
	noise := func(t pollen.Temperature) pollen.Number { return t.Heating }
	for _, err := range []error{
		row(o.name, fmt.Sprintf("%.3g", o.requested()), withError, func(pollen.Temperature) bool { return true }),
		row("  kinetic", "", number("%.3g", kinetic), measured(kinetic)),
		row("  drift", "", number("%+.2f", drift), split(drift)),
		row("  noise", "", number("%+.2f", noise), split(noise)),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// withError is the configurational temperature with its standard error.
func withError(t pollen.Temperature) string {
	if isNaN(t.Configurational) || isNaN(t.StandardError) {
		return orDash("%.3g", t.Configurational)
	}
	return pollen.Measured{Value: t.Configurational, StandardError: t.StandardError}.String()
}

// mixing is that of predictions; numbers that were not measured are NaN.
func (o observed) mixing() pollen.Mixing {
	if o.Predicted != nil {
		return *o.Predicted
	}
	none := pollen.Number(math.NaN())
	return pollen.Mixing{RHat: none, BulkESS: none, TailESS: none}
}

// verdict says in words how near a sampler's chains are to equilibrium.
func (o observed) verdict() []string {
	if o.spec.Temperature == nil {
		return nil
	}
	var notes []string
	if augment := o.spec.Augment.String(); augment != "" {
		notes = append(notes, fmt.Sprintf("%s: images were changed at random (%s): temperatures are not those of the posterior of the images, see pollen.Augment.",
			o.name, augment))
	}
	if note := o.Equilibrium(o.requested()); note != "" {
		notes = append(notes, o.name+": "+note)
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
	var unmixed []string
	if o.mixing().RHat > mixedRHat {
		unmixed = append(unmixed, "predictions")
	}
	if o.WeightRHat > mixedRHat {
		unmixed = append(unmixed, o.Watched)
	}
	if len(unmixed) > 0 {
		notes = append(notes, fmt.Sprintf("%s: not mixed: split R-hat of %s above %g. A longer run would come closer.", o.name,
			strings.Join(unmixed, " and "), mixedRHat))
	}
	return notes
}

// orDash prints a number, or "-" if it was not measured.
func orDash(format string, v pollen.Number) string {
	if isNaN(v) {
		return "-"
	}
	return fmt.Sprintf(format, float64(v))
}
