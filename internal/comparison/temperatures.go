package comparison

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/report"
)

// fewLayers is the maximum number of layers that get a column each in a table of temperatures. More
// get a row each, in a table for each run.
const fewLayers = 8

var notesOnTemperatures = []string{
	"Measured temperatures, in total and by layer, are configurational, with standard errors; in equilibrium they equal the requested one.",
	"Kinetic: temperature of the velocities. Drift: of weights that still grow (-) or shrink (+). Noise: the relative heating by minibatch\n" +
		"noise that the sampler does not correct; without velocities, drift is the rest that this estimate does not explain.",
	"All weights count alike here. Predictions depend on a few directions of weight space, which minibatch noise heats most.",
}

// notesOnPredictions have figures of docs/records/goldstandard-1000.json.
var notesOnPredictions = []string{
	"T of what predictions depend on: by determination, each direction that the data determine counts once; by curvature, the steepest\n" +
		"decide. It is an alarm, after split R-hat, ESS and NLL. On 1000 digits, runs at 5 to 8 by curvature had an NLL of 0.26 to 0.28 and\n" +
		"a total variation of 0.043 to 0.050 to full-batch sampling, where runs at 1 had 0.25 and 0.022.",
}

// measure is a kind of temperature. A run has a row or column for it if shown, called with the
// temperature of all layers, returns true.
type measure struct {
	title string // "" for the configurational temperature
	text  func(t diagnostics.Temperature) string
	shown func(all diagnostics.Temperature) bool
}

var measures = []measure{
	{"", withError, func(diagnostics.Temperature) bool { return true }},
	numbers("kinetic", "%.3g", 0, func(t diagnostics.Temperature) diagnostics.Number { return t.Kinetic }),
	numbers("drift", "%+.2f", 1, func(t diagnostics.Temperature) diagnostics.Number { return t.Drift }),
	numbers("noise", "%+.2f", 1, func(t diagnostics.Temperature) diagnostics.Number { return t.GradientNoise }),
}

// numbers returns a measure that is shown if it was measured on at least the given number of
// weights.
func numbers(title, format string, weights int, of func(t diagnostics.Temperature) diagnostics.Number) measure {
	return measure{
		title, func(t diagnostics.Temperature) string { return report.OrDash(format, of(t)) },
		func(all diagnostics.Temperature) bool { return all.Weights >= weights && !isNaN(of(all)) },
	}
}

// temperatures returns the tables of the runs that have temperatures. Consecutive runs with the
// same few layers share a table.
func temperatures(all []observed) (tables []*report.Table, err error) {
	var layers []string // of the last table, if it has a column for each
	for _, o := range all {
		if len(o.Temperatures) == 0 || isNaN(o.Temperatures[0].Configurational) { // not a gradient-based sampler, or nothing was measured
			continue
		}
		var own []string
		for _, t := range o.Temperatures[1:] {
			own = append(own, t.Layer)
		}
		if len(own) > fewLayers {
			table, err := o.byLayer()
			if err != nil {
				return nil, err
			}
			tables, layers = append(tables, table), nil
			continue
		}
		if layers == nil || !slices.Equal(layers, own) {
			columns := []report.Column{{Title: "requested"}, {Title: "measured"}}
			for _, layer := range own {
				columns = append(columns, report.Column{Title: layer})
			}
			tables, layers = append(tables, report.NewTable("temperature", columns...)), own
		}
		if err := o.addTo(tables[len(tables)-1]); err != nil {
			return nil, err
		}
	}
	return tables, nil
}

// addTo adds a run's rows to a table whose columns are layers.
func (o observed) addTo(table *report.Table) error {
	for _, m := range measures {
		if !m.shown(o.Temperatures[0]) {
			continue
		}
		name, cells := "  "+m.title, []any{""}
		if m.title == "" {
			name, cells[0] = o.name, fmt.Sprintf("%.3g", o.spec.NoiseTemperature())
		}
		for _, t := range o.Temperatures {
			cells = append(cells, m.text(t))
		}
		if err := table.Add(name, cells...); err != nil {
			return err
		}
	}
	return nil
}

// byLayer returns a run's own table, whose rows are layers.
func (o observed) byLayer() (*report.Table, error) {
	var shown []measure
	var columns []report.Column
	for _, m := range measures {
		if !m.shown(o.Temperatures[0]) {
			continue
		}
		if m.title == "" {
			m.title = fmt.Sprintf("temperature, of %.3g", o.spec.NoiseTemperature())
		}
		shown, columns = append(shown, m), append(columns, report.Column{Title: m.title})
	}
	table := report.NewTable(o.name, columns...)
	for _, t := range o.Temperatures {
		var cells []any
		for _, m := range shown {
			cells = append(cells, m.text(t))
		}
		if err := table.Add(t.Layer, cells...); err != nil {
			return nil, err
		}
	}
	return table, nil
}

// withError formats the configurational temperature with its standard error.
func withError(t diagnostics.Temperature) string {
	if isNaN(t.Configurational) || isNaN(t.StandardError) {
		return report.OrDash("%.3g", t.Configurational)
	}
	return diagnostics.Measured{Value: t.Configurational, StandardError: t.StandardError}.String()
}

// temperatureRange describes the measured temperatures of a run in a line; "" if there are none.
func (o observed) temperatureRange() string {
	if len(o.Temperatures) < 2 || isNaN(o.Temperatures[0].Configurational) {
		return ""
	}
	layers := slices.DeleteFunc(slices.Clone(o.Temperatures[1:]), func(t diagnostics.Temperature) bool { return isNaN(t.Configurational) })
	if len(layers) == 0 {
		return ""
	}
	if len(layers) == 1 {
		return fmt.Sprintf("%s: temperature %s of %.3g.", o.name, withError(o.Temperatures[0]), o.spec.NoiseTemperature())
	}
	compare := func(a, b diagnostics.Temperature) int { return cmp.Compare(a.Configurational, b.Configurational) }
	least, most := slices.MinFunc(layers, compare), slices.MaxFunc(layers, compare)
	return fmt.Sprintf("%s: temperature %s of %.3g, by layer %.3g (%s) to %.3g (%s): see the page.", o.name, withError(o.Temperatures[0]),
		o.spec.NoiseTemperature(), float64(least.Configurational), least.Layer, float64(most.Configurational), most.Layer)
}
