package pollen

import "testing"

// TestExchangeEnergies: an energy is of minibatches of one epoch, and of all of them where they are
// few; where the data are no whole number of them, only if they fit wherever an epoch begins.
func TestExchangeEnergies(t *testing.T) {
	for _, c := range []struct{ examples, batch, minibatches, size int }{
		{60000, 100, 10, 100}, {1000, 100, 10, 100}, {400, 100, 4, 100}, {1234, 100, 10, 100}, {1099, 100, 10, 0}, {450, 100, 10, 0}, {100, 100, 1, 0},
	} {
		e := Spec{Temperatures: []float64{1, 2}, Batch: c.batch}.exchange(c.examples)
		if err := e.Validate(); err != nil || e.Minibatches != c.minibatches || e.BatchSize != c.size {
			t.Errorf("%d examples in minibatches of %d: %d of size %d, %v, want %d of size %d",
				c.examples, c.batch, e.Minibatches, e.BatchSize, err, c.minibatches, c.size)
		}
	}
}
