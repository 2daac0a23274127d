package pollen

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/evaluate"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/journal"
	"github.com/pollen-ml/pollen/internal/lock"
	"github.com/pollen-ml/pollen/samples"
)

// Verification is what Verify found.
type Verification struct {
	Format            int             // of the run's files, see docs/formats.md
	Made, Steps       int             // by the newest checkpoint that is whole, and to be made
	Samples, Expected int             // that are whole, and that the finished run has
	Checked           int             // files that are what was written
	Damaged           []*DamagedError // files that are not, and those that are missing
	Notes             []string        // what is no damage, and worth knowing
	Resumable         bool            // Resume goes on, with WithoutDamaged if samples are damaged
}

// String says what was found, in lines.
func (v *Verification) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d files as written, %d damaged or missing; ", v.Checked, len(v.Damaged))
	switch {
	case v.Steps == 0: // the manifest says how many
		fmt.Fprintf(&text, "%d samples are whole, of %d steps: without a whole manifest they cannot be used, nor can it go on", v.Samples, v.Made)
	case v.Samples > v.Expected: // before the run drops some
		fmt.Fprintf(&text, "%d samples can be used, %d are to stay", v.Samples, v.Expected)
	default:
		fmt.Fprintf(&text, "%d of %d samples can be used", v.Samples, v.Expected)
	}
	switch {
	case v.Steps == 0:
	case !v.Resumable:
		fmt.Fprintf(&text, "; it cannot go on from step %d of %d", v.Made, v.Steps)
	case v.Made == v.Steps:
		fmt.Fprintf(&text, "; all %d steps are made", v.Steps)
	default:
		fmt.Fprintf(&text, "; it goes on from step %d of %d", v.Made, v.Steps)
	}
	for _, d := range v.Damaged {
		fmt.Fprintf(&text, "\n  %s: %v", d.File, d.Cause)
	}
	for _, note := range v.Notes {
		fmt.Fprintf(&text, "\n  note: %s", note)
	}
	return text.String()
}

// Verify checks every file of a run, and changes nothing; another process may be writing. Figures
// and pages, which can be made again, are not checked. A folder without a manifest gives
// NotARunError.
func Verify(dir string) (*Verification, error) {
	v := verifying{Verification: &Verification{Format: keepingFormat}, dir: dir}
	m, err := ReadManifest(dir)
	var not *NotARunError
	switch {
	case errors.As(err, &not):
		return nil, err
	case err == nil && len(m.Parts) > 0:
		return verifyParts(dir, m)
	case v.found(err):
		v.Format, v.Steps = m.Format, m.Steps
		if v.Expected, err = (&Run{manifest: m}).Expected(); err != nil {
			return nil, err
		}
	}
	if m != nil {
		for _, c := range m.Continued {
			v.note("%s", c.note())
		}
	}
	if v.Format < sealedFormat {
		v.note("format %d is of a version without checksums and index: what can be read is taken as it is", v.Format)
	}
	if owner, writes := lock.Writing(dir); writes {
		v.note("process %d on %s is writing", owner.Process, owner.Host)
	}
	whole := v.checkpoints()
	v.Resumable = whole && m != nil
	if v.Format >= sealedFormat {
		if v.index, err = readIndex(dir); v.found(err) && v.index.Tail.Torn {
			v.note("%s ends in a torn line, of a process that was killed", index.File)
		}
	}
	for _, name := range []string{samplesDir, statesDir} {
		if err := v.bank(name); err != nil {
			return nil, err
		}
	}
	v.unlisted()
	v.metrics()
	v.json(diagnosticsFile, &Diagnostics{})
	v.json(calibrationFile, &evaluate.Calibration{})
	if err := readJSON(dir, outcomeFile, &outcome{}, v.Format); !os.IsNotExist(errors.Cause(err)) {
		v.found(err)
	}
	return v.Verification, nil
}

// verifyParts checks a gathered run: its own calibration, and its parts, which are what goes on.
func verifyParts(dir string, m *Manifest) (*Verification, error) {
	v := verifying{Verification: &Verification{Format: m.Format, Checked: 1, Resumable: true}, dir: dir}
	v.json(calibrationFile, &evaluate.Calibration{})
	run := &Run{dir: dir, manifest: m}
	for _, place := range run.places() {
		part, err := Verify(place)
		if err != nil {
			v.found(damaged(place, err))
			v.Steps, v.Resumable = v.Steps+m.Steps, false
			continue
		}
		v.Resumable = v.Resumable && part.Resumable
		v.Made, v.Steps = v.Made+part.Made, v.Steps+part.Steps
		v.Samples, v.Expected = v.Samples+part.Samples, v.Expected+part.Expected
		v.Checked += part.Checked
		v.Damaged = append(v.Damaged, part.Damaged...)
		for _, note := range part.Notes {
			v.note("%s: %s", place, note)
		}
	}
	if v.Made < v.Steps {
		v.note("it was gathered: what goes on, and can be resumed, are its parts")
	}
	return v.Verification, nil
}

