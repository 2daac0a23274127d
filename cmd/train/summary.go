package main

import (
	"fmt"
	"math"

	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/report"
)

// equilibriumTolerance is how far, relatively, the measured temperature may be from the requested one before a run says that it has not
// equilibrated; kineticTolerance likewise for the velocities of a layer, whose temperature the noise of minibatches raises; mixedRHat is the split
// R-hat above which it says that its chains have not mixed.
const (
	equilibriumTolerance = 0.05
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
	fmt.Fprintln(c.out)
	if err := temperatures.WriteText(c.out); err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(c.out, note)
	}
	return nil
}

// summarizeRuns makes a table of the chains of runs, one of their temperatures by layer, and notes on what these mean.
func summarizeRuns(names []string, results []result) (chains, temperatures *report.Table, notes []string, err error) {
	chains = report.NewTable("run", report.Column{Title: "samples", Format: "%.0f"}, report.Column{Title: "seconds", Format: "%.0f"},
		report.Column{Title: "split R-hat of the loss"}, report.Column{Title: "of " + results[0].watched})
	layers := results[0].layers
	columns := []report.Column{{Title: "requested"}, {Title: "measured"}}
	for _, layer := range layers {
		columns = append(columns, report.Column{Title: layer.name})
	}
	temperatures = report.NewTable("temperature", columns...)
	notes = []string{
		"Measured temperatures, in all and by layer, are configurational: in equilibrium they are the requested one.",
		"Kinetic ones, of samplers with momentum, are the velocities', which settle far sooner.",
	}
	for i, r := range results {
		lossRHat, weightRHat := r.rHat(r.lossTrace), r.rHat(r.weightTrace)
		if err := chains.Add(names[i], float64(r.samples), r.seconds, orDash("%.3f", lossRHat), orDash("%.3f", weightRHat)); err != nil {
			return nil, nil, nil, err
		}
		if err := r.addTemperatures(temperatures, names[i]); err != nil {
			return nil, nil, nil, err
		}
		notes = append(notes, r.verdict(names[i], lossRHat, weightRHat)...)
	}
	return chains, temperatures, notes, nil
}

// addTemperatures adds a row of configurational temperatures, and one of kinetic ones if the sampler has momentum.
func (r result) addTemperatures(table *report.Table, name string) error {
	add := func(name string, all float64, of func(layerTemperature) float64) error {
		cells := []any{orDash("%.3g", r.requested()), orDash("%.3g", all)}
		for _, layer := range r.layers {
			cells = append(cells, orDash("%.3g", of(layer)))
		}
		return table.Add(name, cells...)
	}
	err := add(name, r.temperature, func(l layerTemperature) float64 { return l.temperature })
	if err != nil || math.IsNaN(r.kinetic) {
		return err
	}
	return add(name+", kinetic", r.kinetic, func(l layerTemperature) float64 { return l.kinetic })
}

// requested is the temperature of the posterior that was to be sampled; NaN for optimizers, which ask for none.
func (r result) requested() float64 {
	if !r.config.isSampler() {
		return math.NaN()
	}
	return *r.config.Temperature
}

// verdict says what is wrong with a sampler's chains, if anything.
func (r result) verdict(name string, lossRHat, weightRHat float64) []string {
	if !r.config.isSampler() {
		return nil
	}
	var notes []string
	if requested := r.requested(); requested > 0 && math.Abs(r.temperature-requested) > equilibriumTolerance*requested {
		notes = append(notes, fmt.Sprintf("%s: not in equilibrium: measured temperature %.3g, requested %g.", name, r.temperature, requested))
	}
	for _, layer := range r.layers {
		if requested := r.requested(); requested > 0 && math.Abs(layer.kinetic-requested) > kineticTolerance*requested {
			notes = append(notes, fmt.Sprintf("%s: kinetic temperature %.3g in %s, requested %g. Smaller rates or larger batches would bring it closer.",
				name, layer.kinetic, layer.name, requested))
		}
	}
	if lossRHat > mixedRHat || weightRHat > mixedRHat {
		notes = append(notes, fmt.Sprintf("%s: not mixed: split R-hat above %g. A longer run would come closer.", name, mixedRHat))
	}
	return notes
}

// rHat is the split R-hat of chains; NaN where they are too short to be split, and for optimizers, which have none.
func (r result) rHat(chains [][]float64) float64 {
	v, err := langevin.SplitRHat(chains)
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
