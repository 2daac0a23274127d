package rundir

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/journal"
	"github.com/pollen-ml/pollen/samples"
)

// Recover locks the directory of an interrupted run and restores its files to what they were at its
// newest whole checkpoint, which it passes to restore. Later samples and metrics are removed, since
// they are drawn again to the same bits, and the index is rewritten from the files.
//
// Samples that are damaged or missing are a DamagedError, unless the Writer may continue without
// them: damaged ones are then moved into the directory "damaged".
//
// Recover may itself be killed at any point and repeated: each of its parts does nothing if it has
// been done before, and nothing is removed that the checkpoint needs.
func (w *Writer) Recover(restore func(Checkpoint) error) error {
	if err := w.acquire(); err != nil {
		return err
	}
	if err := sweep(w.dir); err != nil {
		return err
	}
	// The run is in progress again, whatever its last outcome was.
	if err := os.Remove(filepath.Join(w.dir, OutcomeFile)); err != nil && !os.IsNotExist(err) {
		return errors.Wrap(err, "pollen: run directory")
	}
	c, problems, err := readCheckpoint(w.dir)
	if err != nil {
		return err
	}
	// The damaged file must not be renamed to OlderCheckpoint by the next checkpoint, over the one
	// that is whole.
	for _, problem := range problems {
		w.options.Remark(fmt.Sprintf("%v; continuing from the checkpoint before, after %d steps", problem, c.Steps))
		if err := file.Move(problem.File, filepath.Join(w.dir, DamagedCheckpoint)); err != nil {
			return errors.Wrap(err, "pollen: checkpoint")
		}
	}
	if limit := w.options.Retention.Plan.Steps; c.Steps > limit {
		return damaged(filepath.Join(w.dir, CheckpointFile), errors.Errorf("checkpoint: steps must be at most %d, got %d", limit, c.Steps))
	}
	if err := restore(c); err != nil {
		return damaged(filepath.Join(w.dir, CheckpointFile), errors.WithMessage(err, "checkpoint"))
	}
	if err := w.recoverSamples(c.Steps); err != nil {
		return err
	}
	files, err := w.samples.Files()
	if err != nil {
		return err
	}
	// What was to be dropped up to this step was dropped just now, see recoverStore.
	w.count, w.dropped = len(files), c.Steps
	tail, err := w.cutMetrics(c.Steps)
	if err != nil {
		return err
	}
	w.metrics, err = journal.Append(filepath.Join(w.dir, MetricsFile), tail)
	return errors.Wrap(err, "pollen: metrics")
}

// recoverSamples restores samples, states and the index to what they were after made steps. The
// index is replaced before the later files are removed: a file that is not listed is harmless,
// while a listed one that is missing would be damage.
func (w *Writer) recoverSamples(made int) error {
	before, err := ReadIndex(w.dir)
	if err != nil {
		w.options.Remark(fmt.Sprintf("%v; the index is rewritten from the files", err))
		before = &index.Index{}
	}
	manifest, err := lineOf(w.dir, ManifestFile)
	if err != nil {
		return err
	}
	lines := []index.Line{manifest}
	for _, name := range addedFiles {
		lines = append(lines, before.LinesOf(name)...)
	}
	// Dropped samples stay listed as dropped, so that readers and Verify do not miss them.
	var later []string
	for _, store := range w.stores() {
		kept, removed, err := w.recoverStore(store, made, before)
		if err != nil {
			return err
		}
		lines, later = append(lines, kept...), append(later, removed...)
	}
	tail, err := index.Rewrite(w.dir, append(lines, w.droppedBetween(0, made)...), w.Check)
	if err != nil {
		return err
	}
	if err := w.Check(); err != nil {
		return err
	}
	for _, place := range later {
		if err := os.Remove(place); err != nil {
			return errors.Wrap(err, "pollen: run directory")
		}
	}
	w.index, err = journal.Append(filepath.Join(w.dir, index.File), tail)
	return errors.Wrap(err, "pollen: index")
}

