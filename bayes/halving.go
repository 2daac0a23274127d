package bayes

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
)

// The learning rates at which chains explore well are close to those at which they diverge. While a
// chain is only optimized, in a warm start or in the exploring part of a cycle, it may diverge
// without ending the run: it goes back to earlier weights, and its learning rate is halved for the
// rest of the run. If it still diverges after maxHalvings halvings, the run fails.
const maxHalvings = 10

// halvingsState is the name of the state that holds the number of a chain's halvings, or
// stoppedRate.
const halvingsState = "rate halvings"

// stoppedRate is the number of the factor 0. A chain gets it if it diverges after its warm start
// has ended, while others are still optimized.
const stoppedRate = maxHalvings + 1

// rateFactors returns the factors of learning rates: 2^-n after n halvings, and 0 for stoppedRate.
func rateFactors() []float64 {
	factors := make([]float64, stoppedRate+1)
	for i := range stoppedRate {
		factors[i] = math.Ldexp(1, -i)
	}
	return factors
}

// halvable returns the learning rate of each chain in the present step, from a table by step.
func halvable(b *graph.Builder, rates *graph.Node) *graph.Node {
	return b.Apply(op.ScaledEntry{}, rates, b.Table("rate factors", rateFactors()), b.State(halvingsState, nil, 1), b.Header())
}

// setRateFactor sets a chain's number of halvings, or stoppedRate.
func setRateFactor(s *graph.Session, chain, number int) error {
	return s.WriteFloats(halvingsState, chain, []float32{float32(number)})
}

// rate returns the learning rate of a chain of the session in a step.
func (t *job) rate(chain, step int) (float64, error) {
	if !t.halves {
		return t.rates[step], nil
	}
	var number [1]float32
	err := t.session.ReadFloats(halvingsState, chain, number[:])
	return t.rates[step] * rateFactors()[int(number[0])], err
}

// putBack gives a chain earlier weights, the initial values of its other states, such as
// velocities, and a number of halvings, or stoppedRate.
func putBack(s *graph.Session, chain int, weights [][]float32, number int) error {
	if err := s.Restart(chain); err != nil {
		return err
	}
	if err := writeWeights(s, chain, weights); err != nil {
		return err
	}
	return setRateFactor(s, chain, number)
}

// divergedChain returns the chain of the session and the step that a graph.NotFinite names. ok is
// false for other errors.
func divergedChain(err error, firstChain int) (chain, step int, ok bool) {
	var bad *graph.NotFinite
	if !errors.As(err, &bad) {
		return 0, 0, false
	}
	return bad.Chain - firstChain, int(bad.Step), true
}

// recover handles an error of the optimizer's session. It returns nil if that is a chain which
// diverged and can continue at half its learning rate.
func (w *warmUp) recover(t *training, err error) error {
	i, step, ok := divergedChain(err, w.training.spec.FirstChain)
	if !ok {
		return err
	}
	return w.halve(t, i, step, err)
}

// halve returns a chain that diverged in a step to its best weights so far, and halves its learning
// rate. It returns err if there were too many halvings.
func (w *warmUp) halve(t *training, i, step int, err error) error {
	u, c := w.training, &w.chains[i]
	if !u.halves {
		return err
	}
	number := stoppedRate
	if w.epochs-c.epoch < w.patience {
		if c.halvings == maxHalvings {
			return err
		}
		c.halvings++
		number = c.halvings
		t.remark(fmt.Sprintf("warm start: chain %d diverged in step %d, and continues from its weights after epoch %d at 1/%d of the learning rate",
			u.spec.FirstChain+i, step, c.epoch, 1<<c.halvings))
	}
	return putBack(u.session, i, c.best, number)
}

// explores reports whether chains explore, at temperature 0, in a later step than the given one, or
// explored in that one, whose outcome afterExploring has yet to look at.
func (t *training) explores(made int) bool {
	return t.halves && slices.Contains(t.temperatures[max(0, made-1):], 0)
}

// sample makes the steps after the warm start. A chain that diverges where a cycle explores goes
// back to the weights that it began with, and continues at half its learning rate.
func (t *training) sample(ctx context.Context) error {
	hooks := t.hooks
	if t.halves {
		hooks = append(slices.Clip(hooks), afterExploring{t})
	}
	for {
		err := t.plan.Run(ctx, t.session, t.spacing(), t.observeWindow, hooks...)
		i, step, ok := divergedChain(err, t.spec.FirstChain)
		if !ok || !t.halves || t.temperatures[step] > 0 {
			return err
		}
		if err := t.halve(i, fmt.Sprintf("diverged in step %d", step), err); err != nil {
			return err
		}
	}
}

// afterExploring is the hook between exploring and sampling. It finds chains whose weights exploded
// although all numbers are still finite, by their losses in the last exploring steps.
type afterExploring struct{ t *training }

// Due reports whether the last step explored and the next one samples.
func (h afterExploring) Due(steps int) bool {
	at := h.t.temperatures
	return steps > 0 && steps < len(at) && at[steps-1] == 0 && at[steps] > 0
}

// explodedLoss is the ratio to the loss of guessing above which a loss shows that a chain exploded.
const explodedLoss = 100

// OnStep returns chains that exploded to the weights that they began with, and those that predict
// worse than the frequencies of the classes do although they predicted better after the warm start.
func (h afterExploring) OnStep(_ context.Context, s *graph.Session) error {
	const last = 10
	t, steps, guessing := h.t, int(s.Steps()), h.t.warmUp.guessing()
	for i, c := range t.warmUp.chains {
		loss, n := 0.0, 0.0
		for step := max(0, steps-last); step < steps && t.temperatures[step] == 0; step++ {
			loss += s.Metric(i, lossMetric, uint64(step))
			n++
		}
		if loss /= n; !(loss > guessing && c.loss < guessing || loss > explodedLoss*guessing) {
			continue
		}
		happened := fmt.Sprintf("has a loss of %.3g after exploring", loss)
		if c.halvings == maxHalvings {
			t.remark(fmt.Sprintf("chain %d %s, though its learning rate was halved %d times", t.spec.FirstChain+i, happened, c.halvings))
			continue
		}
		if err := t.halve(i, happened, nil); err != nil {
			return err
		}
	}
	return nil
}

// halve returns a chain to the weights that it began with, halves its learning rate, and remarks on
// what happened to it. It returns err if there are no such weights or too many halvings.
func (t *training) halve(i int, happened string, err error) error {
	c := &t.warmUp.chains[i]
	if c.best == nil || c.halvings == maxHalvings {
		return err
	}
	c.halvings++
	t.remark(fmt.Sprintf("chain %d %s, and continues from its weights after the warm start at 1/%d of the learning rate",
		t.spec.FirstChain+i, happened, 1<<c.halvings))
	return putBack(t.session, i, c.best, c.halvings)
}
