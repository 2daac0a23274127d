package bayes

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/pollen-ml/pollen/datasets"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/optimizers"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// The images that a warm start is stopped by are the fraction warmShare of the training images, but
// not more than about maxWarmHeldOut, so that scoring them takes a fraction of an epoch's time.
const (
	warmShare      = 0.2
	maxWarmHeldOut = 1000
)

// minWarmEpochs is the number of epochs of a warm start by default, if they have minSteps steps.
const minWarmEpochs = 2

// warmPatience is the part of WarmEpochs that WarmPatience is by default: one in.
const warmPatience = 5

// checkWarmStart refuses values that do not fit together. Ranges of numbers are checked by
// validate.
func (s Spec) checkWarmStart() error {
	switch {
	case s.WarmStart == nil && (s.WarmSchedule != nil || s.WarmEpochs != 0 || s.WarmPatience != 0):
		return invalid("warm-schedule, warm-epochs and warm-patience apply to a warm-start, such as adam, and none is given")
	case s.WarmStart == nil:
		return nil
	case s.Start != "":
		return invalid("start %s and warm-start %s: only one of them may be given", s.Start, MethodText(s.WarmStart))
	}
	if err := checkNil("warm-start", s.WarmStart); err != nil {
		return err
	}
	if err := s.WarmStart.Validate(); err != nil {
		return InvalidError{err}
	}
	switch {
	case s.WarmSchedule == nil:
		return nil
	case !optimizers.UsesRates(s.WarmStart):
		return invalid("warm-schedule does not apply to %s, which finds its own step size", MethodName(s.WarmStart))
	}
	return checkSchedule("warm-schedule", s.WarmSchedule)
}

// parseWarmStart reads an optimizer, as ParseMethod reads it.
func parseWarmStart(text string) (optimizers.Optimizer, error) {
	name, _, _ := strings.Cut(text, ":")
	var names []string
	for _, k := range registry {
		if _, ok := k.method.(optimizers.Optimizer); ok {
			names = append(names, k.name)
		}
	}
	if !slices.Contains(names, strings.TrimSpace(name)) {
		return nil, invalid("warm-start must be an optimizer, which are %s, got %q", strings.Join(names, ", "), text)
	}
	m, err := ParseMethod(text)
	if err != nil {
		return nil, err
	}
	return m.(optimizers.Optimizer), nil
}

// fillWarmStart sets the defaults of a warm start on a number of examples, after that of Batch. A
// sampler on all data has a batch of all of them; the optimizer has minibatches.
func (s *Spec) fillWarmStart(examples int) {
	if s.WarmStart == nil {
		return
	}
	if s.WarmEpochs == 0 {
		s.WarmEpochs = max(minWarmEpochs, epochsOf(minSteps, s.warmBatch(examples), examples))
	}
	if s.WarmPatience == 0 {
		s.WarmPatience = (s.WarmEpochs + warmPatience - 1) / warmPatience
	}
	if c, err := kindOf(s.WarmStart); err == nil && s.WarmSchedule == nil { // an error fails in checkWarmStart
		s.WarmSchedule = s.warmSpec(examples).customarySchedule(c, examples)
	}
}

// warmBatch returns the batch of a warm start: that of the run, or fewer.
func (s Spec) warmBatch(examples int) int {
	batch := customaryBatch(examples)
	if s.Batch > 0 {
		batch = min(batch, s.Batch)
	}
	return batch
}

// warmSpec is the specification of the optimizer's part of a run.
func (s Spec) warmSpec(examples int) Spec {
	return Spec{
		Network: s.Network, Layers: s.Layers, Cut: s.Cut, Head: s.Head, Freeze: s.Freeze, Input: s.Input, file: s.file,
		Method: s.WarmStart, Schedule: s.WarmSchedule, Batch: s.warmBatch(examples), Epochs: s.WarmEpochs,
		Chains: s.Chains, FirstChain: s.FirstChain, Seed: s.Seed, Augment: s.Augment, ClassWeights: s.ClassWeights,
	}
}

