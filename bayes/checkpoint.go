package bayes

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/file"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// save writes samples and then a checkpoint, in the background while the next steps run. It first
// waits for the previous save and returns its error, so at most one is in flight.
func (t *training) save(states []samples.Sample) error {
	if err := t.writer.Wait(); err != nil {
		return err
	}
	if err := t.checkRoom(); err != nil {
		return err
	}
	checkpoint, err := t.checkpoint()
	if err != nil {
		return err
	}
	return t.writer.Checkpoint(states, checkpoint)
}

// saveNow saves a checkpoint, and waits until it is on the disk.
func (t *training) saveNow() error {
	if err := t.save(nil); err != nil {
		return err
	}
	return t.writer.Wait()
}

// checkpoint returns the state of all chains, and what was measured of them. Both belong to the
// same step: measurements after a resume equal an uninterrupted run's, too. It copies, so that
// the session can continue while the checkpoint is written.
func (t *training) checkpoint() (rundir.Checkpoint, error) {
	s := t.session
	c := rundir.Checkpoint{Steps: int(s.Steps()), HeldOut: t.measured.HeldOut.Images()}
	t.measured.State(func(name string, values []float64) {
		c.Measured = append(c.Measured, rundir.Measurement{Name: name, Values: values})
	})
	if t.warmUp != nil {
		c.Measured = append(c.Measured, rundir.Measurement{Name: warmName, Values: t.warmUp.numbers()})
		var err error
		if c.Warm, err = t.warmUp.save(t.explores(c.Steps)); err != nil {
			return c, err
		}
	}
	for chain := range s.Chains() {
		state := make([]byte, s.ChainBytes())
		if err := s.Save(chain, state); err != nil {
			return c, err
		}
		c.Chains = append(c.Chains, state)
	}
	return c, nil
}

// explores reports whether chains explore, at temperature 0, in one of the steps after the first
// made ones, or explored in the last of those, which afterExploring has not checked yet.
func (t *training) explores(made int) bool {
	return t.halves && slices.Contains(t.temperatures[max(0, made-1):], 0)
}

// checkStates returns an error if a checkpoint has another number of chains than the session. The
// error is an InvalidError if the states have another size: since the manifest has the network and
// the method, another version of Pollen then compiled them to another program.
func (t *training) checkStates(c rundir.Checkpoint) error {
	s := t.session
	if len(c.Chains) != s.Chains() {
		return errors.Errorf("it has %d chains, the run %d", len(c.Chains), s.Chains())
	}
	if got := len(c.Chains[0]); got != s.ChainBytes() {
		return invalid("%s: another version of Pollen began the run (build %s), which this one cannot continue: "+
			"the state of a chain has %d bytes, and must have %d; the run's samples can still be used", t.dir, t.manifest.Revision, got, s.ChainBytes())
	}
	return nil
}

// restore restores the session and the measurements from a checkpoint.
func (t *training) restore(c rundir.Checkpoint) error {
	if err := t.checkStates(c); err != nil {
		return err
	}
	s := t.session
	for chain, state := range c.Chains {
		if err := s.Restore(chain, state, uint64(c.Steps)); err != nil {
			return err
		}
	}
	numbers := map[string][]float64{}
	for _, m := range c.Measured {
		numbers[m.Name] = m.Values
	}
	if t.warmUp != nil {
		if err := t.warmUp.setNumbers(numbers[warmName]); err != nil {
			return err
		}
		t.warmStates = c.Warm
	}
	other, err := t.measured.Restore(numbers, c.HeldOut)
	if other {
		t.remark("the held-out images are not those that chains were watched on before: predictions are watched on these from here on")
	}
	return err
}

// warmName is the name of a warm start's numbers in a checkpoint. Each chain has numbersOfWarmChain
// of them, and then its losses.
const (
	warmName           = "warm start"
	numbersOfWarmChain = 5
)

// numbers returns the numbers of a warm start for a checkpoint: whether it is done, its epochs, and
// for each chain the best epoch with its loss and accuracy, the halvings of the learning rate, the
// number of losses, and the losses.
func (w *warmUp) numbers() []float64 {
	numbers := []float64{0, float64(w.epochs)}
	if w.done {
		numbers[0] = 1
	}
	for _, c := range w.chains {
		numbers = append(append(numbers, float64(c.epoch), c.loss, c.accuracy, float64(c.halvings), float64(len(c.losses))), c.losses...)
	}
	return numbers
}

func (w *warmUp) setNumbers(numbers []float64) error {
	wrong := func() error {
		return errors.Errorf("%s must have two numbers, and for each of %d chains %d and its losses, got %d in all",
			warmName, len(w.chains), numbersOfWarmChain, len(numbers))
	}
	if len(numbers) < 2 {
		return wrong()
	}
	w.done, w.epochs = numbers[0] != 0, int(numbers[1])
	rest := numbers[2:]
	for i := range w.chains {
		fewest := min(1, numbers[1]) // after an epoch, each chain has losses
		if len(rest) < numbersOfWarmChain || !(rest[4] >= fewest && rest[4] <= float64(len(rest)-numbersOfWarmChain)) || !(rest[3] >= 0 && rest[3] <= maxHalvings) {
			return wrong()
		}
		end := numbersOfWarmChain + int(rest[4])
		w.chains[i] = warmChain{
			epoch: int(rest[0]), loss: rest[1], accuracy: rest[2], halvings: int(rest[3]), losses: slices.Clone(rest[numbersOfWarmChain:end]),
		}
		rest = rest[end:]
	}
	if len(rest) > 0 {
		return wrong()
	}
	return nil
}

