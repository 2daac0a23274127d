package bayes

import (
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/detector"
	"github.com/pollen-ml/pollen/internal/rundir"
)

// Verification is the result of Verify. Its String method lists the findings in lines of text. Its
// fields are
//
//	Made, Steps       int             // by the newest whole checkpoint, and in the finished run
//	Samples, Expected int             // whole samples, and the number in the finished run
//	Checked           int             // number of files that are as they were written
//	Damaged           []*DamagedError // damaged and missing files
//	Notes             []string        // findings that are not damage
//	Resumable         bool            // by Resume, with WithoutDamaged if samples are damaged
type Verification = rundir.Verification

// Verify checks every file of the run in dir and changes nothing; another process may be writing.
// Samples that are whole must also predict finite probabilities for a few images: others, from
// chains that diverged, are listed as damaged. Figures and pages, which can be made again, are not
// checked. The error is NotARunError if there is no manifest.
func Verify(dir string) (*Verification, error) {
	return rundir.Verify(dir, describeRun, map[string]any{
		rundir.DiagnosticsFile: &diagnostics.Report{}, rundir.DetectorFile: &detector.Detector{}, rundir.CalibrationFile: &evaluate.Calibration{},
		rundir.FidelityFile: &evaluate.Fidelity{},
	})
}

// describeRun returns the description of a run that package rundir verifies its files with. A run
// whose manifest is damaged cannot be described; a damaged model is part of the description.
func describeRun(dir string) (*rundir.Description, error) {
	m, err := ReadManifest(dir)
	if err != nil {
		return nil, err
	}
	r := newRun(dir, m, environment{})
	var at *DamagedError
	if _, err := r.Network(); errors.As(err, &at) && filepath.Base(at.File) == rundir.ManifestFile {
		return nil, err
	}
	d := &rundir.Description{Steps: m.Steps, Parts: r.places(), Prober: r.prober}
	if m.Model != nil {
		d.Others = append(d.Others, m.Spec.file.Check())
	}
	if d.Parts == nil {
		d.Expected, err = r.Expected()
	}
	for _, c := range m.Continued {
		d.Notes = append(d.Notes, c.note())
	}
	return d, err
}
