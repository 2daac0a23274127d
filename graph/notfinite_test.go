package graph_test

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// invert is y = 1 / (3 - x), infinite when x is 3.
type invert struct{}

func (invert) Name() string                                  { return "invert" }
func (invert) Shape(in []tensor.Shape) (tensor.Shape, error) { return in[0], nil }

func (invert) Lower(l *graph.Lowering) {
	n := l.Shape.Elements()
	l.Emit("invert_fwd", tensor.Threads(n), tensor.Rows(n, 1, graph.Pick(l, invertIn[float32], invertIn[float64])), l.Out(), l.In(0))
}

func invertIn[T float32 | float64](a *tensor.Args, lo, hi int) {
	y, x := tensor.Slice[T](a, 0), tensor.Slice[T](a, 1)
	for i := lo; i < hi; i++ {
		y[i] = 1 / (3 - x[i])
	}
}

// diverging counts each chain's n up from its start by 1 a step, and records relu(1/(3-n)).
func diverging(dtype tensor.DType, start func(chain uint32) float64) *graph.Builder {
	b := graph.New(dtype)
	n := b.Parameter("n", func(_ uint64, chain uint32, _ uint16, _ tensor.Shape, values []float64) { values[0] = start(chain) }, 1)
	b.Record("constant", b.Apply(op.ReLU{}, b.Table("one", []float64{1})))
	defer b.Scope("layer")()
	b.Record("inverse", b.Apply(op.ReLU{}, b.Apply(invert{}, n)))
	b.Apply(descend{1}, n, b.State("minus one", constant(-1), 1))
	return b
}

func TestNotFinite(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for _, test := range []struct {
			name          string
			starts        []float64
			before, steps int
			chain         int
			step          uint64
			finite        bool
		}{
			{name: "in the first step", starts: []float64{3}, steps: 1, step: 0},
			{name: "within a run", starts: []float64{0}, steps: 10, step: 3},
			{name: "in a later run", starts: []float64{-20}, before: 21, steps: 5, step: 23},
			{name: "in the second chain", starts: []float64{4, 1, 4}, steps: 5, chain: 1, step: 2},
			{name: "in the third chain first", starts: []float64{-1, 0, 2}, steps: 6, chain: 2, step: 1},
			{name: "in two chains at once", starts: []float64{4, 1, 1}, steps: 6, chain: 1, step: 2},
			{name: "nowhere", starts: []float64{4, 5, -9}, steps: 5, finite: true},
			{name: "after the ring has wrapped", starts: []float64{-150}, before: 128, steps: 100, step: 153},
		} {
			b := diverging(dtype, func(chain uint32) float64 { return test.starts[chain] })
			s := load(t, b, newHost(t, 2), graph.LoadOptions{Chains: len(test.starts)})
			must(t, s.Run(test.before))
			var before [][]byte
			for chain := range test.starts {
				before = append(before, save(t, s, chain))
			}
			err := s.Run(test.steps)
			if test.finite {
				must(t, err)
				continue
			}
			var fault *graph.NotFinite
			if !errors.As(err, &fault) {
				t.Fatalf("%s: got error %v, want a NotFinite", test.name, err)
			}
			want := graph.NotFinite{
				Step: test.step, Chain: test.chain, Kernel: "invert_fwd_" + dtype.Suffix(), Label: "layer: invert", Buffer: "layer: invert",
			}
			if *fault != want {
				t.Errorf("%s: got %+v, want %+v", test.name, *fault, want)
			}
			wantError(t, test.name, err, "layer: invert", "invert_fwd", "NaN or an infinity")
			if strings.Count(err.Error(), "layer: invert") != 1 {
				t.Errorf("%s: %v names the op more than once", test.name, err)
			}
			for chain := range test.starts {
				if !bytes.Equal(save(t, s, chain), before[chain]) {
					t.Errorf("%s: chain %d is not what it was before the run", test.name, chain)
				}
			}
			if s.Steps() != uint64(test.before) {
				t.Errorf("%s: %d steps, want %d", test.name, s.Steps(), test.before)
			}
			// The session can continue from there: up to the bad step, and beyond it with another
			// parameter.
			must(t, s.Run(int(test.step)-test.before))
			if again := s.Run(1); !errors.As(again, &fault) {
				t.Errorf("%s: the same step again gives %v", test.name, again)
			}
			for chain := range test.starts {
				must(t, s.WriteFloats("n", chain, []float32{100}))
			}
			must(t, s.Run(1))
		}
	}
}

// Without metrics, numbers that are not finite are not detected.
func TestNotFiniteWithoutMetrics(t *testing.T) {
	b := graph.New(tensor.Float64)
	b.Output("y", b.Apply(invert{}, b.State("x", constant(3), 1)))
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, s.Run(1000))
	if y := read(t, s, "y", 0, 1)[0]; !math.IsInf(y, 1) {
		t.Errorf("y is %v", y)
	}
}

// A wrong label makes the loss NaN, which stops the run.
func TestNotFiniteLabel(t *testing.T) {
	m := newCNN(tensor.Float32).train(0.1)
	m.labels[17] = cnnClasses
	s := m.load(t, newHost(t, 2), graph.LoadOptions{})
	var fault *graph.NotFinite
	if err := s.Run(cnnExamples/8 + 1); !errors.As(err, &fault) || fault.Label != "cross entropy" {
		t.Errorf("got %v", err)
	}
}

// TestNotFiniteAfterSetStep: the metrics of the steps that a chain makes after SetStep are checked,
// and Evaluate and Restart leave the chain at its step.
func TestNotFiniteAfterSetStep(t *testing.T) {
	b := graph.New(tensor.Float64)
	batch := op.GatherRows{Batch: op.Batch{Size: 1}}
	b.Record("row", b.Apply(batch, b.Table("rows", []float64{1, 2, 3, 4, 5, 6, math.NaN()}), b.Header()))
	s := load(t, b, newHost(t, 1), graph.LoadOptions{Chains: 2})
	must(t, s.Run(1))
	must(t, s.SetStep(1, 4))
	must(t, s.Run(2))
	if got := s.Metric(1, "row", 5); got != 6 {
		t.Errorf("the metric at step 5 is %v, want 6", got)
	}
	must(t, s.SetStep(0, 0))
	must(t, s.SetStep(1, 5))
	must(t, s.Evaluate())
	must(t, s.Restart(1))
	err := s.Run(2)
	if bad, ok := err.(*graph.NotFinite); !ok || bad.Chain != 1 || bad.Step != 6 {
		t.Errorf("error %v, want a number that is not finite in step 6 of chain 1", err)
	}
}
