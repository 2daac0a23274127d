package pollen

import (
	"cmp"
	"os"
	"path/filepath"

	"github.com/maruel/safetensors"
	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/index"
	"github.com/pollen-ml/pollen/internal/journal"
	"github.com/pollen-ml/pollen/internal/lock"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
)

// writer is a run's folder while a process writes in it: the only one, and what it lists in the
// index is on the disk.
type writer struct {
	environment
	dir           string
	first, chains int // number of the first chain, and of chains
	retention     retention

	samples *samples.Store
	states  *samples.Store // where chains' states go: the samples, or what they are drawn from at the end
	drawn   bool           // samples are drawn at the end, from no states

	lock    *lock.Lock      // nil until the folder is this process's
	index   *journal.Writer // of the files; nil for a run of a version without
	metrics *journal.Writer

	saving  background
	count   int // of samples in the folder
	adding  int // samples that are being written
	dropped int // the step up to which those that are to go were
}

func (t *training) newWriter() writer {
	w := writer{
		environment: t.environment, dir: t.dir, first: t.spec.FirstChain, chains: t.spec.Chains,
		retention: retention{t.plan, t.spec.Keep}, samples: samples.NewStore(filepath.Join(t.dir, samplesDir)), drawn: t.course.traits().drawn,
	}
	w.states = w.samples
	if t.course.traits().collected {
		w.states = samples.NewStore(filepath.Join(t.dir, statesDir))
	}
	return w
}

// banks are where samples and states are kept.
func (w *writer) banks() []*samples.Store {
	if w.states == w.samples {
		return []*samples.Store{w.samples}
	}
	return []*samples.Store{w.samples, w.states}
}

// dirOf is the name of a bank's folder.
func (w *writer) dirOf(bank *samples.Store) string {
	if bank == w.samples {
		return samplesDir
	}
	return statesDir
}

// take makes this process the only one that writes in the folder, or is Busy.
func (w *writer) take() (err error) {
	w.lock, err = hold(w.dir, w.environment)
	return err
}

// create makes what a folder has that a new run begins in, but for its manifest.
func (w *writer) create() error {
	for _, bank := range w.banks() {
		if err := bank.Create(); err != nil {
			return err
		}
	}
	err := w.stillHeld()
	if err != nil {
		return err
	}
	if w.metrics, err = journal.Create(filepath.Join(w.dir, metricsFile)); err != nil {
		return errors.Wrap(err, "pollen: metrics")
	}
	w.index, err = journal.Create(filepath.Join(w.dir, index.File))
	return errors.Wrap(err, "pollen: index")
}

// undo removes a folder whose run could not be made because of an error, which it returns.
func (w *writer) undo(err error) error {
	if w.stillHeld() != nil {
		return err
	}
	w.closeJournals() // what went wrong before is the error
	if removing := os.RemoveAll(w.dir); removing != nil {
		return errors.WithMessagef(err, "pollen: a half-made run could not be removed (%v)", removing)
	}
	return err
}

// write writes a file of the run and lists it, if the folder is still this process's.
func (w *writer) write(name string, value any, indent string) error {
	if err := w.stillHeld(); err != nil {
		return err
	}
	return writeListed(w.index, w.dir, name, value, indent)
}

// writeListed writes a file of the run, and lists it.
func writeListed(to *journal.Writer, dir, name string, value any, indent string) error {
	if err := writeJSON(dir, name, value, indent); err != nil {
		return err
	}
	line, err := lineOf(dir, name)
	if err != nil {
		return err
	}
	return index.Add(to, line)
}

// keep writes samples into a bank, and lists them, unless another process writes in the folder.
func (w *writer) keep(bank *samples.Store, states ...samples.Sample) error {
	if err := w.stillHeld(); err != nil {
		return err
	}
	files, err := bank.Write(states...)
	if err != nil {
		return err
	}
	return index.Add(w.index, linesOf(w.dirOf(bank), files)...)
}

// linesOf are the lines of samples in a folder of a run.
func linesOf(dir string, files []samples.File) []index.Line {
	lines := make([]index.Line, len(files))
	for i, f := range files {
		lines[i] = index.Line{File: dir + "/" + f.Name, Bytes: f.Bytes, Sum: f.Sum}
	}
	return lines
}

// save writes states, and then a checkpoint, from which the run can go on, as of a step, while the
// caller goes on. What save began before must have been waited for.
func (w *writer) save(states []samples.Sample, checkpoint safetensors.File, step int) error {
	if err := w.metrics.Flush(); err != nil {
		return errors.Wrap(err, "pollen: metrics")
	}
	gone := w.gone(w.dropped, step)
	w.dropped = step
	w.saving.begin(func() error {
		if err := w.keep(w.states, states...); err != nil {
			return err
		}
		if w.states == w.samples {
			w.adding = len(states)
		}
		if err := index.Add(w.index, gone...); err != nil {
			return err
		}
		// What a checkpoint relies on is on the disk before it.
		if err := w.metrics.Sync(); err != nil {
			return errors.Wrap(err, "pollen: metrics")
		}
		if w.index != nil {
			if err := w.index.Sync(); err != nil {
				return errors.Wrap(err, "pollen: index")
			}
		}
		if err := w.writeCheckpoint(checkpoint); err != nil {
			return err
		}
		removed, err := w.drop(gone)
		w.adding -= removed
		return err
	})
	return nil
}

