package bayes

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/detector"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/rundir"
)

// Gather makes one run of several parts, whose chains sample the same posterior, in a new or empty
// directory. If copied is true, the run has copies of the parts as they are now. Otherwise it
// refers to their directories, which are read whenever it is used. It is an InvalidError if parts
// differ in anything but seeds, chains, devices and where chains start, or two of them have the
// same chain.
func Gather(dir string, parts []string, copied bool, options ...Option) (*Run, error) {
	if len(parts) == 0 {
		return nil, invalid("gather %s: no runs to gather", dir)
	}
	if err := CheckEmpty(dir); err != nil {
		return nil, err
	}
	m, err := gathered(parts)
	if err != nil {
		return nil, err
	}
	if err := file.MakeDir(dir); err != nil {
		return nil, errors.Wrap(err, "pollen: gather")
	}
	if err := rundir.CopyModel(dir, parts[0]); err != nil {
		return nil, err
	}
	for i, part := range parts {
		place := part
		if copied {
			place = filepath.Join(dir, rundir.PartsDir, fmt.Sprintf("%0*d", len(fmt.Sprint(len(parts)-1)), i))
			run, err := Open(part)
			if err != nil {
				return nil, err
			}
			if err := rundir.Copy(place, run.reader()); err != nil {
				return nil, err
			}
		}
		if place, err = relative(dir, place); err != nil {
			return nil, err
		}
		m.Parts = append(m.Parts, filepath.ToSlash(place))
	}
	m.Continued = nil // the parts have theirs
	if err := rundir.WriteGathered(dir, m); err != nil {
		return nil, err
	}
	return Open(dir, options...)
}

// relative returns the path of a place relative to dir, so that both can be moved together, or the
// absolute path if there is none, such as between two drives of Windows.
func relative(dir, place string) (string, error) {
	place, err := filepath.Abs(place)
	if err != nil {
		return "", errors.Wrap(err, "pollen: gather")
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", errors.Wrap(err, "pollen: gather")
	}
	if path, err := filepath.Rel(dir, place); err == nil {
		return path, nil
	}
	return place, nil
}

// chainOf identifies a chain: chains with the same number and seed are the same.
type chainOf struct {
	seed   uint64
	number int
}

// gathered returns the manifest of a run with these parts: the manifest of the first, with the
// chains of all. It refuses parts of different posteriors, whose samples must not be averaged, and
// a chain that is given twice, which would count double.
func gathered(parts []string) (*Manifest, error) {
	var all *Manifest
	holder := map[chainOf]string{}
	for _, part := range parts {
		m, err := ReadManifest(part)
		if err != nil {
			return nil, err
		}
		if len(m.Parts) > 0 {
			return nil, invalid("gather %s: it is a gathered run: gather its parts", part)
		}
		if m.Teacher != nil {
			return nil, invalid("gather %s: it is a distilled run: gather the parts of its teacher, and distil that", part)
		}
		if all == nil {
			all = m
		} else if what := m.differsFrom(all); what != "" {
			return nil, invalid("gather: %s and %s are not of one posterior: %s", parts[0], part, what)
		}
		for i := range m.Spec.Chains {
			chain := chainOf{m.Spec.Seed, m.Spec.FirstChain + i}
			if other, taken := holder[chain]; taken && other == part {
				return nil, invalid("gather: %s is given twice", part)
			} else if taken {
				return nil, invalid("gather: chain %d of seed %d is in both %s and %s", chain.number, chain.seed, other, part)
			}
			holder[chain] = part
		}
		all.Spec.FirstChain = min(all.Spec.FirstChain, m.Spec.FirstChain)
		if all.Spec.Start != m.Spec.Start {
			all.Spec.Start = "" // the parts have theirs
		}
	}
	all.Spec.Chains = len(holder)
	return all, nil
}

// differsFrom describes a difference that keeps two runs from being parts of one; "" if there is
// none.
func (m *Manifest) differsFrom(other *Manifest) string {
	apart := []string{"seed", "chains", "first-chain", "start"}
	if m.Model != nil && other.Model != nil {
		if m.Model.Digest != other.Model.Digest {
			return "they began with different models"
		}
		apart = append(apart, "model") // the place of the file
	}
	if name, first, second := other.Spec.difference(m.Spec, apart...); name != "" {
		return fmt.Sprintf("%s is %q in the first, %q in the second", name, first, second)
	}
	data, theirs := m.Data, other.Data
	data.Name = theirs.Name
	data.Hashes, theirs.Hashes = nil, nil // the files they came from do not matter
	data.Remarks, theirs.Remarks = nil, nil
	if fmt.Sprint(data) != fmt.Sprint(theirs) { // maps are printed in the order of their keys
		return fmt.Sprintf("the data %s are not the same in the two", m.Data.Name)
	}
	return ""
}

