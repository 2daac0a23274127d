package rundir

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/journal"
	"github.com/pollen-ml/pollen/internal/lock"
	"github.com/pollen-ml/pollen/samples"
)

// Options describe what a Writer writes.
type Options struct {
	// FirstChain is the number of the first of Chains chains, which are in the samples' file names.
	FirstChain, Chains int
	// Retention decides which states are kept.
	Retention Retention

	// States means that the kept states are not samples: they are written into StatesDir, and
	// samples are drawn from them at the end.
	States bool
	// Drawn means that samples are drawn at the end, and that no states are kept.
	Drawn bool

	// KeepFirst means that the checkpoint at step 0 is kept in FirstCheckpoint, too.
	KeepFirst bool

	// WithoutDamaged recovers without damaged and missing files; they are errors otherwise.
	WithoutDamaged bool
	// Remark receives sentences for a person.
	Remark func(text string)
}

// Writer writes the directory of a run. While it is open no other process writes there, and what it
// lists in the index is on the disk. Its methods are called from one goroutine; only Checkpoint
// works in the background, between its return and Wait.
type Writer struct {
	dir     string
	options Options

	samples *samples.Store
	states  *samples.Store // where states are kept: samples itself, or another store

	lock    *lock.Lock // nil before Begin or Recover
	index   *journal.Writer
	metrics *journal.Writer

	saving  background
	count   int // of samples in the directory
	adding  int // of samples that are being written
	dropped int // the step up to which samples were dropped
}

// NewWriter returns a Writer that has not touched the directory yet.
func NewWriter(dir string, options Options) *Writer {
	w := &Writer{dir: dir, options: options, samples: samples.NewStore(filepath.Join(dir, SamplesDir))}
	w.states = w.samples
	if options.States {
		w.states = samples.NewStore(filepath.Join(dir, StatesDir))
	}
	return w
}

// stores returns the stores of samples and of states.
func (w *Writer) stores() []*samples.Store {
	if w.states == w.samples {
		return []*samples.Store{w.samples}
	}
	return []*samples.Store{w.samples, w.states}
}

// nameOf returns the name of a store's directory.
func (w *Writer) nameOf(store *samples.Store) string {
	if store == w.samples {
		return SamplesDir
	}
	return StatesDir
}

func (w *Writer) acquire() (err error) {
	w.lock, err = acquire(w.dir, w.options.Remark)
	return err
}

// Check returns LockedError if another process has taken the directory over: it took this one for
// dead, so this one must write nothing more.
func (w *Writer) Check() error {
	return stillHeld(w.lock)
}

// Write writes a JSON file of the run and lists it in the index.
func (w *Writer) Write(name string, value any, indent string) error {
	return writeListedJSON(w.index, w.dir, name, value, indent, w.Check)
}

// Finish writes how the run ended, which the index does not list, once all lines of the index are
// on the disk.
func (w *Writer) Finish(o Outcome) error {
	if err := w.index.Sync(); err != nil {
		return errors.Wrap(err, "pollen: index")
	}
	if err := writeJSON(w.dir, OutcomeFile, o, "", w.Check); err != nil {
		return cmp.Or(w.Check(), err) // if another process has taken over, the failure is a consequence
	}
	return nil
}

// AddMetrics appends a line to the metrics.
func (w *Writer) AddMetrics(line Metrics) error {
	return errors.Wrap(w.metrics.Add(line), "pollen: metrics")
}

// add writes samples into a store and lists them. store.Write returns once the files are on the
// disk; a kill before index.Add leaves unlisted files, which readers ignore and Recover removes.
func (w *Writer) add(store *samples.Store, states ...samples.Sample) error {
	files, err := store.Write(w.Check, states...)
	if err != nil {
		return err
	}
	lines := make([]index.Line, len(files))
	for i, f := range files {
		lines[i] = index.Line{File: w.nameOf(store) + "/" + f.Name, Bytes: f.Bytes, Sum: f.Sum}
	}
	return index.Add(w.index, lines...)
}

// Keeps reports whether the state after step steps is a sample that the run keeps at that step. It
// may be dropped later.
func (w *Writer) Keeps(step int) bool { return w.options.Retention.Has(step, step) }

// Checkpoint writes states of the chains, and then a checkpoint, in the background. Before the next
// call the caller must have called Wait. states and c must not be changed until then.
//
// A kill leaves, in the order of writing: unlisted samples; listed samples of later steps than the
// checkpoint; a new checkpoint, with dropped samples that are still there. Recover handles each.
func (w *Writer) Checkpoint(states []samples.Sample, c Checkpoint) error {
	if err := w.metrics.Flush(); err != nil {
		return errors.Wrap(err, "pollen: metrics")
	}
	dropped := w.droppedBetween(w.dropped, c.Steps)
	w.dropped = c.Steps
	w.saving.begin(func() error {
		if err := w.add(w.states, states...); err != nil {
			return err
		}
		if w.states == w.samples {
			w.adding = len(states)
		}
		if err := index.Add(w.index, dropped...); err != nil {
			return err
		}
		// All that a checkpoint depends on must be on the disk before it.
		if err := w.metrics.Sync(); err != nil {
			return errors.Wrap(err, "pollen: metrics")
		}
		if err := w.index.Sync(); err != nil {
			return errors.Wrap(err, "pollen: index")
		}
		if err := w.writeCheckpoint(c); err != nil {
			return err
		}
		removed, err := w.remove(dropped)
		w.adding -= removed
		return err
	})
	return nil
}