// warmUp is the warm start of a run while it is made. Each chain is optimized on most of the
// training images. After each epoch it is scored on the others, and its best parameters are kept.
// It stops when all chains have failed to improve for the patience of the Spec. A chain's result
// depends on no other chain, so that parts of a run have the chains of the whole.
//
// The images held out are training images, which the chains sample with later. Validation images
// are not looked at: the guarantees that are calibrated on them would not hold if the chains had
// been chosen by them.
type warmUp struct {
	training  *training // of the optimizer; its session is nil between two parts of a run
	predictor *samples.SamplePredictor
	heldOut   *datasets.Dataset
	patience  int
	enough    int // steps; a chain whose lowest loss came after them stops; 0 is no limit
	epochs    int // made and scored
	done      bool
	chains    []warmChain
}

// warmChain is what is kept of a chain: its best parameters so far, in the order of the program's,
// and the epoch and the scores of these.
type warmChain struct {
	epoch          int
	halvings       int // of its learning rate
	loss, accuracy float64
	best           [][]float32
	losses         []float64 // of all epochs so far, the initial values first
}

// newWarmUp divides the data; nil if the specification has no warm start.
func (t *training) newWarmUp() (*warmUp, error) {
	if t.spec.WarmStart == nil {
		return nil, nil
	}
	used, heldOut, err := t.spec.divided(t.data)
	if err != nil {
		return nil, err
	}
	u, err := newTraining(t.spec.warmSpec(used.Len()), used, "", t.environment)
	if err != nil {
		return nil, errors.WithMessage(err, "warm start")
	}
	u.halves = optimizers.UsesRates(t.spec.WarmStart)
	return &warmUp{training: u, heldOut: heldOut, patience: t.spec.WarmPatience, chains: make([]warmChain, t.spec.Chains)}, nil
}

// divided returns the images that a warm start optimizes on, and those held out: a part of each
// class or, if the data have groups, whole groups.
func (s Spec) divided(d *datasets.Dataset) (used, heldOut *datasets.Dataset, err error) {
	used, heldOut, err = d.Stratified(min(warmShare, maxWarmHeldOut/float64(d.Len())), s.Seed)
	if err != nil {
		return nil, nil, InvalidError{errors.WithMessage(err, "pollen: warm-start: holding out training images")}
	}
	return used, heldOut, nil
}

// load loads the optimizer and the images held out.
func (w *warmUp) load(ctx context.Context, device tensor.Device) error {
	if err := w.training.load(ctx, device); err != nil {
		return err
	}
	u := w.training
	images, err := u.features(ctx, device, w.heldOut.Images)
	if err == nil {
		w.predictor, err = samples.NewSamplePredictor(device, tensor.Float32, images, standardBatch, u.predicted.network.Apply)
	}
	if err != nil {
		w.training.session.Close()
		w.training.session = nil
	}
	return err
}

func (w *warmUp) close() {
	w.predictor.Close()
	w.training.session.Close()
	w.training.session = nil
}

// warm makes the warm start of a run, or what is left of it, and puts the chains where it ended.
func (t *training) warm(ctx context.Context, device tensor.Device) error {
	w := t.warmUp
	if w == nil {
		return nil
	}
	states := t.warmStates
	if w.done {
		return errors.WithMessage(w.restoreBest(t.session.Program(), states, 0), "warm start")
	}
	if err := w.load(ctx, device); err != nil {
		return errors.WithMessage(err, "warm start")
	}
	defer w.close()
	if err := w.restore(states); err != nil {
		return errors.WithMessage(err, "warm start")
	}
	if err := w.run(ctx, t); err != nil {
		return errors.WithMessage(err, "warm start")
	}
	w.done = true
	failed, err := w.abandon(t)
	if err != nil {
		return errors.WithMessage(err, "warm start")
	}
	for chain := range t.session.Chains() {
		c := &w.chains[chain/t.spec.replicasOfEach()]
		err := writeWeights(t.session, chain, c.best)
		if err == nil && t.halves {
			err = setRateFactor(t.session, chain, c.halvings)
		}
		if err != nil {
			return errors.WithMessage(err, "warm start")
		}
	}
	t.remark(w.result().String())
	if failed > 0 {
		t.remark(fmt.Sprintf("warm start: %d of %d chains never predicted the images held out better than the frequencies of their classes do, "+
			"and begin at their initial values: try a lower rate (warm-schedule), more epochs (warm-epochs) or another warm-start", failed, len(w.chains)))
	}
	return t.saveNow()
}

