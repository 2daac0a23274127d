package rundir

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/journal"
	"github.com/pollen-ml/pollen/internal/lock"
	"github.com/pollen-ml/pollen/samples"
)

// Verification is the result of Verify.
type Verification struct {
	// Made is the number of steps made by the newest whole checkpoint, and Steps the number to be
	// made, 0 without a whole manifest.
	Made, Steps int
	// Samples is the number of whole samples, and Expected the number in the finished run.
	Samples, Expected int
	// Checked is the number of files that are intact.
	Checked int
	// Damaged are the files that were changed or are missing.
	Damaged []*DamagedError
	// Notes are findings that are no damage, such as a torn line at the end of a journal.
	Notes []string
	// Resumable reports whether the run can be resumed, without damaged files if samples are
	// damaged.
	Resumable bool
}

// String lists the findings in lines of text.
func (v *Verification) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d files as written, %d damaged or missing; ", v.Checked, len(v.Damaged))
	switch {
	case v.Steps == 0: // without a manifest
		fmt.Fprintf(&text, "%d samples are whole, of %d steps: without a whole manifest they cannot be used, and the run cannot be resumed", v.Samples, v.Made)
	case v.Samples > v.Expected: // before the run drops some
		fmt.Fprintf(&text, "%d samples can be used, %d will be kept", v.Samples, v.Expected)
	default:
		fmt.Fprintf(&text, "%d of %d samples can be used", v.Samples, v.Expected)
	}
	switch {
	case v.Steps == 0:
	case !v.Resumable:
		fmt.Fprintf(&text, "; it cannot be resumed from step %d of %d", v.Made, v.Steps)
	case v.Made == v.Steps:
		fmt.Fprintf(&text, "; all %d steps are made", v.Steps)
	default:
		fmt.Fprintf(&text, "; it can be resumed from step %d of %d", v.Made, v.Steps)
	}
	for _, d := range v.Damaged {
		fmt.Fprintf(&text, "\n  %s: %v", d.File, d.Cause)
	}
	for _, note := range v.Notes {
		fmt.Fprintf(&text, "\n  note: %s", note)
	}
	return text.String()
}

// Description is what Verify needs from a manifest.
type Description struct {
	// Steps is the number of steps to be made, and Expected the number of samples of the finished
	// run.
	Steps, Expected int
	// Parts are the directories of a gathered run's parts; none otherwise.
	Parts []string
	// Notes are added to the Verification's.
	Notes []string
	// Others are the results of checking files that Verify does not know: a DamagedError, or nil.
	Others []error
	// Prober returns a function that checks what a whole sample predicts, and one that frees its
	// memory. It is called before the first sample.
	Prober func() (check func(samples.Sample) error, end func(), err error)
}

// Verify checks every file of the run in dir and changes nothing; another process may be writing.
// describe decodes the manifest, and files are values that the run's JSON files, by name, must
// decode into. Figures and pages, which can be made again, are not checked. The error is
// NotARunError if there is no manifest.
func Verify(dir string, describe func(dir string) (*Description, error), files map[string]any) (*Verification, error) {
	d, err := describe(dir)
	if errors.As(err, new(*NotARunError)) {
		return nil, err
	}
	v := verifier{Verification: &Verification{}, dir: dir, files: files}
	v.found(err)
	if err == nil {
		for _, err := range d.Others {
			v.found(err)
		}
		if len(d.Parts) > 0 {
			v.parts(d, describe)
			return v.Verification, nil
		}
		v.Steps, v.Expected, v.Notes = d.Steps, d.Expected, d.Notes
	}
	if owner, writes := lock.Writing(dir); writes {
		v.note("process %d on %s is writing", owner.Process, owner.Host)
	}
	// As in Reader.List, before the index: what is listed meanwhile is of later steps.
	whole := v.checkpoints()
	v.Resumable = whole && d != nil
	v.readIndex()
	if d != nil {
		defer v.probe(d)()
	}
	for _, name := range []string{SamplesDir, StatesDir} {
		if err := v.store(name); err != nil {
			return nil, err
		}
	}
	v.missing()
	v.metrics()
	v.json()
	v.splits()
	outcome := Outcome{}
	if err := readJSON(dir, OutcomeFile, &outcome); !os.IsNotExist(errors.Cause(err)) {
		if v.found(err) && outcome.State == failedState {
			v.note("it failed, and may fail again when it is resumed: %s", outcome.Error)
		}
	}
	return v.Verification, nil
}

// readIndex checks the index, which other files are checked against.
func (v *verifier) readIndex() {
	x, err := ReadIndex(v.dir)
	if !v.found(err) {
		return
	}
	if v.index = x; x.Tail.Torn {
		v.note("%s ends in a torn line, of a process that was killed", index.File)
	}
}

