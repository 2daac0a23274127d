package bayes

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/internal/measure"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/optimizers"
)

// TestWarmNumbers: a warm start is restored from its numbers in a checkpoint, and numbers that no
// warm start can have are refused.
func TestWarmNumbers(t *testing.T) {
	want := []warmChain{{epoch: 1, halvings: 2, loss: 0.5, accuracy: 0.75, losses: []float64{2, 0.5, 0.75}}, {loss: 2, accuracy: 0.25, losses: []float64{2}}}
	numbers := (&warmUp{epochs: 2, chains: want}).numbers()
	w := &warmUp{chains: make([]warmChain, 2)}
	if err := w.setNumbers(numbers); err != nil || w.epochs != 2 || w.done || !reflect.DeepEqual(w.chains, want) {
		t.Errorf("%v give %+v after %d epochs (%v), want %+v", numbers, w.chains, w.epochs, err, want)
	}
	for name, wrong := range map[string][]float64{
		"none":             nil,
		"cut short":        numbers[:len(numbers)-1],
		"too long":         append(append([]float64{}, numbers...), 1),
		"without losses":   {0, 2, 0, 2, 0.25, 0, 0, 0, 2, 0.25, 0, 0},
		"a negative count": {0, 2, 0, 2, 0.25, 0, -1, 0, 2, 0.25, 0, 0},
		"no count":         {0, 2, 0, 2, 0.25, 0, math.NaN(), 0, 2, 0.25, 0, 0},
		"many halvings":    {0, 2, 0, 2, 0.25, maxHalvings + 1, 1, 2, 0, 2, 0.25, 0, 1, 2},
	} {
		if err := (&warmUp{chains: make([]warmChain, 2)}).setNumbers(wrong); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The space that a checkpoint takes on the disk includes the states of a warm start, in every part
// of a run.
func TestRoomOfWarmStart(t *testing.T) {
	data := squares(t, 100, 4, 1)
	spec := Spec{Network: "mlp-3", Method: langevin.SGLD{}, Batch: 10, Epochs: 4, Cycles: 1, Chains: 2, WarmStart: methodOf(t, "adam").(optimizers.Optimizer)}
	tr, err := newTraining(spec, data, "", environmentOf([]Option{with(t, 1)}))
	must(t, err)
	must(t, tr.load(t.Context(), tr.device))
	defer tr.session.Close()
	tr.observing()
	w := tr.warmUp
	must(t, w.load(t.Context(), tr.device))
	defer w.close()
	must(t, w.score(tr, 0))
	for _, c := range []struct {
		part string
		done bool
		step int
	}{{"warm start", false, 0}, {"exploring", true, 0}, {"sampling", true, tr.plan.Steps}} {
		w.done = c.done
		must(t, tr.session.Run(c.step))
		checkpoint, err := tr.checkpoint()
		must(t, err)
		want := tr.measured.TraceBytes()
		for _, state := range append(checkpoint.Chains, checkpoint.Warm...) {
			want += uint64(len(state))
		}
		if got, _ := tr.room(); got != want || (checkpoint.Warm == nil) != (c.step > 0) {
			t.Errorf("%s: %d bytes, want %d", c.part, got, want)
		}
	}
}

// A chain forgot if its loss and accuracy are no better than guessing although it had learned. A
// chain that memorizes, or that never learned, did not forget.
func TestForgot(t *testing.T) {
	data := squares(t, 60, 3, 1)
	w := warmUp{training: new(training), heldOut: data}
	guessing := w.guessing()
	for _, c := range []struct {
		name           string
		best, before   float64 // loss and accuracy
		loss, accuracy float64
		want           bool
	}{
		{"dead", 0.3, 1, guessing, 0.33, true},
		{"dying", 0.3, 1, 0.95 * guessing, 0.5, true},
		{"worse than guessing", 0.3, 1, 5, 0.33, true},
		{"a little worse", 0.3, 1, 0.6, 0.8, false},
		{"memorizes", 0.3, 0.9, 2 * guessing, 0.85, false},
		{"never learned", 0.8 * guessing, 0.5, 2 * guessing, 0.33, false},
	} {
		if got := w.forgot(&warmChain{loss: c.best, accuracy: c.before}, c.loss, c.accuracy); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// With balanced class weights a network guesses if it gives all classes the same probability, even
// if one of them has nearly all images.
func TestGuessingWithClassWeights(t *testing.T) {
	data := squares(t, 60, 3, 1)
	for i := range data.Labels {
		data.Labels[i] = max(0, int32(i)-57)
	}
	weights, err := ClassWeights{Balanced: true}.of(data)
	must(t, err)
	w := warmUp{training: &training{job: job{classWeights: weights}}, heldOut: data}
	uniform := slices.Repeat([]float64{1. / 3}, 3*data.Len())
	loss, _ := measure.Scores(uniform, data.Labels, w.training.classWeights)
	if got := w.guessing(); math.Abs(got-math.Log(3)) > 1e-12 || math.Abs(got-loss) > 1e-12 {
		t.Errorf("guessing has a loss of %v, and equal probabilities of %v, want ln 3", got, loss)
	}
}

// After exploring, a chain is reset if its loss exploded or is close to that of guessing, unless it
// had not learned before.
func TestMustReset(t *testing.T) {
	const guessing = 1.0986 // ln 3
	for _, c := range []struct {
		name         string
		loss, before float64
		want         bool
	}{
		{"better", 0.1, 0.3, false},
		{"a little worse", 0.6, 0.3, false},
		{"dead, below guessing", 1.058, 0.3, true},
		{"dead, above guessing", 1.12, 0.3, true},
		{"a hard task", 0.85, 0.9, false},
		{"had not learned", 1.2, 1.1, false},
		{"had not learned, and exploded", 1e6, 1.1, true},
		{"exploded", 1e11, 0.3, true},
	} {
		if got := mustReset(c.loss, c.before, guessing); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A chain whose loss is far above the others' after the warm start is named, which the mean over
// the chains hides.
func TestChainsFarAboveTheOthers(t *testing.T) {
	w := &warmUp{training: &training{job: job{spec: Spec{FirstChain: 4}}}}
	for _, c := range []struct{ loss, accuracy float64 }{{0.01, 1}, {0.02, 0.99}, {1.9, 0.305}, {0.03, 0.99}} {
		w.chains = append(w.chains, warmChain{loss: c.loss, accuracy: c.accuracy})
	}
	want := []string{"warm start: chain 6 begins with a loss of 1.9 and an accuracy of 0.305 on the images held out, " +
		"and the median of the losses is 0.02: its samples may spoil the average"}
	if got := w.farAbove(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