// saved waits for what save began, and counts its samples once they are on the disk.
func (w *writer) saved() error {
	err := w.saving.wait()
	if err == nil {
		w.count += w.adding
	}
	w.adding = 0
	return err
}

// draw writes so many samples of each chain at the end of a run.
func (w *writer) draw(each int, draw func(chain, draw int) (samples.Sample, error)) error {
	w.count = 0
	for chain := range w.chains {
		for i := range each {
			sample, err := draw(chain, i)
			if err != nil {
				return err
			}
			if err := w.keep(w.samples, sample); err != nil {
				return err
			}
			w.count++
		}
	}
	return nil
}

// retention says which samples of a plan stay, see Spec.Keep. That is a function of how many steps
// were made and of nothing else, so that a run that was killed goes on to the same files.
//
// The samples that go are listed as dropped, then the checkpoint is written, and only then they are
// removed: until there is a checkpoint after them, the run can go on from the one before. From the
// older one of both it goes on without them; they would go again.
type retention struct {
	plan langevin.Plan
	most int // of each chain; 0 for all
}

// drawn is how many samples of each chain the plan has by a step.
func (r retention) drawn(step int) int { return max(0, step-r.plan.BurnIn) / r.plan.Thinning }

// interval is n where one in n of the plan's samples stays once that many steps were made.
func (r retention) interval(made int) int {
	n := 1
	for r.most > 0 && r.drawn(made)/n > r.most {
		n *= 2
	}
	return n
}

// has reports whether the state at a step is a sample that the run has once that many were made.
func (r retention) has(step, made int) bool {
	return r.plan.SampleAt(step) && (r.most == 0 || r.drawn(step)%r.interval(made) == 0)
}

// samples is how many samples of each chain the finished run has.
func (r retention) samples() int { return r.plan.Samples() / r.interval(r.plan.Steps) }

// gone are the steps of samples that the run had once and that went in the steps between two.
func (r retention) gone(from, to int) (steps []int) {
	last := r.interval(to)
	for n := r.interval(from); n < last; n *= 2 {
		for odd := 1; odd <= r.most; odd += 2 {
			steps = append(steps, r.plan.BurnIn+odd*n*r.plan.Thinning)
		}
	}
	return steps
}

// gone are the lines of the samples of all chains that go in the steps between two.
func (w *writer) gone(from, to int) (lines []index.Line) {
	for _, step := range w.retention.gone(from, to) {
		for chain := range w.chains {
			lines = append(lines, index.Line{File: samplesDir + "/" + samples.FileName(w.first+chain, step), Dropped: true})
		}
	}
	return lines
}

// drop removes samples that the index lists as dropped, and reports how many there were.
func (w *writer) drop(lines []index.Line) (removed int, err error) {
	if len(lines) == 0 {
		return 0, nil
	}
	if err := w.stillHeld(); err != nil {
		return 0, err
	}
	for _, l := range lines {
		err := os.Remove(filepath.Join(w.dir, filepath.FromSlash(l.File)))
		if err == nil {
			removed++
		} else if !os.IsNotExist(err) { // lost before, or removed by a process that was killed then
			return removed, errors.Wrap(err, "pollen: run folder")
		}
	}
	return removed, nil
}

// closeJournals closes those that are open.
func (w *writer) closeJournals() error {
	return cmp.Or(closeJournal(&w.metrics, "metrics"), closeJournal(&w.index, "index"))
}

// closeJournal closes a journal, if it is open.
func closeJournal(j **journal.Writer, name string) error {
	if *j == nil {
		return nil
	}
	err := (*j).Close()
	*j = nil
	return errors.Wrap(err, "pollen: "+name)
}

// release ends what take began, also after a panic.
func (w *writer) release() error {
	if w.lock == nil {
		return nil
	}
	saving := w.saving.wait() // of an observer that panicked meanwhile
	return cmp.Or(saving, w.closeJournals(), errors.Wrap(w.lock.Release(), "pollen"))
}

// background does one thing at a time, concurrently with its caller. The zero value is ready.
type background struct{ done chan error }

// begin starts do. What was begun before must have been waited for.
func (b *background) begin(do func() error) {
	b.done = make(chan error, 1)
	go func() { b.done <- do() }()
}

// busy reports whether what was begun is still under way.
func (b *background) busy() bool { return b.done != nil && len(b.done) == 0 }

// wait returns the error of what was begun, once it is done; nil if nothing was.
func (b *background) wait() error {
	if b.done == nil {
		return nil
	}
	err := <-b.done
	b.done = nil
	return err
}
