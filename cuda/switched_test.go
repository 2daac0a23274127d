package cuda_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/internal/testenv"
	"github.com/pollen-ml/pollen/tensor"
)

// fewMultiprocessors is like cudatest.GPU, for tests that look at a plan's kernels: they plan for 4
// multiprocessors.
func fewMultiprocessors(t *testing.T, o cuda.Options) tensor.Device {
	t.Helper()
	device := cudatest.GPU(t, o)
	cuda.PlanFor(device, 4)
	return device
}

// onlyEmulated skips a test of the emulated driver if tests run on a real GPU: the machine may have
// no compiler to build it.
func onlyEmulated(t *testing.T) {
	t.Helper()
	if os.Getenv(cudatest.Variable) == cudatest.CUDA {
		t.Skip("this is a test of the emulated driver")
	}
}

// needs skips a test of kernels that one of these variables leaves out.
func needs(t *testing.T, variables ...string) {
	t.Helper()
	for _, v := range variables {
		if set := os.Getenv(v); set != "" && set != "on" {
			t.Skipf("%s is %s", v, set)
		}
	}
}

// switchTo sets a variable that leaves features out. It skips the test if the environment has set
// the variable already: the feature that was left out may be at fault.
func switchTo(t *testing.T, variable, value string) {
	t.Helper()
	if set := os.Getenv(variable); set != "" {
		t.Skipf("%s is %s", variable, set)
	}
	t.Setenv(variable, value)
}

// TestSwitchedKernels leaves features out by their variables. A step must have none of their
// kernels, and the host's results to the bit, on numbers whose sums are exact.
func TestSwitchedKernels(t *testing.T) {
	exact := func(i int) float64 { return float64(i%8-4) / 4 }
	host := tensor.NewHost(1)
	defer host.Close()
	switched := []struct{ variable, value, lacks string }{
		{cuda.PDLVariable, "", ""}, // all features
		{cuda.CapabilityVariable, "80", "group"}, {cuda.WGMMAVariable, "off", "group"}, {cuda.PackedVariable, "off", "nhwc"},
		{cuda.WindowsVariable, "off", "windows"}, {cuda.GraphsVariable, "off", ""}, {cuda.GraphsVariable, "slow", ""},
	}
	for _, c := range testenv.Some(t, 1, []packedCase{
		{name: "first layer", batch: 2, channels: 1, height: 12, width: 16, filters: 40, taps: op.Square(5), stride: op.Square(1), padding: op.Square(2),
			dilation: op.Square(1), pooled: true},
		{name: "wide layer", batch: 2, channels: 64, height: 17, width: 16, filters: 64, taps: [2]int{2, 3}, stride: op.Square(1), padding: [2]int{0, 1},
			dilation: op.Square(1), pooled: true},
	}) {
		want, _ := c.results(t, host, 2, exact)
		complete := true // all features are there to be left out
		for _, s := range switched {
			complete = complete && os.Getenv(s.variable) == ""
		}
		all := ""
		for _, s := range switched {
			t.Run(fmt.Sprintf("%s/%s=%s", c.name, s.variable, s.value), func(t *testing.T) {
				if s.value != "" {
					switchTo(t, s.variable, s.value)
				}
				device := fewMultiprocessors(t, cuda.Options{Precision: cuda.BF16})
				complete = complete && (all != "" || hasWGMMA(device))
				got, symbols := c.results(t, device, 2, exact)
				closeTo(t, got, want, 0)
				if all == "" {
					all = symbols
				}
				if s.lacks == "" && symbols != all {
					t.Errorf("the kernels are %s, want %s", symbols, all)
				}
				if s.lacks != "" && strings.Contains(symbols, s.lacks) {
					t.Errorf("there is %s among %s", s.lacks, symbols)
				}
				if complete && !strings.Contains(all, s.lacks) {
					t.Errorf("there is no %s to leave out of %s", s.lacks, all)
				}
			})
		}
	}
}

// TestOlderCapabilities compares products and convolutions, whose kernels depend on the GPU, with
// the host's, on a device that assumes an older GPU's compute capability.
func TestOlderCapabilities(t *testing.T) {
	testenv.NeedsAll(t, "products and convolutions for two capabilities")
	for _, limit := range []string{"70", "80"} {
		t.Run(limit, func(t *testing.T) {
			switchTo(t, cuda.CapabilityVariable, limit)
			device := cudatest.GPU(t, cuda.Options{})
			if cuda.Capability(device) > 80 {
				t.Errorf("it assumes %d", cuda.Capability(device))
			}
			optest.RunCases(t, device, slices.DeleteFunc(optest.Cases(), func(c optest.Case) bool {
				return c.Speed || !strings.HasPrefix(c.Name, "conv2d ") && !strings.HasPrefix(c.Name, "matmul ")
			}))
		})
	}
}
