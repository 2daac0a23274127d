package comparison

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/config"
	"github.com/pollen-ml/pollen/report"
)

// Summary describes the chains of runs: length, convergence and temperatures.
type Summary struct {
	Chains           *report.Table   // a row for each run; nil if none has diagnostics
	Temperatures     []*report.Table // measured temperatures of samplers, by layer
	Notes            []string        // paragraphs of lines: explanations, how close each run is to equilibrium
	Verdicts         []string        // of Notes, those on how close each run is to equilibrium
	Ranges           []string        // a line on the temperatures of each run, instead of its table
	NotInEquilibrium []string        // names of samplers that are not in equilibrium
	Next             string          // for a single run: the arguments of the command that helps most; "" without a verdict
}

// Summarize summarizes the diagnostics of runs under the given names. It skips runs without
// diagnostics. mixing has what Run.Mixing returned for gathered runs, whose diagnostics have none;
// nil for other runs.
func Summarize(names []string, runs []*bayes.Run, mixing []*diagnostics.Mixing) (s Summary, err error) {
	var all []observed
	for i, run := range runs {
		d, err := run.Diagnostics()
		switch {
		case err == nil:
			d.Predicted = cmp.Or(d.Predicted, mixing[i])
			all = append(all, observed{d, names[i], run.Manifest().Spec})
		case !os.IsNotExist(errors.Cause(err)):
			return s, err
		}
	}
	if len(all) == 0 {
		return s, nil
	}
	s.Chains = chainsTable(all)
	heated := slices.ContainsFunc(all, observed.hasPredictionTemperature)
	var verdicts []string
	for _, o := range all {
		if err := o.addChains(s.Chains, heated); err != nil {
			return s, err
		}
		if m := o.mixing(); m.Images > 0 && s.Notes == nil {
			s.Notes = append(s.Notes, fmt.Sprintf("Predictions of %d held-out images: split R-hat "+
				"is the 95th percentile over images, the effective sample size (ESS) is the median.", m.Images),
				"The ESS counts the chains' states over all steps, not only the samples, so it can exceed their number.")
		}
		verdicts = append(verdicts, o.verdict()...)
		if line := o.temperatureRange(); line != "" {
			s.Ranges = append(s.Ranges, line)
		}
		if o.notInEquilibrium() {
			s.NotInEquilibrium = append(s.NotInEquilibrium, o.name)
		}
	}
	if slices.ContainsFunc(mixing, func(m *diagnostics.Mixing) bool { return m != nil }) {
		s.Notes = append(s.Notes, "The ESS of a gathered run counts only the samples.")
	}
	if s.Temperatures, err = temperatures(all); err != nil {
		return s, err
	}
	if s.Temperatures != nil {
		s.Notes = append(s.Notes, notesOnTemperatures...)
	}
	if heated {
		s.Notes = append(s.Notes, notesOnPredictions...)
	}
	s.Notes, s.Verdicts = append(s.Notes, verdicts...), verdicts
	if len(runs) == 1 && len(runs[0].Manifest().Parts) == 0 {
		s.Next = all[0].next(runs[0].Dir())
	}
	return s, nil
}

// chainsTable returns an empty table of the runs' chains. Convergence comes first; the temperatures
// of predictions, which are only an alarm, come last, where a run has measured them.
func chainsTable(all []observed) *report.Table {
	columns := []report.Column{
		{Title: "samples", Format: "%.0f"}, {Title: "steps", Format: "%.0f"},
		{Title: "split R-hat of predictions"}, {Title: "of " + all[0].Watched}, {Title: "ESS of predictions"}, {Title: "in the tails"},
	}
	if slices.ContainsFunc(all, observed.hasPredictionTemperature) {
		columns = append(columns, report.Column{Title: "T by determination"}, report.Column{Title: "by curvature"})
	}
	return report.NewTable("run", columns...)
}

// addChains adds a run's row to the table of chains, with the temperatures of predictions or
// without.
func (o observed) addChains(table *report.Table, temperatures bool) error {
	m := o.mixing()
	cells := []any{
		float64(o.Samples), float64(o.Made), report.OrDash("%.3f", m.RHat), report.OrDash("%.3f", o.WeightRHat),
		report.OrDash("%.0f", m.BulkESS), report.OrDash("%.0f", m.TailESS),
	}
	if temperatures {
		cells = append(cells, textOrDash(o.Determination), textOrDash(o.Predictions))
	}
	return table.Add(o.name, cells...)
}

