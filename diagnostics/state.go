package diagnostics

import "github.com/pkg/errors"

// State returns all that the Thermometer has observed, as numbers for Restore, so that a resumed
// run measures as if it had never stopped.
func (t *Thermometer) State() []float64 {
	state := []float64{t.steps}
	for _, g := range t.averages() {
		state = append(append(state, float64(len(g.sums))), g.sums...)
		places := 0
		if len(g.batches) > 0 {
			places = len(g.batches[0])
		}
		state = append(state, float64(places))
		for _, batches := range g.batches {
			for _, m := range batches {
				state = append(append(state, float64(m.length), float64(m.made), float64(len(m.sums))), m.sums...)
			}
		}
	}
	return state
}

// Restore sets the Thermometer to a State, which must be of a program with the same layers. After
// an error the Thermometer is unchanged.
func (t *Thermometer) Restore(state []float64) error {
	r := stateReader{left: state}
	steps := r.number()
	gauges := make([]average, 0, 2)
	for _, g := range t.averages() {
		next := average{sizes: g.sizes, metrics: g.metrics}
		layers := r.count()
		if r.failed || layers != len(g.sums) {
			return errors.Errorf("diagnostics: thermometer: the state must have %d layers, got %d", len(g.sums), layers)
		}
		next.sums = r.numbers(layers)
		if places := r.count(); places > 0 {
			next.batches = make([][]batchMeans, layers+1)
			for i := range next.batches {
				for range places {
					m := batchMeans{length: r.count(), made: r.count()}
					m.sums = r.numbers(r.count())
					if r.failed || len(m.sums) > 2*minBatches {
						return errors.New("diagnostics: thermometer: the state is truncated or not one of a thermometer")
					}
					next.batches[i] = append(next.batches[i], m)
				}
			}
		}
		gauges = append(gauges, next)
	}
	if r.failed || len(r.left) > 0 {
		return errors.New("diagnostics: thermometer: the state is truncated or not one of a thermometer")
	}
	t.steps, t.configurational, t.kinetic = steps, gauges[0], gauges[1]
	return nil
}

func (t *Thermometer) averages() []*average { return []*average{&t.configurational, &t.kinetic} }

// stateReader reads numbers off a state, and records whether any were missing.
type stateReader struct {
	left   []float64
	failed bool
}

func (r *stateReader) number() float64 {
	if len(r.left) == 0 {
		r.failed = true
		return 0
	}
	v := r.left[0]
	r.left = r.left[1:]
	return v
}

// count reads a number that is a count of values.
func (r *stateReader) count() int {
	v := r.number()
	if !(v >= 0 && v < 1<<53) || v != float64(int(v)) {
		r.failed = true
		return 0
	}
	return int(v)
}

func (r *stateReader) numbers(n int) []float64 {
	if n < 0 || n > len(r.left) {
		r.failed = true
		return nil
	}
	values := append([]float64(nil), r.left[:n]...)
	r.left = r.left[n:]
	return values
}
