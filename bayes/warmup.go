package bayes

import (
	"context"
	"fmt"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/diagnostics"
	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/samples"
	"github.com/pollen-ml/pollen/tensor"
)

// load loads the optimizer and the images held out.
func (w *warmUp) load(ctx context.Context, device tensor.Device) error {
	if err := w.training.load(ctx, device); err != nil {
		return err
	}
	u := w.training
	images, err := u.features(ctx, device, w.heldOut.Images)
	if err == nil {
		w.predictor, err = samples.NewSamplePredictor(device, tensor.Float32, images, standardBatch, u.parts.network.Apply)
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

// warm makes the warm start of a run, or the rest of an interrupted one, and moves the chains to
// its best weights.
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
		return errors.WithMessage(err, "pollen: warm start")
	}
	defer w.close()
	if err := w.restore(states); err != nil {
		return errors.WithMessage(err, "pollen: warm start")
	}
	if w.epochs > 0 {
		t.remark(fmt.Sprintf("warm start: resumed after %d of up to %d epochs", w.epochs, w.training.spec.Epochs))
	}
	if err := w.run(ctx, t); err != nil {
		return errors.WithMessage(err, "pollen: warm start")
	}
	w.done = true
	failed, err := w.abandon(t)
	if err != nil {
		return errors.WithMessage(err, "pollen: warm start")
	}
	for chain := range t.session.Chains() {
		c := &w.chains[chain/t.spec.replicasOfEach()]
		err := writeWeights(t.session, chain, c.best)
		if err == nil && t.halves {
			err = setRateFactor(t.session, chain, c.halvings)
		}
		if err != nil {
			return errors.WithMessage(err, "pollen: warm start")
		}
	}
	t.remark(w.result().String())
	if failed > 0 {
		t.remark(fmt.Sprintf("warm start: %d of %d chains never predicted the images held out better than the frequencies of their classes do, "+
			"and begin at their initial values: try a lower rate (warm-schedule), more epochs (warm-epochs) or another warm-start", failed, len(w.chains)))
	}
	for _, text := range w.farAbove() {
		t.remark(text)
	}
	return t.saveNow()
}

// farAbove returns a remark on each chain whose loss is far above the others': the mean over the
// chains hides it, and its samples have the same weight as theirs.
func (w *warmUp) farAbove() (remarks []string) {
	losses := make([]float64, len(w.chains))
	for i, c := range w.chains {
		losses[i] = c.loss
	}
	chains, median := diagnostics.Outliers(losses)
	for _, i := range chains {
		remarks = append(remarks, fmt.Sprintf("warm start: chain %d begins with a loss of %.3g and an accuracy of %.3f on the images held out, "+
			"and the median of the losses is %.3g: its samples may spoil the average", w.training.spec.FirstChain+i, losses[i], w.chains[i].accuracy, median))
	}
	return remarks
}

// guessing returns the loss of guessing on the images held out.
func (w *warmUp) guessing() float64 { return guessing(w.heldOut, w.training.classWeights) }

// abandon resets chains that learned nothing to their initial values, which t's session still has,
// and returns their number. A chain learned nothing if its lowest loss on the held-out images is
// not below the loss of guessing. The weights of such a network may have exploded, and nothing
// should be sampled from them.
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
		if c.loss, c.accuracy, err = w.scores(i, initial); err != nil {
			return 0, err
		}
	}
	return failed, nil
}