// hasPredictionTemperature reports whether the temperature of what predictions depend on was
// measured.
func (o observed) hasPredictionTemperature() bool { return o.Predictions != nil }

func textOrDash(m *diagnostics.Measured) string {
	if m == nil {
		return "-"
	}
	return m.String()
}

// observed is a run with the diagnostics of its chains.
type observed struct {
	*diagnostics.Report
	name string
	spec bayes.Spec
}

// mixing returns the convergence diagnostics of predictions, with NaN for those not measured.
func (o observed) mixing() diagnostics.Mixing {
	if o.Predicted != nil {
		return *o.Predicted
	}
	none := diagnostics.Number(math.NaN())
	return diagnostics.Mixing{RHat: none, BulkESS: none, TailESS: none}
}

// verdict describes how close a sampler's chains are to equilibrium.
func (o observed) verdict() []string {
	if o.spec.Temperature == nil {
		return nil
	}
	var notes []string
	if augment := o.spec.Augment; augment != nil && *augment != (bayes.Augment{}) {
		notes = append(notes, fmt.Sprintf("%s: images were changed at random (%v): temperatures are not for the posterior given the images, see bayes.Augment.",
			o.name, augment))
	}
	if verdict := o.Verdict(o.spec.NoiseTemperature()).Text; verdict != "" {
		notes = append(notes, o.name+": "+verdict+".")
	}
	for _, outlier := range o.Outliers() {
		notes = append(notes, fmt.Sprintf("%s: chain %d spoils the average: its loss while sampling is %.3g, and the median over the chains is %.3g.",
			o.name, o.spec.FirstChain+outlier.Chain, outlier.Loss, outlier.Median))
	}
	if !isNaN(o.Acceptance) {
		notes = append(notes, fmt.Sprintf("%s: mean acceptance probability %.2f.", o.name, float64(o.Acceptance)))
	}
	if o.Diverged > 0 {
		notes = append(notes, fmt.Sprintf("%s: %.1f %% of the trajectories diverged: a higher target-acceptance takes smaller steps.", o.name, 100*o.Diverged))
	}
	if len(o.spec.Temperatures) > 0 {
		notes = append(notes, fmt.Sprintf("%s: %s %% of the swaps between neighbouring temperatures %s were accepted.", o.name,
			report.OrDash("%.0f", 100*float64(o.Swaps)), strings.ReplaceAll(strings.Trim(fmt.Sprint(o.spec.Temperatures), "[]"), " ", ", ")))
	}
	return notes
}

// notInEquilibrium reports whether a sampler's measured temperatures, or predictions that have not
// mixed, show that it is not in equilibrium. R-hat of weights does not count: weights that permute
// never mix.
func (o observed) notInEquilibrium() bool {
	t := o.spec.NoiseTemperature()
	verdict := o.Verdict(t)
	return t > 0 && (o.mixing().RHat >= diagnostics.MixedRHat || verdict.Text != "" && !verdict.InEquilibrium)
}

// next returns the arguments of the command that helps most after a verdict on the run in dir: a
// smaller rate where minibatches heat, several chains where there is only one, and a longer run
// otherwise. A run in equilibrium is ready to predict.
func (o observed) next(dir string) string {
	verdict := o.Verdict(o.spec.NoiseTemperature())
	again := "fit --config " + config.Quoted(filepath.Join(dir, config.ManifestFile))
	dir = config.Quoted(dir)
	constant, _ := strings.CutPrefix(o.spec.Texts()["schedule"], "constant:")
	rate, notConstant := strconv.ParseFloat(constant, 64)
	switch {
	case verdict.Text == "":
		return ""
	case verdict.InEquilibrium && !verdict.Heated:
		return fmt.Sprintf("predict %s IMAGE...", dir)
	case verdict.Heated && notConstant == nil:
		const slower = 4
		return fmt.Sprintf("%s --schedule constant:%.2g --epochs %d", again, rate/slower, slower*o.spec.Epochs)
	case o.spec.Chains == 1:
		return again + " --chains 4"
	}
	return fmt.Sprintf("%s --start %s --seed %d", again, dir, o.spec.Seed+1)
}

func isNaN(n diagnostics.Number) bool { return math.IsNaN(float64(n)) }
