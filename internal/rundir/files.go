package rundir

import (
	"cmp"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/checksum"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/journal"
	"github.com/pollen-ml/pollen/internal/lock"
)

// The files and directories of a run, relative to its directory.
const (
	ManifestFile    = "manifest.json"
	MetricsFile     = "metrics.jsonl"
	DiagnosticsFile = "diagnostics.json"
	DetectorFile    = "detector.json"
	CalibrationFile = "calibration.json"
	FidelityFile    = "fidelity.json" // how closely a distilled run follows its teacher
	SplitsFile      = "splits.csv.gz" // the images of each split, with predictions for those held out
	OutcomeFile     = "outcome.json"  // how the run ended; absent while it runs and after a kill

	SamplesDir = "samples"
	StatesDir  = "states"  // the states that a method draws its samples from at the end
	ModelDir   = "model"   // a copy of the ONNX file of the network
	LLCDir     = "llc"     // estimates of the local learning coefficient, to continue them
	PartsDir   = "parts"   // copies of the parts of a gathered run
	TargetsDir = "targets" // what the teacher of an unfinished distillation predicts
	damagedDir = "damaged"

	CheckpointFile    = "checkpoint/state.safetensors"
	OlderCheckpoint   = "checkpoint/previous.safetensors" // the one before, in case the newer one is damaged
	DamagedCheckpoint = "checkpoint/damaged.safetensors"  // a damaged one, moved aside when the run was resumed
	FirstCheckpoint   = "checkpoint/first.safetensors"    // at step 0; only with Options.KeepFirst
)

// resultFiles are the JSON files, apart from the manifest, that a run has at its end and that its
// results depend on. Each is listed in the index.
var resultFiles = []string{DiagnosticsFile, DetectorFile, CalibrationFile}

// addedFiles are the files that the index lists besides the manifest, samples and states.
var addedFiles = append(slices.Clone(resultFiles), FidelityFile, SplitsFile)

// Format is the number of the format of runs, and the only one that is read. Change it when older
// programs would misread a run, but not for a new optional member.
const Format = 1

// ReadManifest reads the manifest of the run in dir, checks its format and checksum, and passes its
// content to parse. The error is NotARunError if there is none, and DamagedError if it was changed,
// has another format, or parse returns an error.
func ReadManifest(dir string, parse func(content []byte) error) error {
	path := filepath.Join(dir, ManifestFile)
	content, err := file.Read(path, file.MaxJSON)
	if err != nil {
		return &NotARunError{dir, err}
	}
	if err = checkFormat(content); err == nil {
		if _, err := checksum.Check(content, len(content)); err != nil {
			return damaged(path, err)
		}
		err = parse(content)
	}
	if err == nil {
		return nil
	}
	// A manifest of another format may have no checksum: its error is then about the format. A
	// manifest that was changed is reported as such, whatever else is wrong with it then.
	if _, changed := checksum.Check(content, len(content)); changed != nil && errors.Cause(changed) != checksum.ErrNone {
		err = changed
	}
	return damaged(path, err)
}

// checkFormat refuses manifests of other formats. Their numbers were reset to 1 before the first
// release: manifests with 2, 3 and 4, and those without a number, are older than that.
func checkFormat(content []byte) error {
	var header struct {
		Format *int
		Data   struct{ Deviation json.RawMessage } // "std" since formats were reset
	}
	if err := json.Unmarshal(content, &header); err != nil {
		return errors.Wrap(err, "pollen: manifest")
	}
	const reset = "this run was made by a version of Pollen from before its formats were reset, or by a newer one; train it again, or use that version"
	switch {
	case header.Format == nil:
		return errors.Errorf("pollen: manifest: no format, must be %d: %s", Format, reset)
	case *header.Format != Format:
		return errors.Errorf("pollen: manifest: format must be %d, got %d: %s", Format, *header.Format, reset)
	case header.Data.Deviation != nil:
		return errors.Errorf(`pollen: manifest: data has the member "deviation", now "std": %s`, reset)
	}
	return nil
}