// parts checks a gathered run: its own calibration, and its parts.
func (v *verifier) parts(d *Description, describe func(string) (*Description, error)) {
	v.Resumable = true
	v.readIndex()
	v.missing()
	v.json()
	for _, place := range d.Parts {
		part, err := v.part(place, describe)
		if err != nil {
			v.found(damaged(place, err))
			v.Steps, v.Resumable = v.Steps+d.Steps, false
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
		v.note("it is a gathered run: its parts can be resumed")
	}
}

// part checks a part of a gathered run, which must not be gathered itself: it might be a part of
// itself.
func (v *verifier) part(place string, describe func(string) (*Description, error)) (*Verification, error) {
	if d, err := describe(place); err == nil && len(d.Parts) > 0 {
		return nil, NestedError(place)
	}
	return Verify(place, describe, v.files)
}

// NestedError returns the error of a gathered run whose part is a gathered run.
func NestedError(place string) error {
	return errors.Errorf("its part %s must not be a gathered run", place)
}

// verifier is a Verification in progress.
type verifier struct {
	*Verification
	dir   string
	files map[string]any
	index *index.Index // nil without one
	check func(samples.Sample) error
}

// probe prepares to check what samples predict, and returns a function that frees the memory for
// it. Runs whose network cannot be made here get a note.
func (v *verifier) probe(d *Description) (end func()) {
	entries, err := os.ReadDir(v.path(SamplesDir))
	if err != nil || len(entries) == 0 || d.Prober == nil {
		return func() {}
	}
	check, end, err := d.Prober()
	if err != nil {
		v.note("what the samples predict was not checked: %v", err)
		return func() {}
	}
	v.check = check
	return end
}

func (v *verifier) note(format string, values ...any) {
	v.Notes = append(v.Notes, fmt.Sprintf(format, values...))
}

// found counts a file if err is nil, and records the damage otherwise. It reports whether err is
// nil.
func (v *verifier) found(err error) bool {
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

func (v *verifier) path(name string) string {
	return filepath.Join(v.dir, filepath.FromSlash(name))
}

// checkpoints checks all checkpoints, and reports whether one of the last two is whole.
func (v *verifier) checkpoints() (whole bool) {
	missing := 0
	for _, name := range []string{CheckpointFile, OlderCheckpoint, FirstCheckpoint} {
		last := name != FirstCheckpoint // which few runs have
		content, err := checksum.ReadFile(v.path(name))
		if os.IsNotExist(errors.Cause(err)) {
			if last {
				missing++
			}
			continue
		}
		var c Checkpoint
		if err == nil {
			c, err = decodeCheckpoint(content)
		}
		if err == nil && v.Steps > 0 && c.Steps > v.Steps {
			err = errors.Errorf("steps must be at most %d, got %d", v.Steps, c.Steps)
		}
		if err != nil {
			err = damaged(v.path(name), errors.WithMessage(err, "checkpoint"))
		}
		if v.found(err) && last {
			whole, v.Made = true, max(v.Made, c.Steps)
		}
	}
	if missing == 2 {
		v.found(damaged(v.path(CheckpointFile), errors.New("there is no checkpoint")))
	}
	return whole
}

// store checks the samples in a directory, reading each of them. A directory of states exists only
// for methods that collect states.
func (v *verifier) store(dir string) error {
	place := v.path(dir)
	entries, err := os.ReadDir(place)
	if os.IsNotExist(err) && dir == StatesDir {
		return nil
	}
	if err != nil {
		v.found(damaged(place, err))
		return nil
	}
	for _, entry := range entries {
		if file.IsTemporary(entry.Name()) {
			v.note("%s is being written, or was when its process was killed", filepath.Join(place, entry.Name()))
		}
	}
	paths, err := samples.NewStore(place).Files()
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := v.sample(dir, path); err == nil && dir == SamplesDir {
			v.Samples++
		}
	}
	return nil
}

// errNotUsed marks a file that is whole, but no sample of the run.
var errNotUsed = errors.New("not used")

// sample checks a sample's file. The error is nil if it is whole and belongs to the run.
func (v *verifier) sample(dir, path string) error {
	name, x := dir+"/"+filepath.Base(path), v.index
	if x == nil {
		x = &index.Index{}
	}
	if v.index != nil && x.Lines[name].Sum == "" {
		switch {
		case x.Lines[name].Dropped:
			v.note("%s is going to be removed, because the run keeps no more", path)
		case laterThan(filepath.Base(path), v.Made):
			v.note("%s is not listed: it is being written, or was when the process ended; it is not used, and will be drawn again", path)
		default:
			v.found(damaged(path, errNotListed))
		}
		return errNotUsed
	}
	_, s, err := sampleLine(path, name, x)
	if err == nil && dir == SamplesDir {
		err = checkWeight(s)
	}
	if err == nil && v.check != nil && dir == SamplesDir {
		err = v.check(s)
	}
	if os.IsNotExist(errors.Cause(err)) && wasDropped(path) {
		return errNotUsed // since the directory was read
	}
	if err != nil {
		err = damaged(path, err)
	}
	v.found(err)
	return err
}

// missing looks for files that the index lists and that are missing. One that was dropped since the
// index was read is not.
func (v *verifier) missing() {
	if v.index == nil {
		return
	}
	for _, name := range v.index.Names {
		line := v.index.Lines[name]
		_, err := os.Stat(v.path(name))
		switch {
		case line.Lost != "":
			v.note("the run continued without %s: %s", name, line.Lost)
		case os.IsNotExist(err) && !line.Dropped && !wasDropped(v.path(name)):
			v.found(damaged(v.path(name), errMissing))
		}
	}
}

// metrics checks the journal of metrics, which must reach the newest checkpoint. A torn last line
// is no damage: a kill can leave one, and Recover removes it.
func (v *verifier) metrics() {
	path, last := v.path(MetricsFile), 0
	tail, err := journal.Read(path, func(object []byte) error {
		var line Metrics
		err := json.Unmarshal(object, &line)
		last = line.Step
		return err
	})
	if err == nil && last < v.Made {
		err = endsEarly(last, v.Made)
	}
	if err != nil {
		err = damaged(path, err)
	}
	if v.found(err) && tail.Torn {
		v.note("%s ends in a torn line, of a process that was killed", MetricsFile)
	}
}

// json checks the JSON files that a run has at its end.
func (v *verifier) json() {
	for _, name := range append([]string{FidelityFile}, resultFiles...) {
		err := readJSON(v.dir, name, v.files[name])
		if os.IsNotExist(errors.Cause(err)) {
			continue // missing reports it if the index lists it
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
}