// save returns the states of a warm start for a checkpoint, one for each chain. While the warm
// start is in progress, a state has the number of steps, the state of the optimizer, and the best
// parameters. Afterwards, while the chains explore, it has the best parameters, to which a chain
// that diverges goes back. Otherwise, and before the first step, there are no states.
func (w *warmUp) save(exploring bool) (states [][]byte, err error) {
	s := w.training.session
	if w.chains[0].best == nil || w.done && !exploring {
		return nil, nil
	}
	for chain, c := range w.chains {
		var state []byte
		if !w.done {
			state = make([]byte, s.ChainBytes())
			if err := s.Save(chain, state); err != nil {
				return nil, err
			}
			state = append(binary.LittleEndian.AppendUint64(nil, s.Steps()), state...)
		}
		for _, values := range c.best {
			state = append(state, tensor.Bytes(values)...)
		}
		states = append(states, state)
	}
	return states, nil
}

// room returns the size in bytes of the states that save returns, for samples of the given size.
func (w *warmUp) room(exploring bool, sample uint64) uint64 {
	switch {
	case !w.done:
		return uint64(len(w.chains)) * (8 + uint64(w.chainBytes) + sample)
	case exploring:
		return uint64(len(w.chains)) * sample
	}
	return 0
}

// restore restores the optimizer's session from a checkpoint's states, if there are any.
func (w *warmUp) restore(states [][]byte) error {
	if states == nil {
		return nil
	}
	s := w.training.session
	if err := w.restoreBest(s.Program(), states, 8+s.ChainBytes()); err != nil {
		return err
	}
	for chain, state := range states {
		if err := s.Restore(chain, state[8:][:s.ChainBytes()], binary.LittleEndian.Uint64(state)); err != nil {
			return err
		}
	}
	return nil
}

// restoreBest reads the best parameters from a checkpoint's states, if there are any. In each state
// they follow the first before bytes.
func (w *warmUp) restoreBest(program *graph.Program, states [][]byte, before int) error {
	if states == nil {
		return nil
	}
	if want := before + 4*parametersOf(program); len(states) != len(w.chains) || len(states[0]) != want {
		return errors.Errorf("the checkpoint must have %d states of %d bytes, got %d of %d", len(w.chains), want, len(states), len(states[0]))
	}
	for chain, state := range states {
		rest := state[before:]
		w.chains[chain].best = nil
		for _, p := range program.Parameters() {
			values := make([]float32, p.Shape.Elements())
			rest = rest[copy(tensor.Bytes(values), rest):]
			w.chains[chain].best = append(w.chains[chain].best, values)
		}
	}
	return nil
}

// spareRoom is the space in bytes that is left free on a disk in addition to what the next
// checkpoints need.
const spareRoom = 4 << 20

// checkRoom returns DiskFullError unless twice the size of the next checkpoint and samples is free:
// while a checkpoint is written, the one before and its temporary file exist, too. The run then
// stops while everything that it has written is whole.
func (t *training) checkRoom() error {
	state, sample := t.room()
	required := 2*(state+sample*uint64(t.spec.Chains)) + spareRoom
	free, err := file.Free(t.dir)
	if err != nil {
		return errors.Wrap(err, "pollen")
	}
	if free < required {
		return errors.WithStack(&DiskFullError{t.dir, free, required})
	}
	return nil
}

// room returns the size in bytes of a checkpoint now, with the states of a warm start, and of a
// sample of one chain, which has 4 bytes for each weight. Checkpoints grow with the traces.
func (t *training) room() (state, sample uint64) {
	state = uint64(t.session.ChainBytes() * t.session.Chains())
	if t.measured != nil {
		state += t.measured.TraceBytes()
	}
	for _, p := range t.session.Program().Parameters() {
		sample += 4 * uint64(p.Shape.Elements())
	}
	if t.warmUp != nil {
		state += t.warmUp.room(t.explores(int(t.session.Steps())), sample)
	}
	return state, sample
}

// muchRoom is the disk space in bytes from which on a run reports, before it begins, how much it
// will take.
const muchRoom = 256 << 20

// remarkRoom reports the disk space that the run will take, if that is at least least bytes, or if
// less is free.
func (t *training) remarkRoom(dir string, least uint64) error {
	state, sample := t.room()
	most := t.plan.Samples()
	if t.spec.Keep > 0 {
		most = min(most, t.spec.Keep)
	}
	if c := t.kind.traits(); c.drawn {
		most = t.spec.Samples
	} else if c.collected {
		most += t.spec.Samples
	}
	most *= t.spec.Chains
	checkpoints, number := uint64(2), "two"
	if t.keepsFirst() {
		checkpoints, number = 3, "three"
	}
	required := checkpoints*state + uint64(most)*sample
	free, err := file.Free(dir)
	if err != nil {
		return errors.Wrap(err, "pollen")
	}
	short := free < required+spareRoom
	if required < least && !short {
		return nil
	}
	samples := fmt.Sprintf("%d samples of", most)
	if most == 1 {
		samples = "a sample of"
	}
	text := fmt.Sprintf("on the disk: %s %.3g MB and %s checkpoints, some %.3g MB", samples, megabytes(sample), number, megabytes(required))
	if short {
		text += fmt.Sprintf("; only %.3g MB are free: the run stops before they are used up; keep bounds the number of samples", megabytes(free))
	}
	t.remark(text)
	return nil
}