// writeJSON replaces a file in dir by the JSON of a value, with a checksum. The replacement is
// atomic: a reader, or a process after a kill, finds the old file or the new one. may is as in
// file.WriteIf.
func writeJSON(dir, name string, value any, indent string, may func() error) error {
	content, _, err := encodeJSON(name, value, indent)
	if err != nil {
		return err
	}
	return errors.Wrapf(file.WriteIf(filepath.Join(dir, name), content, may), "pollen: %s", name)
}

// encodeJSON returns the content of a JSON file with a checksum, and the file's line in the index.
func encodeJSON(name string, value any, indent string) ([]byte, index.Line, error) {
	content, err := checksum.JSON(value, indent)
	if err != nil {
		return nil, index.Line{}, errors.Wrapf(err, "pollen: %s", name)
	}
	sum, err := checksum.Check(content, len(content))
	return content, index.Line{File: name, Bytes: len(content), Sum: sum}, errors.Wrapf(err, "pollen: %s", name)
}

// readJSON reads what writeJSON wrote. The error's cause is os.ErrNotExist if there is no file, and
// the error is DamagedError if it was changed.
func readJSON(dir, name string, value any) error {
	path := filepath.Join(dir, name)
	content, err := file.Read(path, file.MaxJSON)
	if errors.As(err, new(*file.IrregularError)) {
		return damaged(path, err)
	}
	if err != nil {
		return errors.Wrap(err, "pollen")
	}
	if _, err := checksum.Check(content, len(content)); err != nil {
		return damaged(path, err)
	}
	return errors.Wrapf(json.Unmarshal(content, value), "pollen: %s", path)
}

// ReadFile reads a JSON file of the run in dir. The error's cause is os.ErrNotExist if the run has
// none, and the error is DamagedError if it was changed, or is missing although the index lists it.
func ReadFile[T any](dir, name string) (*T, error) {
	value := new(T)
	err := readJSON(dir, name, value)
	if os.IsNotExist(errors.Cause(err)) {
		if x, reading := ReadIndex(dir); reading == nil && x.Lines[name].Sum != "" {
			// A process that writes the run may have added the file and its line between the reads.
			if err = readJSON(dir, name, value); os.IsNotExist(errors.Cause(err)) {
				err = damaged(filepath.Join(dir, name), errors.New("the file is missing, but "+index.File+" lists it"))
			}
		}
	}
	if err != nil {
		return nil, err
	}
	return value, nil
}

// AddFile writes a JSON file into the directory of a run that no process writes, and lists it in
// the index. It takes the lock meanwhile. If the run has the file already, a kill or a full disk
// leaves the old file or the new one, and a run that is whole. The error is LockedError while
// another process writes.
func AddFile(dir, name string, value any, remark func(string)) error {
	content, line, err := encodeJSON(name, value, "")
	if err != nil {
		return err
	}
	return addListed(dir, remark, func(x *index.Index, to *journal.Writer, may func() error) error {
		return replaceListed(x, to, dir, line, content, may)
	})
}

// CheckWritable returns the error that AddFile would return before it writes: a LockedError while
// another process writes to the run, or that the directory cannot be written to.
func CheckWritable(dir string) error {
	return addListed(dir, func(string) {}, func(*index.Index, *journal.Writer, func() error) error { return nil })
}

// addListed calls write with the index of a run that no process writes, as read and open for more
// lines, and with a function that returns an error if another process has taken the directory over
// since.
func addListed(dir string, remark func(string), write func(x *index.Index, to *journal.Writer, may func() error) error) (err error) {
	held, err := acquire(dir, remark)
	if err != nil {
		return err
	}
	may := func() error { return stillHeld(held) }
	defer func() {
		if err != nil {
			err = cmp.Or(may(), err) // if another process has taken over, the failure is a consequence
		}
		err = cmp.Or(err, errors.Wrap(held.Release(), "pollen"))
	}()
	x, err := ReadIndex(dir)
	if err != nil {
		return err
	}
	to, err := x.Append(dir, may)
	if err != nil {
		return err
	}
	err = write(x, to, may)
	if closed := errors.Wrap(to.Close(), "pollen: index"); err == nil {
		err = closed
	}
	return err
}

