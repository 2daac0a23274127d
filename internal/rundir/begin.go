package rundir

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/journal"
	"github.com/pollen-ml/pollen/internal/lock"
)

// Begin makes the directory of a new run, which must not exist or be empty, with the checkpoint and
// the manifest that initial returns. initial is called once the directory is locked. The manifest
// is written last: a directory that has one is a run that can be resumed. After an error the
// directory is removed.
//
// What a kill leaves: before the manifest, a directory that CheckEmpty regards as empty, so that
// the same command can simply be repeated; after it, a run at step 0 that Recover continues.
func (w *Writer) Begin(initial func() (first Checkpoint, manifest any, err error)) error {
	if err := file.MakeDir(w.dir); err != nil {
		return errors.Wrap(err, "pollen: run directory")
	}
	if err := w.acquire(); err != nil {
		return err
	}
	// Only under the lock: otherwise these could be the files of a process that initializes right
	// now.
	if err := clearAbandonedInit(w.dir); err != nil {
		return err
	}
	if err := w.initialize(initial); err != nil {
		if w.Check() == nil {
			w.closeJournals() // the error to report is the one before
		}
		return undo(w.dir, w.lock, err)
	}
	return nil
}

// Gather makes the directory of a gathered run, which must not exist or be empty, with the manifest
// that initial returns after it has copied what the run needs. Errors and kills leave no more
// behind than in Begin. remark receives what a person should know about the lock.
func Gather(dir string, remark func(string), initial func() (manifest any, err error)) (err error) {
	if err := file.MakeDir(dir); err != nil {
		return errors.Wrap(err, "pollen: gather")
	}
	held, err := acquire(dir, remark)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, errors.Wrap(held.Release(), "pollen")) }()
	if err := clearAbandonedInit(dir); err != nil {
		return err
	}
	manifest, err := initial()
	if err == nil {
		err = writeGathered(dir, manifest, func() error { return stillHeld(held) })
	}
	if err != nil {
		return undo(dir, held, err)
	}
	return nil
}

// initialize makes everything that a run has before its first step. Both journals are open from
// here on.
func (w *Writer) initialize(initial func() (Checkpoint, any, error)) error {
	for _, store := range w.stores() {
		if err := store.Create(); err != nil {
			return err
		}
	}
	var err error
	if w.metrics, err = journal.Create(filepath.Join(w.dir, MetricsFile), w.Check); err != nil {
		return errors.Wrap(err, "pollen: metrics")
	}
	if w.index, err = journal.Create(filepath.Join(w.dir, index.File), w.Check); err != nil {
		return errors.Wrap(err, "pollen: index")
	}
	// Work that may take long, such as loading another run's samples, comes after the lock and
	// before the manifest.
	first, manifest, err := initial()
	if err != nil {
		return err
	}
	if w.options.KeepFirst {
		if err := w.writeFirst(first); err != nil {
			return err
		}
	}
	if err := w.writeCheckpoint(first); err != nil {
		return err
	}
	return w.Write(ManifestFile, manifest, "  ")
}

// undo removes the directory of a run that could not be made because of an error, which it returns.
// If another process has taken the directory over, its files stay.
func undo(dir string, held *lock.Lock, err error) error {
	if held.Check() != nil {
		return err
	}
	if removing := os.RemoveAll(dir); removing != nil {
		return errors.WithMessagef(err, "pollen: an incomplete run could not be removed (%v)", removing)
	}
	return err
}

// CheckEmpty returns an error that is os.ErrExist if dir exists and is not empty. The
// leftovers of a process that was killed before its run had a manifest do not count.
func CheckEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return errors.Wrap(err, "pollen: run directory")
	}
	if len(entries) > 0 && !isAbandonedInit(dir, entries) {
		return notEmpty(dir)
	}
	return nil
}

func notEmpty(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, ManifestFile)); err == nil {
		return errors.WithStack(&notEmptyError{dir, ": it has a run; resume that run, or choose another directory"})
	}
	return errors.WithStack(&notEmptyError{dir, ""})
}

// beforeManifest are the names that a directory may have before its run has a manifest. Any other
// name is a file of the user's, which must not be removed.
var beforeManifest = []string{lock.File, lock.Record, SamplesDir, StatesDir, ModelDir, PartsDir, filepath.Dir(CheckpointFile), MetricsFile, index.File}

// isAbandonedInit reports whether dir contains only the leftovers of a process that was killed
// while it initialized a run, so that nothing is lost when they are removed. It is deliberately
// strict: there must be a lock file, the journals must be empty, the directories of samples too,
// and the checkpoint must be the only one and at step 0.
func isAbandonedInit(dir string, entries []os.DirEntry) bool {
	locked := false
	for _, entry := range entries {
		name := entry.Name()
		locked = locked || name == lock.File
		place := filepath.Join(dir, name)
		switch {
		case name == filepath.Dir(CheckpointFile):
			if _, err := os.Stat(filepath.Join(dir, OlderCheckpoint)); !os.IsNotExist(err) || checkpointSteps(dir) > 0 {
				return false
			}
		case name == ModelDir, name == PartsDir: // copies
		case entry.IsDir():
			if within, err := os.ReadDir(place); err != nil || len(within) > 0 {
				return false
			}
		case name == MetricsFile || name == index.File:
			if info, err := entry.Info(); err != nil || info.Size() > 0 {
				return false
			}
		case file.IsTemporary(name):
			continue
		}
		if !slices.Contains(beforeManifest, name) {
			return false
		}
	}
	return locked
}

// clearAbandonedInit removes the leftovers of a killed process, except the lock, which this process
// holds.
func clearAbandonedInit(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return errors.Wrap(err, "pollen: run directory")
	}
	if !isAbandonedInit(dir, entries) {
		return notEmpty(dir)
	}
	for _, entry := range entries {
		if name := entry.Name(); name != lock.File && name != lock.Record {
			if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
				return errors.Wrap(err, "pollen: run directory")
			}
		}
	}
	return nil
}