// Busy reports whether a checkpoint is still being written.
func (w *Writer) Busy() bool { return w.saving.busy() }

// Wait returns once the last checkpoint is on the disk, with its error.
func (w *Writer) Wait() error {
	err := w.saving.wait()
	if err == nil {
		w.count += w.adding
	}
	w.adding = 0
	return err
}

// Draw writes each samples of every chain at the end of a run, as draw returns them. There is no
// checkpoint in between: a resumed run draws all of them again, over those that exist.
func (w *Writer) Draw(each int, draw func(chain, draw int) (samples.Sample, error)) error {
	w.count = 0
	for chain := range w.options.Chains {
		for i := range each {
			sample, err := draw(chain, i)
			if err != nil {
				return err
			}
			if err := w.add(w.samples, sample); err != nil {
				return err
			}
			w.count++
		}
	}
	return nil
}

// SampleFiles returns the paths of the samples that are on the disk.
func (w *Writer) SampleFiles() ([]string, error) { return w.samples.Files() }

// StateFiles returns the paths of the states that are on the disk.
func (w *Writer) StateFiles() ([]string, error) { return w.states.Files() }

// Samples returns how many samples the run has, without those that are being written.
func (w *Writer) Samples() int { return w.count }

// droppedBetween returns lines for the samples of all chains that are dropped between two steps.
func (w *Writer) droppedBetween(from, to int) (lines []index.Line) {
	for _, step := range w.options.Retention.droppedBetween(from, to) {
		for chain := range w.options.Chains {
			lines = append(lines, index.Line{File: SamplesDir + "/" + samples.FileName(w.options.FirstChain+chain, step), Dropped: true})
		}
	}
	return lines
}

// remove removes samples that the index lists as dropped, and returns how many there were.
func (w *Writer) remove(dropped []index.Line) (removed int, err error) {
	if len(dropped) == 0 {
		return 0, nil
	}
	if err := w.Check(); err != nil {
		return 0, err
	}
	// A kill in here leaves dropped samples, which Recover removes.
	for _, l := range dropped {
		err := os.Remove(filepath.Join(w.dir, filepath.FromSlash(l.File)))
		if err == nil {
			removed++
		} else if !os.IsNotExist(err) { // lost before, or removed by a process that was killed then
			return removed, errors.Wrap(err, "pollen: run directory")
		}
	}
	return removed, nil
}

// CloseMetrics closes the metrics, if they are open.
func (w *Writer) CloseMetrics() error { return closeJournal(&w.metrics, "metrics") }

// closeJournals closes both journals, and returns the first error.
func (w *Writer) closeJournals() error {
	return cmp.Or(w.CloseMetrics(), closeJournal(&w.index, "index"))
}

func closeJournal(j **journal.Writer, name string) error {
	if *j == nil {
		return nil
	}
	err := (*j).Close()
	*j = nil
	return errors.Wrap(err, "pollen: "+name)
}

// Close waits for a checkpoint that is being written, closes the files and unlocks the directory.
// It may be called after a panic, and before Begin and Recover.
func (w *Writer) Close() error {
	if w.lock == nil {
		return nil
	}
	saving := w.saving.wait() // of an observer that panicked meanwhile
	return cmp.Or(saving, w.closeJournals(), errors.Wrap(w.lock.Release(), "pollen"))
}

// background runs one function at a time, concurrently with its caller. The zero value is ready.
type background struct{ done chan error }

// begin starts do. The caller must have waited for the function before.
func (b *background) begin(do func() error) {
	b.done = make(chan error, 1)
	go func() { b.done <- do() }()
}

// busy reports whether the function is still running.
func (b *background) busy() bool { return b.done != nil && len(b.done) == 0 }

// wait waits for the function to end and returns its error; nil if none was started.
func (b *background) wait() error {
	if b.done == nil {
		return nil
	}
	err := <-b.done
	b.done = nil
	return err
}

// writeCheckpoint replaces the checkpoint atomically, and keeps the one before. It checks before
// the replacement that the directory is still this process's, and leaves it as it is otherwise.
func (w *Writer) writeCheckpoint(c Checkpoint) error {
	content, err := c.encode()
	if err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	path := filepath.Join(w.dir, CheckpointFile)
	if err := file.MakeDir(filepath.Dir(path)); err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	pending, err := file.Create(path)
	if err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	defer pending.Close()
	if _, err := pending.Write(content); err != nil {
		return errors.Wrap(err, "pollen: checkpoint")
	}
	// A process that is killed between the two renames leaves the same checkpoint twice or, without
	// hard links, only as the older one.
	err = pending.CommitKeeping(filepath.Join(w.dir, OlderCheckpoint), w.Check)
	return errors.Wrap(err, "pollen: checkpoint")
}
