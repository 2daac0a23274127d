package report

import (
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/evaluate"
)

// Subject describes a run for figures and tables. All fields except Name may be empty; figures and
// tables that need them are then omitted.
type Subject struct {
	Name string
	// SeedGroup identifies everything about the run except its Seed. Subjects with the same
	// SeedGroup, unless it is "", are averaged over seeds.
	SeedGroup string
	Seed      uint64
	// Optimizer is true if the run results in one network instead of posterior samples.
	Optimizer bool
	// Assessment is nil for a run that was not assessed.
	*evaluate.Assessment
	// InImages and OutImages are the images of In and Out, in the same order.
	InImages, OutImages *Images
	// Watched is the name of a weight. Trace has its values, evenly spaced over the steps after
	// First up to Last, or for each step if both are 0.
	Watched     string
	Trace       []float64
	First, Last int
	// WarmLosses has the losses of each chain in its warm start, on training images held out of it,
	// at its initial values and after each epoch.
	WarmLosses [][]float64
	// ValidationNLL and ValidationLoss are scores on validation images after ValidationSteps steps:
	// of the average of the samples so far, and the mean of the chains, each on its own.
	ValidationSteps, ValidationNLL, ValidationLoss []float64
}

// checkSubjects returns an error unless there are subjects with distinct names and valid images.
func checkSubjects(what string, subjects []Subject) error {
	for _, s := range subjects {
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
				return errors.Errorf("report: %s: %s: %s must have an image for each of %[5]d predictions, got %[4]d",
					what, s.Name, of.kind, n, of.predictions.Len())
			}
		}
	}
	return checkMethods(what, namesOf(subjects))
}

// in returns the in-distribution predictions, or nil.
func (s Subject) in() *evaluate.Predictions {
	if s.Assessment == nil {
		return nil
	}
	return s.In
}

// out returns the out-of-distribution predictions, or nil.
func (s Subject) out() *evaluate.Predictions {
	if s.Assessment == nil {
		return nil
	}
	return s.Out
}

// labelled reports whether In has labels.
func (s Subject) labelled() bool { return s.in() != nil && s.In.Labels != nil }

// minExamples is the smallest number of examples for a figure of fractions.
const minExamples = 20

func (s Subject) labelledEnough() bool { return s.labelled() && s.In.Len() >= minExamples }

// all reports whether all subjects have a property.
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

// sameOut reports whether all subjects have the same out-of-distribution data, or none has any.
func sameOut(subjects []Subject) bool {
	first := subjects[0].out()
	return all(subjects, func(s Subject) bool {
		out := s.out()
		return (out == nil) == (first == nil) &&
			(out == nil || out.Name == first.Name && out.Len() == first.Len())
	})
}

// namesOf returns the names of the subjects.
func namesOf(subjects []Subject) []string {
	names := make([]string, len(subjects))
	for i, s := range subjects {
		names[i] = s.Name
	}
	return names
}

// dataNames returns the names of the in-distribution and out-of-distribution data.
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
	return named(ins, "in-distribution data"), named(outs, "out-of-distribution data")
}