// guessing is the entropy of the classes of the images held out, which is the loss of a network
// that predicts their frequencies for every image.
func (w *warmUp) guessing() float64 {
	counts := make([]float64, w.heldOut.Classes)
	for _, label := range w.heldOut.Labels {
		counts[label]++
	}
	floats.Scale(1/float64(w.heldOut.Len()), counts)
	return stat.Entropy(counts)
}

// abandon gives the initial values to chains that learned nothing: their lowest loss on the images
// held out is not below that of guessing. Such a network may have weights that exploded, from which
// nothing should be sampled. The chains of t's session still have their initial values. It returns
// the number of these chains.
func (w *warmUp) abandon(t *training) (failed int, err error) {
	guessing := w.guessing()
	for i := range w.chains {
		c := &w.chains[i]
		if c.loss < guessing {
			continue
		}
		failed++
		initial, err := samples.FromSession(t.session, i*t.spec.replicasOfEach(), 1)
		if err != nil {
			return 0, err
		}
		c.epoch, c.best = 0, weightsOf(initial)
		if c.loss, c.accuracy, err = w.scores(initial); err != nil {
			return 0, err
		}
	}
	return failed, nil
}

// run makes the epochs, each of which is followed by scores and, unless one is still being written
// or nothing is kept, a checkpoint.
func (w *warmUp) run(ctx context.Context, t *training) error {
	u, saved := w.training, 0
	if w.epochs == 0 {
		if err := w.score(t, 0); err != nil {
			return err
		}
	}
	for !w.stops() {
		end := w.stepsOf(w.epochs + 1)
		for step := int(u.session.Steps()); step < end; step = int(u.session.Steps()) {
			if err := ctx.Err(); err != nil {
				if t.writer != nil { // while the optimizer's session is there
					if err := t.saveNow(); err != nil {
						return err
					}
				}
				return errors.Wrapf(err, "stopped after %d of up to %d epochs", w.epochs, u.spec.Epochs)
			}
			steps := min(window, end-step)
			if err := u.session.Run(steps); err != nil {
				if err := w.recover(t, err); err != nil {
					return err
				}
				continue
			}
			w.observe(t, step, steps)
		}
		w.epochs++
		if err := w.score(t, w.epochs); err != nil {
			return err
		}
		if steps := int(u.session.Steps()); steps-saved >= window && t.writer != nil && !t.writer.Busy() {
			if err := t.save(nil); err != nil {
				return err
			}
			saved = steps
		}
	}
	return nil
}

// stepsOf returns the number of steps that some epochs have.
func (w *warmUp) stepsOf(epochs int) int {
	return int(float64(w.training.data.Len()) / float64(w.training.spec.Batch) * float64(epochs))
}

// observe reports an event of some steps.
func (w *warmUp) observe(t *training, from, steps int) {
	u := w.training
	e := Event{
		Task: "warm start", On: t.data.Name, Done: from + steps, Total: u.plan.Steps, Images: steps * u.spec.Batch * u.spec.Chains,
		Temperature: math.NaN(), RHat: math.NaN(),
		ValidationLoss: math.NaN(), ValidationAccuracy: math.NaN(), ValidationNLL: math.NaN(),
	}
	e.ValidationLoss = 0 // the mean over the chains
	for _, c := range w.chains {
		e.ValidationLoss += c.losses[len(c.losses)-1] / float64(len(w.chains))
	}
	for step := from; step < from+steps; step++ {
		for chain := range u.spec.Chains { // means over the steps and the chains
			e.Loss += u.session.Metric(chain, lossMetric, uint64(step)) / float64(steps*u.spec.Chains)
			e.Accuracy += u.session.Metric(chain, accuracyMetric, uint64(step)) / float64(steps*u.spec.Chains)
		}
	}
	t.observe(e)
}

// stops reports whether no chain has improved for long enough, or all epochs are made. An epoch
// limit without improvement is patience; a chain that has stopped is not continued by others.
func (w *warmUp) stops() bool {
	return w.epochs >= w.training.spec.Epochs || !slices.ContainsFunc(w.chains, w.patient)
}