// verifying is a Verification under way.
type verifying struct {
	*Verification
	dir   string
	index *index.Index // nil if there is none
}

func (v *verifying) note(format string, values ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, values...))
}

// found counts a file that is whole, or remembers what is wrong.
func (v *verifying) found(err error) bool {
	var at *DamagedError
	switch {
	case err == nil:
		v.Checked++
	case errors.As(err, &at):
		v.Damaged = append(v.Damaged, at)
	default:
		v.Damaged = append(v.Damaged, &DamagedError{v.dir, err})
	}
	return err == nil
}

func (v *verifying) path(name string) string {
	return filepath.Join(v.dir, filepath.FromSlash(name))
}

// checkpoints checks both, and reports whether one is whole.
func (v *verifying) checkpoints() (whole bool) {
	missing := 0
	for _, name := range []string{checkpointFile, olderCheckpoint} {
		content, err := os.ReadFile(v.path(name))
		if os.IsNotExist(err) {
			missing++
			continue
		}
		var c parsedCheckpoint
		if err == nil {
			c, err = parseCheckpoint(content, v.Format)
		}
		if err != nil {
			err = damaged(v.path(name), errors.WithMessage(err, "checkpoint"))
		}
		if v.found(err) {
			whole, v.Made = true, max(v.Made, int(c.steps))
		}
	}
	if missing == 2 {
		v.found(damaged(v.path(checkpointFile), errors.New("there is no checkpoint")))
	}
	return whole
}

// bank checks the samples in a folder.
func (v *verifying) bank(dir string) error {
	place := v.path(dir)
	entries, err := os.ReadDir(place)
	if os.IsNotExist(err) && dir == statesDir {
		return nil
	}
	if err != nil {
		v.found(damaged(place, err))
		return nil
	}
	for _, entry := range entries {
		if file.IsTemporary(entry.Name()) {
			v.note("%s is of a process that was killed while it wrote, or is writing", filepath.Join(place, entry.Name()))
		}
	}
	paths, err := samples.NewStore(place).Files()
	if err != nil {
		return err
	}
	for _, path := range paths {
		name := dir + "/" + filepath.Base(path)
		switch {
		case v.index != nil && v.index.Lines[name].Dropped:
			v.note("%s goes, to keep no more than the run is to have", path)
			continue
		case v.index != nil && v.index.Lines[name].Sum == "" && laterThan(filepath.Base(path), v.Made):
			v.note("%s is not listed: it is being written, or was when the process ended; it is not used, and drawn again", path)
			continue
		case v.index != nil && v.index.Lines[name].Sum == "":
			v.found(damaged(path, errors.New(index.File+" does not list it: it is not of this run")))
			continue
		case v.Format < sealedFormat:
			_, _, err = samples.ReadWithChecksum(path)
		default:
			x := v.index
			if x == nil {
				x = &index.Index{}
			}
			_, _, err = sampleLine(path, name, x)
		}
		if os.IsNotExist(errors.Cause(err)) && wasDropped(path) {
			continue // since the folder was read
		}
		if err != nil {
			err = damaged(path, err)
		}
		if v.found(err) && dir == samplesDir {
			v.Samples++
		}
	}
	return nil
}

// unlisted looks for what the index lists and is not there.
func (v *verifying) unlisted() {
	if v.index == nil {
		return
	}
	for _, name := range v.index.Names {
		line := v.index.Lines[name]
		_, err := os.Stat(v.path(name))
		switch {
		case line.Lost != "":
			v.note("the run went on without %s: %s", name, line.Lost)
		case os.IsNotExist(err) && !line.Dropped && !wasDropped(v.path(name)):
			v.found(damaged(v.path(name), errors.New("there is no such file, and "+index.File+" lists it")))
		}
	}
}

func (v *verifying) metrics() {
	path, last := v.path(metricsFile), 0
	if plain, err := hasPlainLines(path); err == nil && plain && v.Format < sealedFormat {
		return
	}
	tail, err := journal.Read(path, func(object []byte) error {
		var line metricsLine
		err := json.Unmarshal(object, &line)
		last = line.Step
		return err
	})
	if err == nil && last < v.Made && v.Format >= sealedFormat {
		err = errors.Errorf("it ends at step %d, and %d steps were made", last, v.Made)
	}
	if err != nil {
		err = damaged(path, err)
	}
	if v.found(err) && tail.Torn {
		v.note("%s ends in a torn line, of a process that was killed", metricsFile)
	}
}

// json checks a file that the run has at its end.
func (v *verifying) json(name string, value any) {
	err := readJSON(v.dir, name, value, v.Format)
	if os.IsNotExist(errors.Cause(err)) {
		return // the index says whether it is to be there
	}
	if err == nil && v.index != nil {
		var line index.Line
		if line, err = lineOf(v.dir, name); err == nil {
			if err = checkListed(name, line.Sum, v.index); err != nil {
				err = damaged(v.path(name), err)
			}
		}
	}
	v.found(err)
}
