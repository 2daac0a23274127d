package pollen

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/journal"
	"github.com/pollen-ml/pollen/internal/lock"
	"github.com/pollen-ml/pollen/samples"
)

// LockedError is the error of a folder in which another process writes. Reading it is no error.
type LockedError struct {
	Dir     string
	Host    string // "" if not known
	Process int
	Cause   error
}

// Error names the process.
func (b *LockedError) Error() string { return "pollen: " + b.Cause.Error() }

// Unwrap returns how that is known.
func (b *LockedError) Unwrap() error { return b.Cause }

// hold makes this process the only one that writes in a folder, or is Busy.
func hold(dir string, e environment) (*lock.Lock, error) {
	l, err := lock.Take(dir)
	var taken *lock.Taken
	if errors.As(err, &taken) {
		return nil, errors.WithStack(&LockedError{dir, taken.Owner.Host, taken.Owner.Process, err})
	}
	if err != nil {
		return nil, errors.Wrap(err, "pollen")
	}
	if remark := l.Remark(); remark != "" {
		e.remark(remark)
	}
	return l, nil
}

// stillHeld is Busy when another process has taken the folder over: this one was thought dead, and
// must write nothing more.
func (w *writer) stillHeld() error {
	err := w.lock.Check()
	var lost *lock.Lost
	if errors.As(err, &lost) {
		return errors.WithStack(&LockedError{lost.Dir, lost.By.Host, lost.By.Process, err})
	}
	return errors.Wrap(err, "pollen")
}

// halfMade are the names in a folder in which a process was killed before its run had a manifest.
var halfMade = []string{lock.File, lock.Record, samplesDir, statesDir, filepath.Dir(checkpointFile), metricsFile, index.File}

// isAbandonedInit reports whether a folder has nothing but what a process leaves that was killed
// while it began a run: there is nothing in it to be lost.
func isAbandonedInit(dir string, entries []os.DirEntry) bool {
	locked := false
	for _, entry := range entries {
		name := entry.Name()
		locked = locked || name == lock.File
		place := filepath.Join(dir, name)
		switch {
		case name == filepath.Dir(checkpointFile):
			if _, err := os.Stat(filepath.Join(dir, olderCheckpoint)); !os.IsNotExist(err) || checkpointSteps(dir) > 0 {
				return false
			}
		case entry.IsDir():
			if within, err := os.ReadDir(place); err != nil || len(within) > 0 {
				return false
			}
		case name == metricsFile || name == index.File:
			if info, err := entry.Info(); err != nil || info.Size() > 0 {
				return false
			}
		case file.IsTemporary(name):
			continue
		}
		if !slices.Contains(halfMade, name) {
			return false
		}
	}
	return locked
}

// clearHalfMade removes what such a process left, but for the lock, which this process holds.
func clearHalfMade(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return errors.Wrap(err, "pollen: run folder")
	}
	if !isAbandonedInit(dir, entries) {
		return notEmpty(dir)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != lock.File && name != lock.Record {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return errors.Wrap(err, "pollen: run folder")
			}
		}
	}
	return nil
}

// recover makes the files of a run what they were after that many steps: it removes later samples,
// which are drawn again, and makes the index anew. Samples that are damaged or missing are errors,
// unless the run is to go on without them; it then keeps damaged ones in the folder "damaged".
func (w *writer) recover(made int) error {
	before, err := readIndex(w.dir)
	if err != nil {
		w.remark(fmt.Sprintf("%v; the index is made anew from the files", err))
		before = &index.Index{}
	}
	manifest, err := lineOf(w.dir, manifestFile)
	if err != nil {
		return err
	}
	lines := []index.Line{manifest}
	for _, name := range []string{diagnosticsFile, calibrationFile} {
		if line, listed := before.Lines[name]; listed {
			lines = append(lines, line)
		}
	}
	var later []string
	for _, bank := range w.banks() {
		kept, removed, err := w.takeUpBank(bank, made, before)
		if err != nil {
			return err
		}
		lines, later = append(lines, kept...), append(later, removed...)
	}
	tail, err := index.Rewrite(w.dir, append(lines, w.gone(0, made)...))
	if err != nil {
		return err
	}
	for _, place := range later {
		if err := os.Remove(place); err != nil {
			return errors.Wrap(err, "pollen: run folder")
		}
	}
	w.index, err = journal.Append(filepath.Join(w.dir, index.File), tail)
	return errors.Wrap(err, "pollen: index")
}