// patient reports whether a chain may still improve, and that would make a difference.
func (w *warmUp) patient(c warmChain) bool {
	return w.epochs-c.epoch < w.patience && (w.enough == 0 || w.stepsOf(c.epoch) < w.enough)
}

// score scores the chains after an epoch, and keeps their parameters if these are the best so far.
// Chains that ran out of patience before are left as they were. A chain whose predictions are not
// finite has diverged: it returns to its best weights, and gets their score again.
func (w *warmUp) score(t *training, epoch int) error {
	s := w.training.session
	for i := range w.chains {
		c := &w.chains[i]
		if epoch > 0 && epoch-1-c.epoch >= w.patience {
			continue
		}
		state, err := samples.FromSession(s, i, 1)
		if err != nil {
			return err
		}
		loss, accuracy, err := w.scores(state)
		if isNotFinite(err) && epoch > 0 {
			loss, accuracy, err = c.loss, c.accuracy, w.halve(t, i, state.Step, err)
		}
		if err != nil {
			return err
		}
		c.losses = append(c.losses, loss)
		if epoch > 0 && !(loss < c.loss) { // NaN is not better
			continue
		}
		c.epoch, c.loss, c.accuracy, c.best = epoch, loss, accuracy, weightsOf(state)
	}
	return nil
}

// weightsOf returns the values of a sample's parameters.
func weightsOf(s samples.Sample) (weights [][]float32) {
	for _, p := range s.Parameters {
		weights = append(weights, p.Values)
	}
	return weights
}

// scores returns the mean negative log-likelihood and the accuracy on the images held out.
func (w *warmUp) scores(state samples.Sample) (loss, accuracy float64, err error) {
	p := make([]float32, w.heldOut.Len()*w.predictor.Classes())
	if err := w.predictor.Predict(state, p); err != nil {
		return 0, 0, err
	}
	loss, accuracy = measure.Scores(p, w.heldOut.Labels)
	return loss, accuracy, nil
}

// warmName is the name of a warm start's numbers in a checkpoint, and numbersOfWarmChain how many
// there are for each chain before its losses.
const (
	warmName           = "warm start"
	numbersOfWarmChain = 5
)

// numbers returns what a checkpoint keeps of a warm start as numbers: whether it is done, its
// epochs, and of each chain the best epoch, its loss and its accuracy, the halvings of its learning
// rate, the number of losses, and these.
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

// save returns the states of a warm start for a checkpoint. While it is in progress, they are of
// each chain its steps, the state of the optimizer, and the best parameters. Afterwards, while the
// chains explore, they are the best parameters, to which a chain that diverges goes back.
// Otherwise, and before the first step, there are none.
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

// restore puts the optimizer's session back to a checkpoint's states, if there are any.
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

// restoreBest takes the best parameters from a checkpoint's states, if there are any, which have
// some bytes before them.
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

// result returns where the chains began.
func (w *warmUp) result() *WarmStart {
	r := &WarmStart{HeldOut: w.heldOut.Len(), Epochs: w.epochs}
	for _, c := range w.chains {
		r.Epoch, r.Loss, r.Accuracy = append(r.Epoch, c.epoch), append(r.Loss, Number(c.loss)), append(r.Accuracy, Number(c.accuracy))
		r.Halvings = append(r.Halvings, c.halvings)
		losses := make([]Number, len(c.losses))
		for i, loss := range c.losses {
			losses[i] = Number(loss)
		}
		r.Losses = append(r.Losses, losses)
	}
	return r
}

// addWarmStart adds what the warm start takes: its images, its chains, and the best weights of
// each.
func (t *training) addWarmStart(m *Memory, device tensor.Device) error {
	if t.warmUp == nil {
		return nil
	}
	u := t.warmUp.training
	program, err := u.build(device)
	if err != nil {
		return err
	}
	size, initial, err := program.Size(device, t.spec.Chains)
	if err != nil {
		return err
	}
	_, chain, _ := program.Bytes()
	const copies = 2 // of a checkpoint's states, which are copied and then encoded
	states := copies * t.spec.Chains * (chain + 4*parametersOf(program))
	m.add("warm start", atStart, size, initial+states+4*t.spec.Chains*parametersOf(program))
	m.Parts[len(m.Parts)-1].Host += datasetBytes(u.data, t.warmUp.heldOut)
	return nil
}