// writeGathered writes the index and the manifest of a gathered run.
func writeGathered(dir string, manifest any, may func() error) error {
	listed, err := journal.Create(filepath.Join(dir, index.File), may)
	if err == nil {
		err = writeListedJSON(listed, dir, ManifestFile, manifest, "  ", may)
	}
	if err != nil {
		return errors.WithMessage(err, "pollen: gather")
	}
	return errors.Wrap(listed.Close(), "pollen: gather")
}

// writeListed writes a file of a run and lists it in an open index: in this order, so that after a
// kill in between the file is merely not listed. Had the index been first, the file would count as
// missing.
func writeListed(to *journal.Writer, dir string, line index.Line, content []byte, may func() error) error {
	if err := file.WriteIf(filepath.Join(dir, line.File), content, may); err != nil {
		return errors.Wrapf(err, "pollen: %s", line.File)
	}
	return index.Add(to, line)
}

// writeListedJSON is writeListed for the JSON of a value.
func writeListedJSON(to *journal.Writer, dir, name string, value any, indent string, may func() error) error {
	content, line, err := encodeJSON(name, value, indent)
	if err != nil {
		return err
	}
	return writeListed(to, dir, line, content, may)
}

// replaceListed is writeListed for a file of which x may list an earlier version. The new version
// is then listed once it is on the disk, before it takes the old one's place: readers accept both
// (see index.Line), so that the run is whole after a kill in between. If the index cannot take the
// line, as on a full disk, the old version stays.
func replaceListed(x *index.Index, to *journal.Writer, dir string, line index.Line, content []byte, may func() error) error {
	if x.Lines[line.File].Sum == "" {
		return writeListed(to, dir, line, content, may)
	}
	pending, err := file.Create(filepath.Join(dir, line.File))
	if err != nil {
		return errors.Wrapf(err, "pollen: %s", line.File)
	}
	defer pending.Close()
	if _, err = pending.Write(content); err == nil {
		err = pending.CommitAfter(func() error {
			if err := may(); err != nil {
				return err
			}
			if err := index.Add(to, line); err != nil {
				return err
			}
			return to.Sync()
		})
	}
	return errors.Wrapf(err, "pollen: %s", line.File)
}

// lineOf returns the index's line for a JSON file.
func lineOf(dir, name string) (index.Line, error) {
	line, err := index.OfJSON(dir, name)
	if err != nil {
		return line, damaged(filepath.Join(dir, name), err)
	}
	return line, nil
}

// ReadIndex reads the index of the run in dir. The error is DamagedError.
func ReadIndex(dir string) (*index.Index, error) {
	x, err := index.Read(dir)
	if err != nil {
		return nil, damaged(filepath.Join(dir, index.File), err)
	}
	return x, nil
}

// acquire locks a directory for this process. The error is LockedError if another one has the lock.
// remark receives what a person should know about the lock.
func acquire(dir string, remark func(string)) (*lock.Lock, error) {
	l, err := lock.Take(dir)
	var taken *lock.Taken
	if errors.As(err, &taken) {
		return nil, errors.WithStack(&LockedError{dir, taken.Owner.Host, taken.Owner.Process, err})
	}
	if err != nil {
		return nil, errors.Wrap(err, "pollen")
	}
	if text := l.Remark(); text != "" {
		remark(text)
	}
	return l, nil
}

// stillHeld returns LockedError if another process has taken a lock over.
func stillHeld(l *lock.Lock) error {
	err := l.Check()
	var lost *lock.Lost
	if errors.As(err, &lost) {
		return errors.WithStack(&LockedError{lost.Dir, lost.By.Host, lost.By.Process, err})
	}
	return errors.Wrap(err, "pollen")
}

// copyFile copies a file of a run, by a name with slashes as in the index. It reads all of it
// first, and writes atomically.
func copyFile(to, from, name string) error {
	name = filepath.FromSlash(name)
	opened, err := file.Open(filepath.Join(from, name), 0)
	if err != nil {
		return errors.Wrap(err, "pollen: gather")
	}
	defer opened.Close()
	pending, err := file.Create(filepath.Join(to, name))
	if err != nil {
		return errors.Wrap(err, "pollen: gather")
	}
	defer pending.Close()
	if _, err = io.Copy(pending, opened); err == nil {
		err = pending.Commit()
	}
	return errors.Wrap(err, "pollen: gather")
}
