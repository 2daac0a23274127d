package bayes

import (
	"math"
	"reflect"
	"testing"
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
