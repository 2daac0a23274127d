package comparison

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

// Summary describes the chains of runs: length, convergence and temperatures.
type Summary struct {
	Chains           *report.Table   // a row for each run; nil if none has diagnostics
	Temperatures     []*report.Table // measured temperatures of samplers, by layer
	Notes            []string        // explanations of the tables, and how close each run is to equilibrium
	Verdicts         []string        // of Notes, those on how close each run is to equilibrium
	Ranges           []string        // a line on the temperatures of each run, instead of its table
	NotInEquilibrium []string        // names of samplers that are not in equilibrium, or whose predictions have not mixed
}

// Summarize summarizes the diagnostics of runs under the given names. It skips runs without
// diagnostics.
func Summarize(names []string, runs []*pollen.Run) (s Summary, err error) {
	var all []observed
	for i, run := range runs {
		d, err := run.Diagnostics()
		switch {
		case err == nil:
			all = append(all, observed{d, names[i], run.Manifest().Spec})
		case !os.IsNotExist(errors.Cause(err)):
			return s, err
		}
	}
	if len(all) == 0 {
		return s, nil
	}
	s.Chains = report.NewTable("run", report.Column{Title: "samples", Format: "%.0f"}, report.Column{Title: "steps", Format: "%.0f"},
		report.Column{Title: "split R-hat of predictions"}, report.Column{Title: "of " + all[0].Watched},
		report.Column{Title: "ESS of predictions"}, report.Column{Title: "in the tails"})
	var verdicts []string
	for _, o := range all {
		m := o.mixing()
		if err := s.Chains.Add(o.name, float64(o.Samples), float64(o.Made), orDash("%.3f", m.RHat), orDash("%.3f", o.WeightRHat),
			orDash("%.0f", m.BulkESS), orDash("%.0f", m.TailESS)); err != nil {
			return s, err
		}
		if m.Images > 0 && s.Notes == nil {
			s.Notes = append(s.Notes, fmt.Sprintf("Predictions of %d held-out images: split R-hat "+
				"is the 95th percentile over images, the effective sample size (ESS) is the median.", m.Images))
		}
		verdicts = append(verdicts, o.verdict()...)
		if line := o.temperatureRange(); line != "" {
			s.Ranges = append(s.Ranges, line)
		}
		if o.notInEquilibrium() {
			s.NotInEquilibrium = append(s.NotInEquilibrium, o.name)
		}
	}
	if s.Temperatures, err = temperatures(all); err != nil {
		return s, err
	}
	if s.Temperatures != nil {
		s.Notes = append(s.Notes, notesOnTemperatures...)
	}
	s.Notes, s.Verdicts = append(s.Notes, verdicts...), verdicts
	return s, nil
}

// observed is a run with the diagnostics of its chains.
type observed struct {
	*pollen.Diagnostics
	name string
	spec pollen.Spec
}

// requested returns the requested temperature of the posterior.
func (o observed) requested() float64 {
	if o.spec.Temperature == nil {
		return 0
	}
	return *o.spec.Temperature
}

// mixing returns the convergence diagnostics of predictions, with NaN for those not measured.
func (o observed) mixing() pollen.Mixing {
	if o.Predicted != nil {
		return *o.Predicted
	}
	none := pollen.Number(math.NaN())
	return pollen.Mixing{RHat: none, BulkESS: none, TailESS: none}
}

// verdict describes how close a sampler's chains are to equilibrium.
func (o observed) verdict() []string {
	if o.spec.Temperature == nil {
		return nil
	}
	var notes []string
	if augment := o.spec.Augment.String(); augment != "" {
		notes = append(notes, fmt.Sprintf("%s: random augmentation (%s): temperatures are not those of the posterior given the images, see pollen.Augment.",
			o.name, augment))
	}
	if note, _ := o.Equilibrium(o.requested()); note != "" {
		notes = append(notes, o.name+": "+note)
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
	if unmixed := o.unmixed(); len(unmixed) > 0 {
		notes = append(notes, fmt.Sprintf("%s: not mixed: split R-hat of %s above %g. A longer run would mix better.", o.name,
			strings.Join(unmixed, " and "), mixedRHat))
	}
	return notes
}

// notInEquilibrium reports whether a sampler's measured temperatures, or predictions that have not
// mixed, show that it is not in equilibrium. R-hat of weights does not count: weights that permute
// never mix.
func (o observed) notInEquilibrium() bool {
	t := o.requested()
	verdict, all := o.Equilibrium(t)
	return t > 0 && (o.mixing().RHat > mixedRHat || verdict != "" && !all)
}

// unmixed lists the quantities on which the chains disagree.
func (o observed) unmixed() (what []string) {
	if o.mixing().RHat > mixedRHat {
		what = append(what, "predictions")
	}
	if o.WeightRHat > mixedRHat {
		what = append(what, o.Watched)
	}
	return what
}

func isNaN(n pollen.Number) bool { return math.IsNaN(float64(n)) }

func orDash(format string, v pollen.Number) string { return report.OrDash(format, float64(v)) }
