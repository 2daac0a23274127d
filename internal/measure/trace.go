package measure

import (
	"github.com/pkg/errors"
)

// thinnedTrace is a trace of bounded length. It keeps every value that is added, or of a long trace
// every second, every fourth and so on, beginning with the first.
type thinnedTrace struct {
	most   int // maximum number of values kept
	every  int // one in every values is kept
	added  int
	values []float64
}

func newTrace(most int) thinnedTrace { return thinnedTrace{most: most, every: 1} }

func (s *thinnedTrace) add(value float64) {
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
func (s *thinnedTrace) halve() {
	kept := s.values[:0]
	for i := 0; i < len(s.values); i += 2 {
		kept = append(kept, s.values[i])
	}
	s.values, s.every = kept, 2*s.every
}

// state returns the trace as numbers, which restore reads: every, added, and the values.
func (s *thinnedTrace) state() []float64 {
	return append([]float64{float64(s.every), float64(s.added)}, s.values...)
}

func (s *thinnedTrace) restore(state []float64) error {
	if len(state) < 2 || len(state)-2 > s.most {
		return errors.Errorf("a trace must have 2 to %d numbers, got %d", s.most+2, len(state))
	}
	every, added := int(state[0]), int(state[1])
	if every < 1 || added < 0 || len(state)-2 != (added+every-1)/every {
		return errors.Errorf("a trace of %d values of %d, one in %d: these do not fit", len(state)-2, added, every)
	}
	s.every, s.added, s.values = every, added, append([]float64(nil), state[2:]...)
	return nil
}

// valuesOf returns the values of several traces.
func valuesOf(all []thinnedTrace) [][]float64 {
	values := make([][]float64, len(all))
	for i := range all {
		values[i] = all[i].values
	}
	return values
}

// thinned returns evenly spaced values of a trace, about most of them at the most.
func thinned(trace []float64, most int) []float64 {
	if len(trace) <= most {
		return trace
	}
	var short []float64
	for at := 0; at < len(trace); at += 1 + len(trace)/most {
		short = append(short, trace[at])
	}
	return short
}
