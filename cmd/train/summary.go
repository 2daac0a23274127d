package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/report"
)

// equilibriumTolerance is how far, relatively, a measured temperature may be from the requested one, and how large its standard error may be, before a run
// says that it has not equilibrated, or cannot tell; a difference below manyErrors standard errors is none. kineticTolerance is how far that of a
// layer's velocities may be, which the noise of minibatches raises; mixedRHat is the split R-hat above which a run says that its chains have not mixed.
const (
	equilibriumTolerance = 0.05
	manyErrors           = 2
	kineticTolerance     = 0.02
	mixedRHat            = 1.01
)

// printRuns tells what runs' chains did: how long, how hot, how well mixed.
func printRuns(names []string, results []result, c *console) error {
	chains, temperatures, notes, err := summarizeRuns(names, results)
	if err != nil {
		return err
	}
	if err := chains.WriteText(c.out); err != nil {
		return err
	}
	if temperatures != nil {
		fmt.Fprintln(c.out)
		if err := temperatures.WriteText(c.out); err != nil {
			return err
		}
	}
	for _, note := range notes {
		fmt.Fprintln(c.out, note)
	}
	return nil
}

// summarizeRuns makes a table of the chains of runs, one of the samplers' temperatures by layer, nil when no run has measured one, and notes on what they mean.
func summarizeRuns(names []string, results []result) (chains, temperatures *report.Table, notes []string, err error) {
	chains = report.NewTable("run", report.Column{Title: "samples", Format: "%.0f"}, report.Column{Title: "seconds", Format: "%.0f"},
		report.Column{Title: "split R-hat of the loss"}, report.Column{Title: "of " + results[0].watched})
	var verdicts []string
	for i, r := range results {
		lossRHat, weightRHat := r.rHat(r.lossTrace), r.rHat(r.weightTrace)
		if err := chains.Add(names[i], float64(r.samples), r.seconds, orDash("%.3f", lossRHat), orDash("%.3f", weightRHat)); err != nil {
			return nil, nil, nil, err
		}
		verdicts = append(verdicts, r.verdict(names[i], lossRHat, weightRHat)...)
		if math.IsNaN(r.all.temperature) { // not a sampler by gradients, or a run that was resumed when it was done
			continue
		}
		if temperatures == nil {
			temperatures = newTemperatures(r.layers)
			notes = []string{"Measured temperatures, in all and by layer, with standard errors, are configurational: in equilibrium they are the requested one."}
		}
		if err := r.addTemperatures(temperatures, names[i]); err != nil {
			return nil, nil, nil, err
		}
	}
	if slices.ContainsFunc(results, func(r result) bool { return !math.IsNaN(r.all.kinetic) }) {
		notes = append(notes, "Kinetic ones, of samplers with momentum, are the velocities', which settle far sooner.")
	}
	return chains, temperatures, append(notes, verdicts...), nil
}

func newTemperatures(layers []layerTemperature) *report.Table {
	columns := []report.Column{{Title: "requested"}, {Title: "measured"}}
	for _, layer := range layers {
		columns = append(columns, report.Column{Title: layer.name})
	}
	return report.NewTable("temperature", columns...)
}

// addTemperatures adds a row of configurational temperatures, and one of kinetic ones if the sampler has momentum.
func (r result) addTemperatures(table *report.Table, name string) error {
	configurational, kinetic := []any{fmt.Sprintf("%.3g", r.requested())}, []any{fmt.Sprintf("%.3g", r.requested())}
	for _, layer := range r.places() {
		configurational, kinetic = append(configurational, layer.String()), append(kinetic, orDash("%.3g", layer.kinetic))
	}
	err := table.Add(name, configurational...)
	if err != nil || math.IsNaN(r.all.kinetic) {
		return err
	}
	return table.Add(name+", kinetic", kinetic...)
}

// places are all parameters together, and then each layer.
func (r result) places() []layerTemperature { return append([]layerTemperature{r.all}, r.layers...) }

// String is the configurational temperature with its standard error.
func (l layerTemperature) String() string {
	if math.IsNaN(l.temperature) || math.IsNaN(l.standardError) {
		return orDash("%.3g", l.temperature)
	}
	return fmt.Sprintf("%.3g ± %.1g", l.temperature, l.standardError)
}

// requested is the temperature of the posterior that was to be sampled.
func (r result) requested() float64 { return r.config.temperature() }

// verdict says what is wrong with a sampler's chains, if anything.
func (r result) verdict(name string, lossRHat, weightRHat float64) []string {
	if !r.config.isSampler() {
		return nil
	}
	var notes []string
	if off, vague := r.disequilibrium(); len(off) > 0 {
		notes = append(notes, fmt.Sprintf("%s: not in equilibrium: measured temperature %s, requested %g.", name, strings.Join(off, ", "), r.requested()))
	} else if len(vague) > 0 {
		notes = append(notes, fmt.Sprintf("%s: too short to tell whether it is in equilibrium: the standard error is above %g %% in %s.",
			name, 100*equilibriumTolerance, strings.Join(vague, ", ")))
	}
	if hot := r.kineticOff(); len(hot) > 0 {
		notes = append(notes, fmt.Sprintf("%s: kinetic temperature %s, requested %g. Smaller rates or larger batches would bring it closer.",
			name, strings.Join(hot, ", "), r.requested()))
	}
	if r.proposals > 0 {
		notes = append(notes, fmt.Sprintf("%s: proposals were accepted with the mean probability %.2f.", name, r.accepted/r.proposals))
	}
	if r.config.Temperatures != nil {
		notes = append(notes, fmt.Sprintf("%s: %s %% of the attempts to swap neighbours among the temperatures %s succeeded.", name,
			orDash("%.0f", 100*r.swaps), *r.config.Temperatures))
	}
	if lossRHat > mixedRHat || weightRHat > mixedRHat {
		notes = append(notes, fmt.Sprintf("%s: not mixed: split R-hat above %g. A longer run would come closer.", name, mixedRHat))
	}
	return notes
}

// disequilibrium is where the configurational temperature is not the requested one, and where its error is too large to tell. At the temperature 0
// there is no equilibrium to miss.
func (r result) disequilibrium() (off, vague []string) {
	tolerance := equilibriumTolerance * r.requested()
	if tolerance == 0 {
		return nil, nil
	}
	for _, l := range r.places() {
		switch difference := math.Abs(l.temperature - r.requested()); {
		case math.IsNaN(l.temperature):
		case difference > tolerance && !(difference <= manyErrors*l.standardError):
			off = append(off, fmt.Sprintf("%v in %s", l, l.name))
		case !(l.standardError <= tolerance):
			vague = append(vague, l.name)
		}
	}
	return off, vague
}

// kineticOff is where the velocities do not have the requested temperature.
func (r result) kineticOff() (off []string) {
	for _, layer := range r.layers {
		if requested := r.requested(); requested > 0 && math.Abs(layer.kinetic-requested) > kineticTolerance*requested {
			off = append(off, fmt.Sprintf("%.3g in %s", layer.kinetic, layer.name))
		}
	}
	return off
}

// rHat is the split R-hat of chains; NaN where they are too short to be split, and for optimizers, which have none.
func (r result) rHat(chains [][]float64) float64 {
	v, err := diagnostics.SplitRHat(chains)
	if err != nil || !r.config.isSampler() {
		return math.NaN()
	}
	return v
}

// orDash prints a number, "-" for one that was not measured.
func orDash(format string, v float64) string {
	if math.IsNaN(v) {
		return "-"
	}
	return fmt.Sprintf(format, v)
}
