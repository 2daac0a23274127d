package command

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
)

// subjectsOf describes runs for figures and tables. in and out may be nil.
func subjectsOf(runs []scoredRun, in, out *datasets.Dataset) []report.Subject {
	var subjects []report.Subject
	for _, r := range runs {
		m := r.run.Manifest()
		s := report.Subject{
			Name: r.name, SeedGroup: m.ButSeed(), Seed: m.Spec.Seed, Optimizer: bayes.IsOptimizer(m.Spec.Method), Assessment: r.assessment,
			InImages: imagesFor(in, m), OutImages: imagesFor(out, m),
		}
		if s.InImages == nil {
			s.InImages = &report.Images{}
		}
		s.InImages.ClassNames = m.Data.ClassNames
		if d, err := r.run.Diagnostics(); err == nil { // a run that is still sampling has none
			s.Watched, s.Trace, s.First, s.Last = d.Watched, d.Trace, d.From, d.Made
			s.WarmLosses = warmLosses(d.WarmStart)
		}
		if v, err := r.run.ValidationTrace(); err == nil { // verify reports a damaged journal
			s.ValidationNLL, s.ValidationLoss = v.NLL, v.Loss
			for _, step := range v.Steps {
				s.ValidationSteps = append(s.ValidationSteps, float64(step))
			}
		}
		subjects = append(subjects, s)
	}
	return subjects
}

// warmLosses returns the losses of each chain in a warm start; nil without one.
func warmLosses(w *diagnostics.WarmStart) (losses [][]float64) {
	if w == nil {
		return nil
	}
	for _, chain := range w.Losses {
		one := make([]float64, len(chain))
		for epoch, loss := range chain {
			one[epoch] = float64(loss)
		}
		losses = append(losses, one)
	}
	return losses
}

func imagesFor(d *datasets.Dataset, m bayes.Manifest) *report.Images {
	if d == nil {
		return nil
	}
	return &report.Images{
		Pixels: d.Images, Channels: d.Channels, Height: d.Height, Width: d.Width, ClassNames: d.ClassNames,
		Names: report.ShortNames(d.Files), Ink: d.Channels == 1 && m.Data.Mean[0] < 0.5 && d.Files == nil,
	}
}

// untilCanceled calls f and returns its error. If the context ends first, it returns that error at
// once, and f continues until it returns or the program ends.
func untilCanceled(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.Wrap(ctx.Err(), "pollen: page")
	}
}

// writePage writes the page and figures of runs into dir, and returns a line with the page's path.
// The page ends with the last sections.
func writePage(ctx context.Context, dir string, runs []scoredRun, in, out *datasets.Dataset, last ...report.Section) (string, error) {
	m := runs[0].run.Manifest()
	sections, err := chainSections(runs)
	if err != nil {
		return "", err
	}
	fidelity, err := fidelitySections(runs)
	if err != nil {
		return "", err
	}
	classes, err := classSections(runs)
	if err != nil {
		return "", err
	}
	sections = append(append(sections, classes...), fidelity...)
	for _, remarks := range dataRemarks(runs) {
		sections = append(sections, report.Section{Title: "Remarks on the data", Text: remarks})
	}
	sections = append(sections, last...)
	subtitle := fmt.Sprintf("%s, %s, %d images", m.NetworkName(), m.Data.Name, m.Data.Size)
	subjects := subjectsOf(runs, in, out)
	if err := untilCanceled(ctx, func() error {
		return report.WritePage(dir, pageTitle(runs), subtitle, subjects, sections...)
	}); err != nil {
		return "", err
	}
	return fmt.Sprintf("Page: %s\n", filepath.Join(dir, report.PageFile)), nil
}

// pageTitle returns the title of a page. It begins with the names of the runs and their data, so
// that one can tell the tabs of a browser apart.
func pageTitle(runs []scoredRun) string {
	m := runs[0].run.Manifest()
	name := fmt.Sprintf("%d runs", len(runs))
	if len(runs) == 1 {
		name = filepath.Base(runs[0].run.Dir())
		if path, err := filepath.Abs(runs[0].run.Dir()); err == nil { // it may be "."
			name = filepath.Base(path)
		}
	}
	return fmt.Sprintf("%s on %s: accuracy, calibration and out-of-distribution detection", name, m.Data.Name)
}

// dataRemarks returns the remarks on each of the runs' training data that has any.
func dataRemarks(runs []scoredRun) [][]string {
	var all [][]string
	for _, r := range runs {
		remarks := r.run.Manifest().Data.Remarks
		if known := func(other []string) bool { return slices.Equal(other, remarks) }; len(remarks) > 0 && !slices.ContainsFunc(all, known) {
			all = append(all, remarks)
		}
	}
	return all
}

// chainSections returns the page's sections on chains and temperatures.
func chainSections(runs []scoredRun) ([]report.Section, error) {
	s, err := summarize(runs)
	if err != nil || s.Chains == nil {
		return nil, err
	}
	sections := []report.Section{{Title: "Chains", Table: s.Chains}}
	for _, table := range s.Temperatures {
		sections = append(sections, report.Section{Title: "Temperatures", Table: table})
	}
	text := &sections[min(1, len(sections)-1)].Text
	for _, note := range s.Notes {
		*text = append(*text, strings.ReplaceAll(note, "\n", " "))
	}
	return sections, nil
}

// predictedSubject describes a run's predictions for images without labels.
func predictedSubject(run *bayes.Run, p *evaluate.Predictions, images *datasets.Dataset) (report.Subject, error) {
	m := run.Manifest()
	s := report.Subject{Name: bayes.MethodName(m.Spec.Method), InImages: imagesFor(images, m)}
	s.InImages.ClassNames = m.Data.ClassNames
	var err error
	s.Assessment, err = evaluate.Assess(evaluate.Case{In: p})
	return s, err
}
