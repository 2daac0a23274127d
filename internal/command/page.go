package command

import (
	"fmt"
	"path/filepath"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/report"
)

// subjectsOf are runs as figures and tables see them.
func subjectsOf(runs []scoredRun, in, out *datasets.Dataset) []report.Subject {
	var subjects []report.Subject
	for _, r := range runs {
		m := r.run.Manifest()
		s := report.Subject{
			Name: r.name, SeedGroup: m.ButSeed(), Seed: m.Spec.Seed, Optimizer: pollen.IsOptimizer(m.Spec.Method), Assessment: r.assessment,
			InImages: imagesFor(in, m), OutImages: imagesFor(out, m),
		}
		if s.InImages != nil {
			s.InImages.ClassNames = m.Data.ClassNames
		}
		if d, err := r.run.Diagnostics(); err == nil { // a run that is still sampling, or an old one, has none
			s.Watched, s.Trace, s.First, s.Last = d.Watched, d.Trace, d.From, d.Made
		}
		subjects = append(subjects, s)
	}
	return subjects
}

func imagesFor(d *datasets.Dataset, m pollen.Manifest) *report.Images {
	if d == nil {
		return nil
	}
	return &report.Images{
		Pixels: d.Images, Channels: d.Channels, Height: d.Height, Width: d.Width, ClassNames: d.ClassNames,
		Names: report.ShortNames(d.Files), Ink: d.Channels == 1 && m.Data.Mean[0] < 0.5 && d.Files == nil,
	}
}

// writePage writes runs' page and figures into a folder, and returns a line saying so, if any.
func writePage(dir string, runs []scoredRun, in, out *datasets.Dataset) (string, error) {
	m := runs[0].run.Manifest()
	sections, err := chainSections(runs)
	if err != nil {
		return "", err
	}
	subtitle := fmt.Sprintf("%s, %s, %d images", m.Spec.NetworkName(), m.Data.Name, m.Data.Size)
	if err := report.WritePage(dir, "Does it know what it does not know?", subtitle, subjectsOf(runs, in, out), sections...); err != nil {
		return "", err
	}
	return fmt.Sprintf("Page: %s\n", filepath.Join(dir, "report.html")), nil
}

// chainSections describe the chains of runs.
func chainSections(runs []scoredRun) ([]report.Section, error) {
	s, err := summarize(runs)
	if err != nil || s.Chains == nil {
		return nil, err
	}
	sections := []report.Section{{Title: "Chains", Table: s.Chains}}
	for _, table := range s.Temperatures {
		sections = append(sections, report.Section{Title: "Temperatures", Table: table})
	}
	sections[min(1, len(sections)-1)].Text = s.Notes
	return sections, nil
}

// predictedSubject is a run that answered for images of unknown classes.
func predictedSubject(run *pollen.Run, p *evaluate.Predictions, images *datasets.Dataset) (report.Subject, error) {
	m := run.Manifest()
	s := report.Subject{Name: pollen.MethodName(m.Spec.Method), InImages: imagesFor(images, m)}
	s.InImages.ClassNames = m.Data.ClassNames
	var err error
	s.Assessment, err = evaluate.Assess(evaluate.Case{In: p})
	return s, err
}
