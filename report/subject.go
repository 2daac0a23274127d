package report

import (
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/evaluate"
)

// Subject is a run as figures and tables see it. Every field but Name may be left empty: what needs
// it is left out.
type Subject struct {
	Name string
	// SeedGroup is what the run is but for its Seed: subjects with the same are a group, unless it is
	// empty.
	SeedGroup string
	Seed      uint64
	// Optimizer says that the run ends in one network, not in samples of a posterior.
	Optimizer bool
	// Assessment is nil for a run that was not assessed.
	*evaluate.Assessment
	// InImages and OutImages are what In and Out were predicted from, in their order.
	InImages, OutImages *Images
	// Watched names a weight, and Trace is what it was, evenly spaced over the steps after First,
	// up to Last; both 0 is a value for each step.
	Watched     string
	Trace       []float64
	First, Last int
	// Losses has a trace for each chain, of one value every LossEvery steps; 0 counts as 1.
	Losses    [][]float64
	LossEvery int
}

// checkSubjects checks that there are subjects with names of their own, and their images.
func checkSubjects(what string, subjects []Subject) error {
	names := make([]string, len(subjects))
	for i, s := range subjects {
		names[i] = s.Name
		for _, of := range []struct {
			kind        string
			images      *Images
			predictions *evaluate.Predictions
		}{{"InImages", s.InImages, s.in()}, {"OutImages", s.OutImages, s.out()}} {
			if of.images == nil {
				continue
			}
			if err := of.images.check(what + ": " + s.Name + ": " + of.kind); err != nil {
				return err
			}
			if n := of.images.Len(); n > 0 && of.predictions != nil && n != of.predictions.Len() {
				return errors.Errorf("report: %s: %s: %s has %d images for %d predictions, want as many",
					what, s.Name, of.kind, n, of.predictions.Len())
			}
		}
	}
	return checkMethods(what, names)
}

// in are the predictions on data of the kind that was learnt, nil where there are none.
func (s Subject) in() *evaluate.Predictions {
	if s.Assessment == nil {
		return nil
	}
	return s.In
}

// out are the predictions on data of another kind, nil where there are none.
func (s Subject) out() *evaluate.Predictions {
	if s.Assessment == nil {
		return nil
	}
	return s.Out
}

// labelled reports whether In has known labels.
func (s Subject) labelled() bool { return s.in() != nil && s.In.Labels != nil }

// fewest is the least number of examples for which a figure of shares makes sense.
const minExamples = 20

func (s Subject) labelledEnough() bool { return s.labelled() && s.In.Len() >= minExamples }

// all reports whether each subject has a property.
func all(subjects []Subject, property func(Subject) bool) bool {
	return !slices.ContainsFunc(subjects, func(s Subject) bool { return !property(s) })
}

// sameData reports whether all subjects were assessed on the same data.
func sameData(subjects []Subject) bool {
	return all(subjects, func(s Subject) bool {
		return s.in() != nil && s.In.Name == subjects[0].In.Name && s.In.Len() == subjects[0].In.Len()
	})
}

// sameClasses reports whether all subjects were assessed over the same number of classes.
func sameClasses(subjects []Subject) bool {
	return all(subjects, func(s Subject) bool {
		return s.in() != nil && s.In.Classes == subjects[0].In.Classes
	})
}

// sameOut reports whether all subjects were shown the same other kind, or none was shown any.
func sameOut(subjects []Subject) bool {
	first := subjects[0].out()
	return all(subjects, func(s Subject) bool {
		out := s.out()
		return (out == nil) == (first == nil) &&
			(out == nil || out.Name == first.Name && out.Len() == first.Len())
	})
}

// kinds are the names of the data of the kind that was learnt and of the other kind.
func dataNames(subjects []Subject) (in, out string) {
	var ins, outs []string
	for _, s := range subjects {
		if p := s.in(); p != nil && !slices.Contains(ins, p.Name) {
			ins = append(ins, p.Name)
		}
		if p := s.out(); p != nil && !slices.Contains(outs, p.Name) {
			outs = append(outs, p.Name)
		}
	}
	named := func(names []string, or string) string {
		if len(names) == 0 {
			return or
		}
		return strings.Join(names, ", ")
	}
	return named(ins, "its own kind"), named(outs, "another kind")
}