// State is the state of a run.
type State string

// The states. A run is Interrupted if no process runs it and it did not record how it ended: its
// process was killed, or its machine is gone. Interrupted, Stopped and Failed runs can be resumed.
const (
	Running     State = "running"
	Finished    State = "finished"
	Failed      State = "failed"
	Stopped     State = "stopped" // by a signal or its context; it can be resumed
	Interrupted State = "interrupted"
)

// Progress is how far a run is, by the files in its directory.
type Progress struct {
	State State
	// Error is why the run failed or was stopped.
	Error string
	// Host and Process identify the process that runs it, or ran it last.
	Host    string
	Process int
	// Made is the number of steps made, of Steps.
	Made, Steps int
	// Samples is the number of samples on disk, of all chains, and Expected the number in the
	// finished run.
	Samples, Expected int
	// Updated is when it last wrote metrics.
	Updated time.Time
	// PerSecond is the number of steps per second, by the times of its last two samples; NaN before
	// there are two.
	PerSecond float64
}

// Progress returns how far the run is; another process may be running it. For a gathered run, it
// adds up the progress of the parts.
func (r *Run) Progress() (p Progress, err error) {
	parts, err := r.Parts()
	if err != nil {
		return p, err
	}
	if parts != nil {
		return progressOf(parts)
	}
	p = Progress{State: Interrupted, Steps: r.manifest.Steps, PerSecond: math.NaN()}
	if p.Expected, err = r.Expected(); err != nil {
		return p, err
	}
	files, err := r.Samples()
	if err != nil {
		return p, err
	}
	p.Samples = len(files)
	s, err := rundir.ReadStatus(r.dir)
	if err != nil {
		return p, err
	}
	p.Made, p.Updated, p.Host, p.Process = s.Made, s.Updated, s.Host, s.Process
	switch {
	case s.Running:
		p.State = Running
	case s.Outcome != rundir.Outcome{}:
		p.State, p.Error = State(s.Outcome.State), s.Outcome.Error
	}
	p.PerSecond, err = rundir.Speed(files)
	return p, err
}

// progressOf adds up the progress of runs. Their state is the one that most needs attention: a
// failed part makes the whole failed, and it is finished only if all parts are.
func progressOf(parts []*Run) (all Progress, err error) {
	rank := map[State]int{Finished: 0, Running: 1, Stopped: 2, Interrupted: 3, Failed: 4}
	all.State, all.PerSecond = Finished, math.NaN()
	for _, part := range parts {
		p, err := part.Progress()
		if err != nil {
			return all, err
		}
		if rank[p.State] > rank[all.State] {
			all.State, all.Error = p.State, p.Error
		}
		all.Made, all.Steps = all.Made+p.Made, all.Steps+p.Steps
		all.Samples, all.Expected = all.Samples+p.Samples, all.Expected+p.Expected
		if p.Updated.After(all.Updated) {
			all.Updated = p.Updated
		}
		switch {
		case p.State == Finished || math.IsNaN(p.PerSecond):
		case math.IsNaN(all.PerSecond):
			all.PerSecond = p.PerSecond
		default:
			all.PerSecond += p.PerSecond
		}
	}
	return all, nil
}

// Verification is the result of Verify. Its String method lists the findings in lines of text. Its
// fields are
//
//	Made, Steps       int             // by the newest whole checkpoint, and in the finished run
//	Samples, Expected int             // whole samples, and those of the finished run
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
		rundir.DiagnosticsFile: &Diagnostics{}, rundir.DetectorFile: &detector.Detector{}, rundir.CalibrationFile: &evaluate.Calibration{},
		rundir.FidelityFile: &evaluate.Fidelity{},
	})
}

// describeRun returns the description of a run by which package rundir verifies its files. A run
// whose manifest is damaged cannot be described; a damaged model is among what it describes.
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
		_, err := m.Spec.file.load()
		d.Others = append(d.Others, err)
	}
	if d.Parts == nil {
		d.Expected, err = r.Expected()
	}
	for _, c := range m.Continued {
		d.Notes = append(d.Notes, c.note())
	}
	return d, err
}

// CheckEmpty returns an error whose cause is os.ErrExist if dir exists and is not empty. The
// leftovers of a process that was killed before its run had a manifest do not count.
func CheckEmpty(dir string) error { return rundir.CheckEmpty(dir) }

// NewDir returns a directory for a run that does not exist yet: runs/<name>-1, -2, ... Two
// processes that call it at the same time get the same name; Fit then refuses the second.
func NewDir(name string) (string, error) {
	for i := 1; ; i++ {
		dir := filepath.Join("runs", fmt.Sprintf("%s-%d", name, i))
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			return dir, nil
		} else if err != nil {
			return "", errors.Wrap(err, "pollen: run directory")
		}
	}
}
