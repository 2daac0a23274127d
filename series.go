package pollen

import "github.com/pkg/errors"

// series is a trace of bounded length: of what was added it keeps every value, or of a long trace
// every second, every fourth and so on, from the first one on.
type series struct {
	most   int // values kept
	every  int // of what was added, one in so many is kept
	added  int
	values []float64
}

func newSeries(most int) series { return series{most: most, every: 1} }

func (s *series) add(value float64) {
	if s.added%s.every == 0 {
		if len(s.values) == s.most {
			s.halve()
		}
		if s.added%s.every == 0 {
			s.values = append(s.values, value)
		}
	}
	s.added++
}

// halve drops every second value.
func (s *series) halve() {
	kept := s.values[:0]
	for i := 0; i < len(s.values); i += 2 {
		kept = append(kept, s.values[i])
	}
	s.values, s.every = kept, 2*s.every
}

// state is the series as numbers, which restore takes back.
func (s *series) state() []float64 {
	return append([]float64{float64(s.every), float64(s.added)}, s.values...)
}

func (s *series) restore(state []float64) error {
	if len(state) < 2 || len(state)-2 > s.most {
		return errors.Errorf("a trace of %d numbers, wants 2 to %d", len(state), s.most+2)
	}
	every, added := int(state[0]), int(state[1])
	if every < 1 || added < 0 || len(state)-2 != (added+every-1)/every {
		return errors.Errorf("a trace of %d values of %d, one in %d: these do not fit", len(state)-2, added, every)
	}
	s.every, s.added, s.values = every, added, append([]float64(nil), state[2:]...)
	return nil
}

// valuesOf are the values of several series.
func valuesOf(all []series) [][]float64 {
	values := make([][]float64, len(all))
	for i := range all {
		values[i] = all[i].values
	}
	return values
}
