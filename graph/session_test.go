package graph_test

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/tensor"
)

// save returns the saved state of a chain.
func save(t testing.TB, s *graph.Session, chain int) []byte {
	t.Helper()
	state := make([]byte, s.ChainBytes())
	must(t, s.Save(chain, state))
	return state
}

// noisyCNN is a network whose updates have noise, so that chains differ in more than their initial
// parameters.
func noisyCNN(dtype tensor.DType) *cnn {
	m := newCNN(dtype)
	for i, w := range m.builder.Parameters() {
		m.builder.Apply(descend{0.05}, w, m.builder.Apply(noise{m.builder.Stream()}, m.gradients[i], m.builder.Header()))
	}
	m.builder.Record("loss", m.loss)
	return m
}

func TestChainsTogetherEqualEachAlone(t *testing.T) {
	const chains, steps = 8, 7
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		for _, threads := range []int{1, 2, 3} {
			host := newHost(t, threads)
			together := noisyCNN(dtype).load(t, host, graph.LoadOptions{Seed: 7, Chains: chains})
			must(t, together.Run(steps))
			states := map[string]int{}
			for chain := range chains {
				alone := noisyCNN(dtype).load(t, host, graph.LoadOptions{Seed: 7, FirstChain: chain})
				must(t, alone.Run(3))
				must(t, alone.Run(steps-3))
				state := save(t, alone, 0)
				if !bytes.Equal(save(t, together, chain), state) {
					t.Errorf("%v, %d threads: chain %d among %d differs from chain %d in a separate session", dtype, threads, chain, chains, chain)
				}
				if got, want := together.Metric(chain, "loss", steps-1), alone.Metric(0, "loss", steps-1); got != want {
					t.Errorf("%v, %d threads: chain %d: loss is %v, in a separate session %v", dtype, threads, chain, got, want)
				}
				if other, ok := states[string(state)]; ok {
					t.Errorf("chains %d and %d are the same", other, chain)
				}
				states[string(state)] = chain
			}
		}
	}
}

func TestThreadsDoNotChangeBits(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		var want []byte
		for _, threads := range []int{1, 2, 3} {
			s := noisyCNN(dtype).load(t, newHost(t, threads), graph.LoadOptions{Seed: 3})
			must(t, s.Run(5))
			if state := save(t, s, 0); want == nil {
				want = state
			} else if !bytes.Equal(state, want) {
				t.Errorf("%v: %d threads differ from one", dtype, threads)
			}
		}
	}
}

func TestSeedMatters(t *testing.T) {
	host := newHost(t, 1)
	one := noisyCNN(tensor.Float32).load(t, host, graph.LoadOptions{Seed: 1})
	two := noisyCNN(tensor.Float32).load(t, host, graph.LoadOptions{Seed: 2})
	for _, w := range one.Program().Parameters() {
		if w.Name == "linear.bias" {
			continue // zeros
		}
		a, b := make([]float32, w.Shape.Elements()), make([]float32, w.Shape.Elements())
		must(t, one.ReadFloats(w.Name, 0, a))
		must(t, two.ReadFloats(w.Name, 0, b))
		if a[0] == b[0] {
			t.Errorf("%s begins with %v under both seeds", w.Name, a[0])
		}
	}
}

func TestRestoreResumes(t *testing.T) {
	host := newHost(t, 2)
	o := graph.LoadOptions{Seed: 11, Chains: 2}
	whole := noisyCNN(tensor.Float32).load(t, host, o)
	must(t, whole.Run(4))
	var states [2][]byte
	for chain := range states {
		states[chain] = save(t, whole, chain)
	}
	must(t, whole.Run(6))

	o.Seed = 99 // the state has its own seed
	resumed := noisyCNN(tensor.Float32).load(t, host, o)
	must(t, resumed.Run(2))
	for chain := range states {
		must(t, resumed.Restore(chain, states[chain], 4))
	}
	if got := resumed.Steps(); got != 4 {
		t.Errorf("%d steps after Restore, want 4", got)
	}
	must(t, resumed.Run(6))
	for chain := range states {
		if !bytes.Equal(save(t, resumed, chain), save(t, whole, chain)) {
			t.Errorf("chain %d: resumed differs from uninterrupted", chain)
		}
		for step := range uint64(10) {
			if got, want := resumed.Metric(chain, "loss", step), whole.Metric(chain, "loss", step); got != want {
				t.Errorf("chain %d, step %d: loss is %v, uninterrupted %v", chain, step, got, want)
			}
		}
	}
	if resumed.Steps() != whole.Steps() || whole.Steps() != 10 {
		t.Errorf("steps are %d and %d, want 10", resumed.Steps(), whole.Steps())
	}
	wantError(t, "a short state", resumed.Restore(0, states[0][1:], 4), "restore", "must have")
	wantError(t, "a short buffer", resumed.Save(0, states[0][1:]), "save", "must have")
	wantError(t, "a chain too many", resumed.Restore(2, states[0], 4), "chain must be in [0, 2), got 2")
}

