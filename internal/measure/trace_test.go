package measure

import (
	"testing"

	"github.com/pollen-ml/pollen/tensor"
)

// A short trace keeps every value, a long one is thinned evenly, and both continue after a restore.
func TestThinnedTrace(t *testing.T) {
	s := newTrace(8)
	for i := range 1000 {
		s.add(float64(i))
		if len(s.values) > 8 || len(s.values) < 4 && i >= 8 {
			t.Fatalf("%d values after %d", len(s.values), i+1)
		}
		for at, v := range s.values {
			if v != float64(at*s.every) {
				t.Fatalf("after %d: value %d is %v, one in %d", i+1, at, v, s.every)
			}
		}
		again := newTrace(8)
		if err := again.restore(s.state()); err != nil {
			t.Fatalf("after %d: %v", i+1, err)
		}
		a, b := again, s
		a.add(-1)
		b.values = append([]float64(nil), b.values...)
		b.add(-1)
		if len(a.values) != len(b.values) || a.every != b.every || a.added != b.added {
			t.Fatalf("after %d: %+v, want %+v", i+1, a, b)
		}
	}
	for _, bad := range [][]float64{nil, {1}, {0, 1, 5}, {1, 2, 5}, {1, -1}, append([]float64{1, 9}, make([]float64, 9)...)} {
		s := newTrace(8)
		if err := s.restore(bad); err == nil {
			t.Errorf("%v: no error", bad)
		}
	}
}

// Long traces are kept evenly spaced.
func TestThinned(t *testing.T) {
	trace := make([]float64, 25001)
	for i := range trace {
		trace[i] = float64(i)
	}
	short := thinned(trace, traceValues)
	if len(short) > traceValues || len(short) < traceValues/2 || short[1]-short[0] != short[2]-short[1] || len(thinned(trace[:100], 100)) != 100 {
		t.Errorf("%d values, the first %v", len(short), short[:3])
	}
}

func FuzzTrace(f *testing.F) {
	f.Add(tensor.Bytes([]float64{1, 1, 0.5}))
	f.Fuzz(func(t *testing.T, content []byte) {
		s := newTrace(10)
		state := make([]float64, len(content)/8)
		copy(tensor.Bytes(state), content)
		if s.restore(state) == nil && len(s.values) > s.most {
			t.Fatalf("a trace of %d values", len(s.values))
		}
	})
}
