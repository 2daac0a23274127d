package cuda

import (
	"math"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/tensor"
)

// noSwitches unsets all variables until the test ends.
func noSwitches(t *testing.T) {
	for _, v := range []string{
		AheadVariable, CapabilityVariable, GraphsVariable, OrderVariable, WGMMAVariable, PDLVariable,
		PackedVariable, WindowsVariable, PixelsVariable, RoundedVariable,
	} {
		t.Setenv(v, "")
	}
}

// elementwiseStep returns a step of two ReLUs, the second applied to the first one's result, of n
// elements.
func elementwiseStep(n, chains int) tensor.Workload {
	b := make([]*tensor.Buffer, 3)
	for i := range b {
		b[i] = tensor.NewBuffer("x", tensor.Scratch, tensor.Float32, n)
		b[i].Offset = i * tensor.Align(b[i].Bytes())
	}
	launch := func(x, y *tensor.Buffer) tensor.Launch {
		arguments := []tensor.Argument{tensor.Out(y), tensor.In(x), tensor.Int(n)}
		return tensor.Launch{Kernel: "relu_fwd_f32", Label: "relu", Arguments: arguments,
			Calls: []tensor.Call{{Kernel: "relu_fwd_f32", Grid: tensor.Vec4(n), Arguments: arguments}}}
	}
	s := tensor.Workload{Launches: []tensor.Launch{launch(b[0], b[1]), launch(b[1], b[2])}, Chains: chains}
	s.Bytes[tensor.Scratch] = 3 * tensor.Align(4*n)
	return s
}

// TestPredict: large calls take as long as moving their bytes, small calls as long as their
// launches, which follow one another. The time is proportional to the number of chains.
func TestPredict(t *testing.T) {
	noSwitches(t)
	predict := func(n, chains int) ([]Predicted, float64) {
		calls, step, err := Predict(elementwiseStep(n, chains), H200, FP32)
		if err != nil {
			t.Fatal(err)
		}
		return calls, step
	}
	const large = 1 << 26
	calls, step := predict(large, 1)
	want := 8 * large / H200.Memory
	for _, c := range calls {
		if c.Bound != "memory" || c.Bytes != 8*large || c.Seconds != want || c.Kernel != "relu_fwd_f32" {
			t.Errorf("%+v, want %v seconds, bound by memory", c, want)
		}
	}
	if wanted := want + H200.NodeLatency + want + H200.PDL; math.Abs(step/wanted-1) > 1e-12 {
		t.Errorf("the step takes %v, want %v", step, wanted)
	}
	t.Setenv(PDLVariable, "off")
	if _, step := predict(large, 1); step != 2*(want+H200.NodeLatency) {
		t.Errorf("without early launches the step takes %v", step)
	}
	t.Setenv(PDLVariable, "no")
	_, _, err := Predict(elementwiseStep(large, 1), H200, FP32)
	if err == nil || !strings.Contains(err.Error(), `POLLEN_CUDA_PDL must be on or off, got "no"`) {
		t.Errorf("got %v", err)
	}
	t.Setenv(PDLVariable, "on")
	if _, many := predict(large, 3); !(many > 2.9*step && many < 3*step) {
		t.Errorf("three chains take %v, one %v", many, step)
	}
	calls, step = predict(100, 1)
	if wanted := 2*H200.NodeLatency + H200.Floor; calls[0].Bound != "launch" || calls[0].Seconds != H200.Floor || math.Abs(step/wanted-1) > 1e-12 {
		t.Errorf("a small step takes %v, %+v, want two launches of %v", step, calls, H200.NodeLatency)
	}
	slow := H200
	slow.Clock /= 1000
	calls, _, err = Predict(elementwiseStep(large, 1), slow, FP32)
	if err != nil || calls[0].Bound != "issue" {
		t.Errorf("with a slow clock: %+v, %v, want it bound by its instructions", calls, err)
	}
}