// Steps in parts have the bits of steps at once, and a Pace can take them back.
func TestRunPaced(t *testing.T) {
	host := newHost(t, 2)
	begun := func() *graph.Session {
		s := noisyCNN(tensor.Float32).load(t, host, graph.LoadOptions{Seed: 7, Chains: 3})
		must(t, s.Run(5))
		return s
	}
	whole := begun()
	must(t, whole.Run(7))
	for _, test := range []struct {
		next  int
		calls string // made and left
	}{{-1, "[0 7] [1 6] [2 5] [3 4] [4 3] [5 2] [6 1] [7 0]"}, {3, "[0 7] [3 4] [6 1] [7 0]"}, {100, "[0 7] [7 0]"}} {
		s, calls := begun(), []string{}
		must(t, s.RunPaced(7, func(made, left int) (int, error) {
			calls = append(calls, fmt.Sprint([]int{made, left}))
			return test.next, nil
		}))
		if got := strings.Join(calls, " "); got != test.calls {
			t.Errorf("parts of %d: calls %s, want %s", test.next, got, test.calls)
		}
		for chain := range 3 {
			if !bytes.Equal(save(t, s, chain), save(t, whole, chain)) || s.Metric(chain, "loss", 6) != whole.Metric(chain, "loss", 6) {
				t.Errorf("parts of %d: chain %d differs", test.next, chain)
			}
		}
	}
	s, stop := begun(), errors.New("stop")
	if err := s.RunPaced(7, func(made, _ int) (int, error) {
		if made == 4 {
			return 0, stop
		}
		return 2, nil
	}); err != stop {
		t.Errorf("error %v, want the pace's", err)
	}
	if s.Steps() != 5 || s.Metric(0, "loss", 4) != whole.Metric(0, "loss", 4) {
		t.Errorf("stopped after step %d, want 5 with its metrics", s.Steps())
	}
	must(t, s.Run(7))
	for chain := range 3 {
		if !bytes.Equal(save(t, s, chain), save(t, whole, chain)) {
			t.Errorf("chain %d differs after a stop", chain)
		}
	}
	// Without metrics, the steps made before the stop count.
	b := graph.New(tensor.Float64)
	n := b.State("n", nil, 1)
	b.Apply(descend{1}, n, b.State("minus one", constant(-1), 1))
	plain := load(t, b, host, graph.LoadOptions{})
	err := plain.RunPaced(1000, func(made, left int) (int, error) {
		if made >= 600 {
			return 0, stop
		}
		return 300, nil
	})
	if value := read(t, plain, "n", 0, 1)[0]; err != stop || plain.Steps() != 600 || value != 600 {
		t.Errorf("without metrics: %v after %d steps, n is %v, want 600", err, plain.Steps(), value)
	}
}

// counter is a graph whose metric is the number of the step, by way of an update that adds 1.
func counter() *graph.Builder {
	b := graph.New(tensor.Float64)
	n := b.State("n", nil, 1)
	b.Apply(descend{1}, n, b.State("minus one", constant(-1), 1))
	b.Record("n", b.Apply(op.ReLU{}, n))
	b.Record("double", b.Apply(op.BiasAdd{}, b.Apply(op.ViewAs(1, 1), n), n))
	return b
}