// recoverStore checks the samples of a store. It returns the lines of those that stay and the paths
// of those to remove: later ones, dropped ones, and all that are drawn again at the end of the run.
//
// A listed sample up to the checkpoint must be there and whole. A file that the index does not
// list, of a step up to the checkpoint, is foreign: the checkpoint is written after the index, so
// this run did not write it. Without an index, every whole file with the right name is accepted.
func (w *Writer) recoverStore(store *samples.Store, made int, before *index.Index) (lines []index.Line, later []string, err error) {
	dir, kept := w.nameOf(store), w.options.Retention
	again := store != w.states || w.options.Drawn // all its samples are drawn again at the end
	files, err := store.Files()
	if err != nil {
		return nil, nil, err
	}
	present := map[string]bool{}
	for _, place := range files {
		name := dir + "/" + filepath.Base(place)
		line, s, err := sampleLine(place, name, before)
		step := s.Step
		_, listed := before.Lines[name]
		foreign := err == nil && step <= made && !listed && len(before.Lines) > 0
		// Dropping goes by the name only: a dropped sample need not be whole.
		_, named, misnamed := samples.ParseFileName(place)
		dropped := misnamed == nil && kept.Plan.SampleAt(named) && named <= made && !kept.Has(named, made)
		switch {
		case err == nil && step > made, (err != nil || foreign) && again, dropped:
			later = append(later, place)
			continue
		case foreign:
			err = w.quarantine(place, errNotListed)
		case err == nil:
			lines = append(lines, line)
		default:
			lines = append(lines, index.Line{File: name, Lost: err.Error()})
			err = w.quarantine(place, err)
		}
		if err != nil {
			return nil, nil, err
		}
		present[name] = true
	}
	if again {
		return lines, later, nil
	}
	missing, err := w.missing(dir, made, before, present)
	return append(lines, missing...), later, err
}

// missing returns the lines of the samples that a run has after made steps and that are not
// present. It goes through the plan and not the index, which may itself be lost. A sample that was
// lost before stays lost without another error.
func (w *Writer) missing(dir string, made int, before *index.Index, present map[string]bool) (lines []index.Line, err error) {
	for step := 1; step <= made; step++ {
		if !w.options.Retention.Has(step, made) {
			continue
		}
		for chain := range w.options.Chains {
			name := dir + "/" + samples.FileName(w.options.FirstChain+chain, step)
			if present[name] {
				continue
			}
			line := before.Lines[name]
			if line.Lost == "" && !line.Dropped {
				cause := errors.New("there is no such file")
				if err := w.skip(filepath.Join(w.dir, filepath.FromSlash(name)), cause); err != nil {
					return nil, err
				}
				line = index.Line{File: name, Lost: cause.Error()}
			}
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// skip remarks that the run continues without a file, if it may; otherwise it returns DamagedError.
func (w *Writer) skip(place string, cause error) error {
	if !w.options.WithoutDamaged {
		return damaged(place, cause)
	}
	w.options.Remark(fmt.Sprintf("continuing without %s: %v", place, cause))
	return nil
}

// quarantine continues without a file, which it moves into the directory "damaged", where nothing
// reads it and a person can look at it.
func (w *Writer) quarantine(place string, cause error) error {
	if err := w.skip(place, cause); err != nil {
		return err
	}
	if err := w.Check(); err != nil {
		return err
	}
	aside := filepath.Join(w.dir, damagedDir)
	if err := file.MakeDir(aside); err != nil {
		return errors.Wrap(err, "pollen: run directory")
	}
	return errors.Wrap(os.Rename(place, filepath.Join(aside, filepath.Base(place))), "pollen: run directory")
}

// cutMetrics removes the lines after a step and a torn one, and returns where the rest ends. Lines
// up to that step that were changed or are missing are an error, unless the run is to continue
// without damaged files: it then keeps the lines before them.
func (w *Writer) cutMetrics(steps int) (journal.Tail, error) {
	path := filepath.Join(w.dir, MetricsFile)
	var kept []json.RawMessage
	last := 0
	_, err := journal.Read(path, func(object []byte) error {
		var line Metrics
		if err := json.Unmarshal(object, &line); err != nil {
			return errors.Wrap(err, "pollen: metrics")
		}
		if line.Step <= steps {
			kept, last = append(kept, json.RawMessage(object)), line.Step
		}
		return nil
	})
	if os.IsNotExist(errors.Cause(err)) {
		err = nil
	}
	if err == nil && last < steps {
		err = endsEarly(last, steps)
	}
	// Damage after the checkpoint does not matter: these lines are written again.
	if err != nil && last < steps { // otherwise what is damaged comes after
		if !w.options.WithoutDamaged {
			return journal.Tail{}, damaged(path, err)
		}
		w.options.Remark("continuing without the rest of " + path + ": " + err.Error())
	}
	tail, err := journal.Rewrite(path, w.Check, func(add func(any) error) error {
		for _, object := range kept {
			if err := add(object); err != nil {
				return err
			}
		}
		return nil
	})
	return tail, errors.Wrap(err, "pollen: metrics")
}

// sweep removes the temporary files of a process that was killed while it wrote. This process holds
// the lock, so that no other is writing one now.
func sweep(dir string) error {
	for _, within := range []string{".", SamplesDir, StatesDir, filepath.Dir(CheckpointFile)} {
		if err := file.Sweep(filepath.Join(dir, within)); err != nil {
			return errors.Wrap(err, "pollen: run directory")
		}
	}
	return nil
}