// TestPredictProduct: a product takes the cycles by which its tile was chosen.
func TestPredictProduct(t *testing.T) {
	noSwitches(t)
	buffers := make([]*tensor.Buffer, 3)
	const n = 1024
	for i := range buffers {
		buffers[i] = tensor.NewBuffer("m", tensor.Scratch, tensor.Float32, n*n)
		buffers[i].Offset = 4 * n * n * i
	}
	arguments := []tensor.Argument{tensor.Out(buffers[0]), tensor.In(buffers[1]), tensor.In(buffers[2]), tensor.Int(n), tensor.Int(n), tensor.Int(n)}
	grid := tensor.Product{Rows: n, Columns: n, Depth: n, Forward: true}
	s := tensor.Workload{Chains: 8, Launches: []tensor.Launch{{
		Kernel: "matmul_f32", Label: "product", Arguments: arguments, Calls: []tensor.Call{{Kernel: "matmul_f32", Grid: grid, Arguments: arguments}},
	}}}
	s.Bytes[tensor.Scratch] = 12 * n * n
	calls, _, err := Predict(s, H200, TF32)
	if err != nil {
		t.Fatal(err)
	}
	planned, err := plan.Step(s.Launches, plan.Target{
		Precision: TF32, Multiprocessors: H200.Multiprocessors, Capability: H200.Capability, Shared: H200.Shared, Chains: 8,
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := planned[0].Cycles / H200.Clock; calls[0].Bound != "product" || calls[0].Seconds != want {
		t.Errorf("%+v, want %v seconds", calls[0], want)
	}
}

// TestPredictLine: calls end after the calls that they follow. Their slack is the time for which
// their own followers wait for other calls.
func TestPredictLine(t *testing.T) {
	// 0 is followed by 1, 2; both by 3; 4 has no edges.
	calls := []Predicted{{Seconds: 1}, {Seconds: 5}, {Seconds: 2}, {Seconds: 1}, {Seconds: 3}}
	if end := simulate(calls, [][]int{nil, {0}, {0}, {1, 2}, nil}, Model{NodeLatency: 0.5, PDL: 0.5}); end != 8.5 {
		t.Errorf("the last one ends at %v, want 8.5", end)
	}
	// Calls in line begin 0.3 earlier, if the call before takes as long.
	early := []Predicted{{Seconds: 1}, {Seconds: 0.1}, {Seconds: 2}, {Seconds: 1}}
	end := simulate(early, [][]int{nil, {0}, {1}, {2}}, Model{NodeLatency: 0.5, PDL: 0.2})
	if math.Abs(end-5.4) > 1e-12 || early[0].Slack != 0 || early[2].Slack != 0 {
		t.Errorf("the last one ends at %v, %+v, want 5.4", end, early)
	}
	ends, slacks := []float64{1.5, 7, 4, 8.5, 3.5}, []float64{0, 0, 3, 0, 5}
	for i, c := range calls {
		if c.End != ends[i] || c.Slack != slacks[i] {
			t.Errorf("call %d ends at %v with a slack of %v, want %v and %v", i, c.End, c.Slack, ends[i], slacks[i])
		}
	}
}

// TestSimulate: independent calls run side by side as long as they fit on the GPU together, and
// fill the gaps that other calls leave.
func TestSimulate(t *testing.T) {
	for _, c := range []struct {
		name    string
		calls   []Predicted
		follows [][]int
		ends    []float64
		slacks  []float64
	}{
		{"two large calls", []Predicted{{Seconds: 2, Fraction: 1}, {Seconds: 3, Fraction: 0.6}}, [][]int{nil, nil}, []float64{3, 6}, []float64{0, 0}},
		{"two halves", []Predicted{{Seconds: 2, Fraction: 0.5}, {Seconds: 3, Fraction: 0.5}}, [][]int{nil, nil}, []float64{3, 4}, []float64{1, 0}},
		{
			"a gap that is too short, and one that is not",
			// 1 begins a launch after 0 ends. 2 does not fit into that gap, 3 does.
			[]Predicted{{Seconds: 1, Fraction: 1}, {Seconds: 2, Fraction: 1}, {Seconds: 1.5, Fraction: 0.1}, {Seconds: 1, Fraction: 0.1}},
			[][]int{nil, {0}, nil, nil}, []float64{2, 5, 6.5, 3}, []float64{0, 0, 0, 3.5},
		},
		{
			"calls that begin later count",
			[]Predicted{{Seconds: 4, Fraction: 0.5}, {Seconds: 1, Fraction: 0.1}, {Seconds: 1, Fraction: 0.5}, {Seconds: 3, Fraction: 0.4}},
			[][]int{nil, nil, {1}, nil}, []float64{5, 2, 4, 7}, []float64{2, 0, 0, 0},
		},
	} {
		simulate(c.calls, c.follows, Model{NodeLatency: 1, PDL: 1})
		for i, got := range c.calls {
			if got.End != c.ends[i] || got.Slack != c.slacks[i] {
				t.Errorf("%s: call %d ends at %v with a slack of %v, want %v and %v", c.name, i, got.End, got.Slack, c.ends[i], c.slacks[i])
			}
		}
	}
}

// TestFractions: a call occupies the GPU by its blocks, or by the bandwidth that it takes.
func TestFractions(t *testing.T) {
	for _, c := range []struct {
		call     plan.Call
		chains   int
		fraction float64
	}{
		{plan.Call{Blocks: [2]int{132, 1}, Threads: 256}, 1, 1.0 / 8},
		{plan.Call{Blocks: [2]int{132, 1}, Threads: 256, Cycles: 1}, 1, 1.0 / 2},
		{plan.Call{Blocks: [2]int{66, 2}, Threads: 128, Shared: 113 << 10}, 1, 1.0 / 2},
		{plan.Call{Blocks: [2]int{1, 0}, Threads: 1024}, 66, 1.0 / 4},
		{plan.Call{Blocks: [2]int{1000, 1}, Threads: 1024}, 64, 1},
	} {
		var p Predicted
		p.predict(H100, c.call, c.chains, 0)
		if p.Fraction != c.fraction || p.Seconds != H100.Floor {
			t.Errorf("%+v: got %+v, want a fraction of %v", c.call, p, c.fraction)
		}
	}
	large := Predicted{Bytes: 1e9}
	if large.predict(H100, plan.Call{Blocks: [2]int{1, 1}, Threads: 32}, 1, 1e12); large.Fraction != 1 || large.Seconds != 1e9/H100.Memory {
		t.Errorf("a call that takes the whole bandwidth: %+v", large)
	}
}

// TestModelOf: a GPU's model is found by the beginning of its name.
func TestModelOf(t *testing.T) {
	for name, want := range map[string]string{"NVIDIA H100 80GB HBM3": H100.Name, "NVIDIA H200": H200.Name, "NVIDIA H200 NVL": H200.Name, "Emulated GPU": ""} {
		if m, ok := ModelOf(name); m.Name != want || ok != (want != "") {
			t.Errorf("%s: got %q, %v", name, m.Name, ok)
		}
	}
}