func TestMetricsRingWraps(t *testing.T) {
	s := load(t, counter(), newHost(t, 1), graph.LoadOptions{Chains: 2})
	if got := s.Program().Metrics(); len(got) != 2 || got[0] != "n" || got[1] != "double" {
		t.Errorf("metrics are %q", got)
	}
	total := uint64(0)
	for _, steps := range []int{1, 100, graph.MetricRows, 0, graph.MetricRows - 1, 5} {
		must(t, s.Run(steps))
		total += uint64(steps)
		if s.Steps() != total {
			t.Fatalf("%d steps, want %d", s.Steps(), total)
		}
		for step := total - uint64(steps); step < total; step++ {
			for chain := range 2 {
				if got := s.Metric(chain, "n", step); got != float64(step) {
					t.Errorf("chain %d, step %d: metric is %v", chain, step, got)
				}
				if got := s.Metric(chain, "double", step); got != 2*float64(step) {
					t.Errorf("chain %d, step %d: double is %v", chain, step, got)
				}
			}
		}
	}
	header, err := s.Header(1)
	must(t, err)
	if header[graph.HeaderStep] != total || header[graph.HeaderChain] != 1 {
		t.Errorf("header is %v after %d steps of chain 1", header, total)
	}
	must(t, s.SetStep(1, 7))
	for chain, want := range []uint64{total, 7} {
		if header, err := s.Header(chain); err != nil || header[graph.HeaderStep] != want || header[graph.HeaderChain] != uint64(chain) {
			t.Errorf("header of chain %d is %v (%v), want step %d", chain, header, err, want)
		}
	}
}

// A metric that does not exist is NaN: of an unknown name, chain or step.
func TestMissingMetric(t *testing.T) {
	s := load(t, counter(), newHost(t, 1), graph.LoadOptions{Chains: 2})
	must(t, s.Run(3))
	if got := s.Metric(1, "n", 2); got != 2 {
		t.Errorf("n is %v in step 2, want 2", got)
	}
	for _, got := range []float64{
		s.Metric(1, "m", 2), s.Metric(2, "n", 2), s.Metric(-1, "n", 2), s.Metric(1, "n", 3), s.Metric(1, "n", graph.MetricRows+2),
	} {
		if !math.IsNaN(got) {
			t.Errorf("a metric that does not exist is %v, want NaN", got)
		}
	}
}

// An evaluation computes outputs, and nothing else of a step: metrics may be infinite, no step is
// counted, and the next step's metrics are its own.
func TestEvaluate(t *testing.T) {
	b := graph.New(tensor.Float64)
	x := b.Parameter("x", nil, 2)
	doubled := b.Apply(op.Scale{Factor: 2}, x)
	b.Output("doubled", doubled)
	b.Record("sum", b.Apply(op.Sum{}, doubled))
	s := load(t, b, newHost(t, 1), graph.LoadOptions{Seed: 3, Chains: 2})
	must(t, s.Run(3))
	for _, v := range []float64{5, math.Inf(1)} {
		got := make([]float64, 2)
		must(t, graph.Write(s, "x", 1, 0, []float64{v, 1}))
		must(t, s.Evaluate())
		must(t, graph.Read(s, "doubled", 1, 0, got))
		if got[0] != 2*v || got[1] != 2 {
			t.Errorf("at %v the outputs are %v", v, got)
		}
	}
	header, err := s.Header(1)
	must(t, err)
	if s.Steps() != 3 || header[graph.HeaderStep] != 3 || s.Evaluations() != 2 {
		t.Errorf("%d steps, %d in the header, and %d evaluations, want 3, 3 and 2", s.Steps(), header[graph.HeaderStep], s.Evaluations())
	}
	must(t, graph.Write(s, "x", 1, 0, []float64{4, 1}))
	must(t, s.Run(1))
	if got := s.Metric(1, "sum", 3); got != 10 || s.Metric(0, "sum", 3) != 0 {
		t.Errorf("after a step the metric is %v, want 10", got)
	}
	if err := noisyCNN(tensor.Float32).load(t, newHost(t, 1), graph.LoadOptions{}).Evaluate(); err == nil || !strings.Contains(err.Error(), "has updates") {
		t.Errorf("error %v of a program with updates", err)
	}
}

// The sum of a metric's elements is recorded.
func TestMetricOfVector(t *testing.T) {
	b := graph.New(tensor.Float32)
	b.Record("sum", b.Apply(op.ReLU{}, b.Table("x", []float64{1, 2, -5, 4})))
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, s.Run(2))
	if got := s.Metric(0, "sum", 1); got != 7 {
		t.Errorf("the sum is %v, want 7", got)
	}
}

