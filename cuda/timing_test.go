package cuda_test

import (
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/tensor"
)

// TestTimeCalls measures the calls of a step. Afterwards the chains are in the state that one more
// step would produce.
func TestTimeCalls(t *testing.T) {
	device := &catching{Device: cudatest.GPU(t, cuda.Options{})}
	program := network(t, "mlp-10", "sgld", 40, 4)
	var parameters [2][]float32
	for i := range parameters {
		session, err := program.Load(device, graph.LoadOptions{Seed: 1, Chains: 2})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		if err := session.Run(2); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := session.Run(1); err != nil {
				t.Fatal(err)
			}
		} else {
			checkCallTimes(t, device.runner)
		}
		for _, p := range program.Parameters() {
			values := make([]float32, p.Shape.Elements())
			if err := session.ReadFloats(p.Name, 1, values); err != nil {
				t.Fatal(err)
			}
			parameters[i] = append(parameters[i], values...)
		}
	}
	if !slices.Equal(parameters[0], parameters[1]) {
		t.Error("the chains are not where one more step leaves them")
	}
}

func checkCallTimes(t *testing.T, runner tensor.Runner) {
	t.Helper()
	timer := runner.(interface {
		TimeCalls(repetitions int, m cuda.Model) ([]cuda.CallTime, error)
	})
	if _, err := timer.TimeCalls(0, cuda.H100); err == nil {
		t.Error("0 repetitions are not refused")
	}
	calls, err := timer.TimeCalls(3, cuda.H100)
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for i, c := range calls {
		if !(c.Measured > 0) || c.Kernel == "" || c.Threads < 1 || c.Blocks[0] < 1 || c.Bound == "" || len(c.Follows) == 0 && i == len(calls)-1 {
			t.Errorf("call %d: %+v", i, c)
		}
		sum += c.Measured
	}
	if line := cuda.CriticalPath(calls); len(calls) < 5 || !(line > 0) || line > sum*(1+1e-9) {
		t.Errorf("%d calls, which take %v s, the longest line %v s", len(calls), sum, line)
	}
}

// TestOrderVariable: "off" makes each call of a CUDA graph follow the one before it.
func TestOrderVariable(t *testing.T) {
	for value, want := range map[string]bool{"": false, "on": false, "off": true} {
		t.Run(value, func(t *testing.T) {
			t.Setenv(cuda.OrderVariable, value)
			if got := cuda.IsSequential(cudatest.GPU(t, cuda.Options{})); got != want {
				t.Errorf("the calls are in line: %v, want %v", got, want)
			}
		})
	}
}