// run makes the epochs. After each it scores the chains and writes a checkpoint, unless one is
// still being written or nothing is kept.
func (w *warmUp) run(ctx context.Context, t *training) error {
	u, saved := w.training, 0
	pace := u.pace(ctx, warmTask, t.data.Name, u.plan.Steps)
	if w.chains[0].best == nil { // otherwise a run that was stopped in the first epoch continues
		if err := w.score(t, 0); err != nil {
			return err
		}
	}
	for !w.stops() {
		end, last := w.stepsOf(w.epochs+1), -1 // last is where the epoch's last window begins
		for step := int(u.session.Steps()); step < end; step = int(u.session.Steps()) {
			if err := ctx.Err(); err != nil {
				if t.writer != nil { // while the optimizer's session still exists
					if err := t.saveNow(); err != nil {
						return err
					}
				}
				return errors.Wrapf(err, "stopped after %d of up to %d epochs", w.epochs, u.spec.Epochs)
			}
			steps := min(window, end-step)
			err := u.session.RunPaced(steps, pace)
			if ended := ctx.Err(); ended != nil && errors.Is(err, ended) {
				continue
			}
			if err != nil {
				if err := w.recover(t, err); err != nil {
					return err
				}
				continue
			}
			if last = step; step+steps < end {
				w.observe(t, step, steps)
			}
		}
		w.epochs++
		if err := w.score(t, w.epochs); err != nil {
			return err
		}
		if last >= 0 {
			w.observe(t, last, end-last) // with the scores after the epoch
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

// stepsOf returns the number of steps in the given number of epochs.
func (w *warmUp) stepsOf(epochs int) int {
	return int(float64(w.training.data.Len()) / float64(w.training.spec.Batch) * float64(epochs))
}

// observe reports an event for a window of steps that begins at step from.
func (w *warmUp) observe(t *training, from, steps int) {
	u := w.training
	e := newEvent(warmTask, t.data.Name, from+steps, u.plan.Steps, steps*u.spec.Batch*u.spec.Chains-u.reported)
	e.Loss, e.Accuracy, e.ValidationLoss = 0, 0, 0 // means over the chains
	for _, c := range w.chains {
		e.ValidationLoss += c.losses[len(c.losses)-1] / float64(len(w.chains))
	}
	for step := from; step < from+steps; step++ {
		for chain := range u.spec.Chains {
			e.Loss += u.session.Metric(chain, lossMetric, uint64(step)) / float64(steps*u.spec.Chains)
			e.Accuracy += u.session.Metric(chain, accuracyMetric, uint64(step)) / float64(steps*u.spec.Chains)
		}
	}
	t.observe(e)
}

// stops reports whether all epochs are made, or no chain may still improve, see patient. A chain
// that has stopped stays as it is while others continue.
func (w *warmUp) stops() bool {
	return w.epochs >= w.training.spec.Epochs || !slices.ContainsFunc(w.chains, w.patient)
}

// patient reports whether a chain improved within the last patience epochs, and before the limit
// enough.
func (w *warmUp) patient(c warmChain) bool {
	return w.epochs-c.epoch < w.patience && (w.enough == 0 || w.stepsOf(c.epoch) < w.enough)
}

// score scores the chains after an epoch, and keeps their parameters if these are the best so far.
// Chains that ran out of patience before are left as they were. A chain whose predictions are not
// finite has diverged: it returns to its best weights, and gets their score again. A chain that is
// on a plateau when its patience ends is treated the same way. A chain that forgot what it had
// learned returns, too, but its own score is kept.
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
		loss, accuracy, err := w.scores(i, state)
		if isNotFinite(err) && epoch > 0 {
			loss, accuracy, err = c.loss, c.accuracy, w.halve(t, i, fmt.Sprintf("diverged in step %d", state.Step), err)
		}
		if err != nil {
			return err
		}
		if epoch-c.epoch == w.patience && !(loss < c.loss) && w.onPlateau(i) {
			from := c.epoch
			c.epoch, loss, accuracy = epoch, c.loss, c.accuracy // its patience begins again
			if err := w.halveFrom(t, i, from, fmt.Sprintf("predicts no better than guessing after epoch %d", epoch)); err != nil {
				return err
			}
		}
		c.losses = append(c.losses, loss)
		if epoch > 0 && w.forgot(c, loss, accuracy) {
			if err := w.halve(t, i, fmt.Sprintf("predicts no better than guessing after epoch %d", epoch), nil); err != nil {
				return err
			}
		}
		if epoch > 0 && !(loss < c.loss) { // NaN is not better
			continue
		}
		c.epoch, c.loss, c.accuracy, c.best = epoch, loss, accuracy, weightsOf(state)
	}
	return nil
}

// onPlateau reports whether a chain whose rate can be halved guessed at the end of the last epoch,
// even on the images that it is optimized on: at a high rate, it may take long to begin to learn.
// Pilots, which compare the predictions after an epoch, leave their chains as they are.
func (w *warmUp) onPlateau(chain int) bool {
	s, c := w.training.session, w.chains[chain]
	if !w.training.halves || c.halvings == maxHalvings || w.predicted != nil {
		return false
	}
	end := s.Steps()
	// Steps before the last place where a run can be stopped have no metrics after a resume.
	steps := (int(end)-w.stepsOf(w.epochs-1)-1)%window + 1
	loss := 0.0
	for step := end - uint64(steps); step < end; step++ {
		loss += s.Metric(chain, lossMetric, step) / float64(steps)
	}
	guessing := w.guessing()
	return loss > almostGuessing*guessing && (c.loss >= guessing || mustReset(loss, c.loss, guessing))
}

// forgot reports whether a chain whose loss was below half the loss of guessing now guesses, like a
// network whose ReLUs have died. The loss of a network that memorizes the training images may rise
// as far, but it keeps its accuracy.
func (w *warmUp) forgot(c *warmChain, loss, accuracy float64) bool {
	guessing, most := w.guessing(), float64(slices.Max(w.heldOut.Counts()))/float64(w.heldOut.Len())
	return c.loss < guessing/2 && loss > almostGuessing*guessing && accuracy-most < (c.accuracy-most)/2
}

// almostGuessing is the fraction of the loss of guessing above which a loss shows that a chain
// guesses: a network that is about to die, or has died and adjusts its biases, is not quite at 1.
const almostGuessing = 0.9

// weightsOf returns the values of a sample's parameters.
func weightsOf(s samples.Sample) (weights [][]float32) {
	for _, p := range s.Parameters {
		weights = append(weights, p.Values)
	}
	return weights
}

// scores returns the mean negative log-likelihood on the images held out, with the class weights of
// the loss that the optimizer minimizes, and the accuracy.
func (w *warmUp) scores(chain int, state samples.Sample) (loss, accuracy float64, err error) {
	p := make([]float32, w.heldOut.Len()*w.predictor.Classes())
	if err := w.predictor.Predict(state, p); err != nil {
		return 0, 0, err
	}
	if w.predicted != nil {
		w.predicted(chain, p)
	}
	loss, accuracy = measure.Scores(p, w.heldOut.Labels, w.training.classWeights)
	return loss, accuracy, nil
}

// recover handles an error of the optimizer's session. It returns nil if a chain diverged and can
// continue at half its learning rate.
func (w *warmUp) recover(t *training, err error) error {
	i, step, ok := divergedChain(err, w.training.spec.FirstChain)
	if !ok {
		return err
	}
	return w.halve(t, i, fmt.Sprintf("diverged in step %d", step), err)
}

// halve resets a chain to its best weights so far, halves its learning rate, and remarks on what
// happened to it. It returns err if there were too many halvings.
func (w *warmUp) halve(t *training, i int, happened string, err error) error {
	u, c := w.training, &w.chains[i]
	if !u.halves {
		return err
	}
	if w.epochs-c.epoch < w.patience {
		if c.halvings == maxHalvings {
			return err
		}
		return w.halveFrom(t, i, c.epoch, happened)
	}
	return putBack(u.session, i, c.best, stoppedRate)
}

// halveFrom resets a chain that has not stopped to its best weights, which are those after the
// given epoch, and halves its learning rate.
func (w *warmUp) halveFrom(t *training, i, epoch int, happened string) error {
	u, c := w.training, &w.chains[i]
	c.halvings++
	t.remark(fmt.Sprintf("warm start: chain %d %s, and continues from its weights after epoch %d at 1/%d of the learning rate",
		u.spec.FirstChain+i, happened, epoch, 1<<c.halvings))
	return putBack(u.session, i, c.best, c.halvings)
}

// result returns where the chains began.
func (w *warmUp) result() *diagnostics.WarmStart {
	r := &diagnostics.WarmStart{HeldOut: w.heldOut.Len(), Epochs: w.epochs}
	for _, c := range w.chains {
		r.Epoch, r.Loss, r.Accuracy = append(r.Epoch, c.epoch), append(r.Loss, diagnostics.Number(c.loss)), append(r.Accuracy, diagnostics.Number(c.accuracy))
		r.Halvings = append(r.Halvings, c.halvings)
		losses := make([]diagnostics.Number, len(c.losses))
		for i, loss := range c.losses {
			losses[i] = diagnostics.Number(loss)
		}
		r.Losses = append(r.Losses, losses)
	}
	return r
}