func TestSessionErrors(t *testing.T) {
	host := newHost(t, 2)
	m := noisyCNN(tensor.Float32)
	s := m.load(t, host, graph.LoadOptions{Chains: 2})
	p := s.Program()
	for _, test := range []struct {
		name string
		err  error
		want []string
	}{
		{"too many steps", s.Run(graph.MetricRows + 1), []string{"graph: run: steps must be at most 128", "got 129"}},
		{"fewer than no steps", s.Run(-1), []string{"steps must be at least 0, got -1"}},
		{"an unknown name", graph.Read(s, "conv3.weight", 0, 0, []float32{1}), []string{`"conv3.weight"`, `"conv1.weight"`}},
		{"an unknown name to write", graph.Write(s, "conv3.weight", 0, 0, []float32{1}), []string{`"conv3.weight"`}},
		{"another type", graph.Read(s, "conv1.weight", 0, 0, []float64{1}), []string{"conv1.weight: the values must be of float32, got float64"}},
		{"another type to write", graph.Write(s, "images", 0, 0, []float32{1}), []string{"images: the values must be of uint8, got float32"}},
		{"too long", graph.Write(s, "conv1.weight", 0, 0, make([]float32, 73)), []string{"conv1.weight", "72 elements, got 73"}},
		{"beyond the end", graph.Read(s, "conv1.weight", 0, 70, make([]float32, 3)), []string{"conv1.weight"}},
		{"before the start", graph.Read(s, "conv1.weight", 0, -1, make([]float32, 3)), []string{"conv1.weight"}},
		{"a chain too many", graph.Read(s, "conv1.weight", 2, 0, make([]float32, 3)), []string{"chain must be in [0, 2), got 2"}},
		{"a negative chain", graph.Write(s, "conv1.weight", -1, 0, make([]float32, 3)), []string{"chain must be in [0, 2), got -1"}},
		{"floats of bytes", s.ReadFloats("images", 0, make([]float32, 3)), []string{"images: the values must be of uint8"}},
	} {
		wantError(t, test.name, test.err, test.want...)
	}
	if s.Steps() != 0 {
		t.Errorf("%d steps after runs that failed", s.Steps())
	}
	for _, o := range []graph.LoadOptions{{Chains: -1}, {FirstChain: -1}} {
		_, err := p.Load(host, o)
		wantError(t, fmt.Sprint(o), err, "graph: load: Chains and FirstChain must be at least 0", "-1")
	}
	for _, o := range []graph.LoadOptions{
		{FirstChain: math.MaxUint16}, {Chains: math.MaxUint16 + 1}, {FirstChain: 1, Chains: math.MaxInt}, {FirstChain: math.MaxInt},
	} {
		_, err := p.Load(host, o)
		wantError(t, fmt.Sprint(o), err, "graph: load", "chains")
	}
	closed, err := p.Load(host, graph.LoadOptions{})
	must(t, err)
	must(t, closed.Close())
	wantError(t, "a run after Close", closed.Run(1), "Close")
	wantError(t, "a read after Close", graph.Read(closed, "conv1.bias", 0, 0, make([]float32, 1)), "Close")
}

func TestReadAndWrite(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		b := graph.New(dtype)
		b.Output("y", b.Apply(op.ReLU{}, b.State("x", constant(0.5), 5)))
		s := load(t, b, newHost(t, 1), graph.LoadOptions{Chains: 2})
		must(t, s.WriteFloats("x", 1, []float32{-1, 2, 3, 4, 5}))
		must(t, s.Run(1))
		for chain, want := range [][]float32{{.5, .5, .5, .5, .5}, {0, 2, 3, 4, 5}} {
			got := make([]float32, 5)
			must(t, s.ReadFloats("y", chain, got))
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%v: chain %d: y is %v, want %v", dtype, chain, got, want)
			}
		}
		if s.Chains() != 2 || s.Program().DType() != dtype {
			t.Errorf("%d chains of %v", s.Chains(), s.Program().DType())
		}
	}
	b := graph.New(tensor.Float64)
	b.Output("y", b.Apply(op.ReLU{}, b.State("x", nil, 5)))
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	must(t, graph.Write(s, "x", 0, 3, []float64{7}))
	must(t, s.Run(1))
	part := make([]float64, 2)
	must(t, graph.Read(s, "y", 0, 3, part))
	sameBits(t, "y[3:5]", part, []float64{7, 0})
	const within = "must be within its 5 elements"
	wantError(t, "a read beyond the end", graph.Read(s, "y", 0, 4, part), within+", got 2 from element 4 on")
	wantError(t, "a read before the beginning", graph.Read(s, "y", 0, -1, part), within)
	wantError(t, "a write beyond the end", graph.Write(s, "x", 0, 0, make([]float64, 6)), within)
	wantError(t, "a write whose first byte overflows", graph.Write(s, "x", 0, 1<<61, part), within)
}