// takeUpBank checks the samples of a bank: lines of those that stay, and paths of those that go.
func (w *writer) takeUpBank(bank *samples.Store, made int, before *index.Index) (lines []index.Line, later []string, err error) {
	dir := w.dirOf(bank)
	again := bank != w.states || w.drawn // all its samples are drawn again at the end
	files, err := bank.Files()
	if err != nil {
		return nil, nil, err
	}
	there := map[string]bool{}
	for _, place := range files {
		name := dir + "/" + filepath.Base(place)
		line, step, err := sampleLine(place, name, before)
		_, listed := before.Lines[name]
		foreign := err == nil && step <= made && !listed && len(before.Lines) > 0
		_, named, misnamed := samples.ParseFileName(place)
		gone := misnamed == nil && w.retention.plan.SampleAt(named) && named <= made && !w.retention.has(named, made)
		switch {
		case err == nil && step > made, (err != nil || foreign) && again, gone:
			later = append(later, place)
			continue
		case foreign:
			err = w.quarantine(place, errors.New(index.File+" does not list it: it is not of this run"))
		case err == nil:
			lines = append(lines, line)
		default:
			lines = append(lines, index.Line{File: name, Lost: err.Error()})
			err = w.quarantine(place, err)
		}
		if err != nil {
			return nil, nil, err
		}
		there[name] = true
	}
	if again {
		return lines, later, nil
	}
	missing, err := w.missing(dir, made, before, there)
	return append(lines, missing...), later, err
}

// missing are the lines of the samples of that many steps that are not there.
func (w *writer) missing(dir string, made int, before *index.Index, there map[string]bool) (lines []index.Line, err error) {
	for step := 1; step <= made; step++ {
		if !w.retention.has(step, made) {
			continue
		}
		for chain := range w.chains {
			name := dir + "/" + samples.FileName(w.first+chain, step)
			if there[name] {
				continue
			}
			line := before.Lines[name]
			if line.Lost == "" && !line.Dropped {
				cause := errors.New("there is no such file")
				if err := w.goOnWithout(filepath.Join(w.dir, filepath.FromSlash(name)), cause); err != nil {
					return nil, err
				}
				line = index.Line{File: name, Lost: cause.Error()}
			}
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// goOnWithout remarks that a file is left out, if that was asked for; otherwise it is an error.
func (w *writer) goOnWithout(place string, cause error) error {
	if !w.withoutDamaged {
		return damaged(place, cause)
	}
	w.remark(fmt.Sprintf("goes on without %s: %v", place, cause))
	return nil
}

// quarantine goes on without a file, which it keeps where nothing reads it.
func (w *writer) quarantine(place string, cause error) error {
	if err := w.goOnWithout(place, cause); err != nil {
		return err
	}
	aside := filepath.Join(w.dir, "damaged")
	if err := os.MkdirAll(aside, 0o755); err != nil {
		return errors.Wrap(err, "pollen: run folder")
	}
	return errors.Wrap(os.Rename(place, filepath.Join(aside, filepath.Base(place))), "pollen: run folder")
}

// sampleLine is the line of a sample's file, if it is what the index before had.
func sampleLine(place, name string, before *index.Index) (line index.Line, step int, err error) {
	s, sum, err := samples.ReadWithChecksum(place)
	if err != nil {
		return line, 0, err
	}
	if err := checkListed(name, sum, before); err != nil {
		return line, 0, err
	}
	if want := samples.FileName(s.Chain, s.Step); filepath.Base(place) != want {
		return line, 0, errors.Errorf("it holds the sample %s", want)
	}
	info, err := os.Stat(place)
	if err != nil {
		return line, 0, err
	}
	return index.Line{File: name, Bytes: int(info.Size()), Sum: sum}, s.Step, nil
}

// checkListed refuses a sample without a checksum, and one that is not the index's.
func checkListed(name, sum string, x *index.Index) error {
	if sum == "" {
		return errors.New("it has no checksum")
	}
	if line, listed := x.Lines[name]; listed && line.Sum != "" && line.Sum != sum {
		return errors.New("it is another file than the one that " + index.File + " lists")
	}
	return nil
}

// cutBanks removes later samples of a run of an earlier version, which has no index.
func (w *writer) cutBanks(made int) error {
	for _, bank := range w.banks() {
		if err := bank.RemoveAfter(made); err != nil {
			return err
		}
	}
	return nil
}