// An output may be an input, or a view of one: its value is what the input holds after the step.
func TestOutputsOfInputs(t *testing.T) {
	b := graph.New(tensor.Float64)
	w := b.Parameter("w", constant(3), 2)
	b.Output("after", b.Apply(op.ViewAs(2, 1), w))
	b.Apply(descend{1}, w, b.State("dw", constant(1), 2))
	s := load(t, b, newHost(t, 1), graph.LoadOptions{})
	if n := len(s.Program().Launches()); n != 1 {
		t.Errorf("%d launches, want only the update", n)
	}
	must(t, s.Run(1))
	sameBits(t, "after", read(t, s, "after", 0, 2), []float64{2, 2})
}

func TestRunDoesNotAllocate(t *testing.T) {
	for _, test := range []struct{ threads, chains int }{{1, 1}, {1, 3}, {2, 1}, {2, 2}, {2, 3}} {
		s := noisyCNN(tensor.Float32).load(t, newHost(t, test.threads), graph.LoadOptions{Chains: test.chains})
		if n := testing.AllocsPerRun(5, func() { must(t, s.Run(2)) }); n > 0 {
			t.Errorf("%d threads, %d chains: a run allocates %v times", test.threads, test.chains, n)
		}
	}
}

// TestRestart: a restarted chain has its initial parameters and states, but keeps its step; other
// chains do not change. It continues in another way than the chain of step 0, because random
// numbers depend on the step.
func TestRestart(t *testing.T) {
	for _, dtype := range []tensor.DType{tensor.Float32, tensor.Float64} {
		load := func() *graph.Session {
			b := graph.New(dtype)
			w := b.Parameter("w", func(_ uint64, chain uint32, stream uint16, _ tensor.Shape, values []float64) {
				for i := range values {
					values[i] = float64(chain) + float64(stream) + float64(i)
				}
			}, 7)
			v := b.State("v", nil, 7) // without an initializer, so that it begins at 0
			x := b.Apply(noise{b.Stream()}, w, b.Header())
			b.Apply(descend{1}, v, x)
			b.Apply(descend{0.5}, w, v)
			b.Record("sum", b.Apply(op.Sum{}, v))
			return load(t, b, newHost(t, 1), graph.LoadOptions{Seed: 3, FirstChain: 2, Chains: 3})
		}
		read := func(s *graph.Session, name string, chain int) string {
			values := make([]float32, 7)
			must(t, s.ReadFloats(name, chain, values))
			return fmt.Sprint(values)
		}
		fresh, s := load(), load()
		must(t, s.Run(5))
		others := [2][]byte{save(t, s, 0), save(t, s, 2)}
		if read(s, "v", 1) == read(fresh, "v", 1) || read(s, "w", 1) == read(fresh, "w", 1) {
			t.Fatalf("%v: five steps moved nothing", dtype)
		}
		must(t, s.Restart(1))
		for _, name := range []string{"w", "v"} {
			if got, want := read(s, name, 1), read(fresh, name, 1); got != want {
				t.Errorf("%v: %s is %s after a restart, want %s", dtype, name, got, want)
			}
		}
		if header, err := s.Header(1); err != nil || header != [3]uint64{3, 3, 5} || s.Steps() != 5 {
			t.Errorf("%v: the header is %v after %d steps (%v), want seed 3, chain 3 and step 5", dtype, header, s.Steps(), err)
		}
		if !bytes.Equal(save(t, s, 0), others[0]) || !bytes.Equal(save(t, s, 2), others[1]) {
			t.Errorf("%v: another chain changed", dtype)
		}
		must(t, s.Run(1))
		must(t, fresh.Run(1))
		if read(s, "v", 1) == read(fresh, "v", 1) {
			t.Errorf("%v: the step after the restart has the random numbers of step 0", dtype)
		}
	}
}
