package cuda_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/optest"
	"github.com/pollen-ml/pollen/tensor"
)

// onDevice is a workload that a test has loaded on a GPU.
type onDevice struct {
	device tensor.Device
	calls  func() []string
}

// loadedLast lists the last workloads that tests loaded on GPUs, the latest last. A comparison that
// fails is likely to be about one of them.
var loadedLast []onDevice

func remember(device tensor.Device, calls func() []string) {
	if _, host := device.(*tensor.Host); host {
		return
	}
	loadedLast = append(loadedLast, onDevice{device, calls})
	loadedLast = loadedLast[max(0, len(loadedLast)-2):]
}

// rememberProgram is like remember, for a program that was loaded for a number of chains.
func rememberProgram(device tensor.Device, program *graph.Program, chains int) {
	remember(device, func() []string { return optest.Calls(device, program, chains) })
}

// dump writes a comparison that failed, with the calls of the last two workloads, to a file
// (optest.Dump).
func dump(t testing.TB, err error) {
	t.Helper()
	var device tensor.Device
	if len(loadedLast) > 0 {
		device = loadedLast[len(loadedLast)-1].device
	}
	optest.Dump(t, err, device, func() (lines []string) {
		for i := len(loadedLast) - 1; i >= 0; i-- {
			lines = append(lines, fmt.Sprintf("loaded on %s:", loadedLast[i].device.Name()))
			lines = append(lines, loadedLast[i].calls()...)
		}
		return lines
	})
}

// closeTo compares chains' numbers, which may be off by some fraction of the largest.
func closeTo(t *testing.T, got, want [][]float64, within float64) {
	t.Helper()
	for chain := range got {
		most := 1.0
		for _, v := range want[chain] {
			most = max(most, math.Abs(v))
		}
		if err := optest.Close(got[chain], want[chain], optest.Tol{Abs: within * most}); err != nil {
			dump(t, err)
			t.Fatalf("chain %d: %v", chain, err)
		}
	}
}

// sameAs compares chains' numbers, all of whose bits must be the same.
func sameAs(t *testing.T, what string, got, want [][]float64) {
	t.Helper()
	for chain := range want {
		if err := optest.Same(got[chain], want[chain]); err != nil {
			dump(t, err)
			t.Fatalf("chain %d%s: %v", chain, what, err)
		}
	}
}

// widen converts numbers to float64.
func widen[T float32 | float64](values []T) []float64 {
	wide := make([]float64, len(values))
	for i, v := range values {
		wide[i] = float64(v)
	}
	return wide
}

// TestDump writes a comparison with a wrong number, with the kernels that could have computed it.
func TestDump(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "dumps")
	t.Setenv(optest.DumpVariable, dir)
	device := cudatest.GPU(t, cuda.Options{})
	x := make([]float32, 300)
	for i := range x {
		x[i] = float32(i - 150)
	}
	got, want := widen(apply(t, device, op.ReLU{}, x)), make([]float64, len(x))
	for i, v := range x {
		want[i] = max(0, float64(v))
	}
	got[200]++
	dump(t, optest.Close(got, want, optest.Tol{}))
	text, err := os.ReadFile(filepath.Join(dir, "TestDump.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"test: TestDump\n", "device: " + device.Name(), "worst: index 200, got 51, want 50", "relu_fwd_f32 blocks=", "threads=256", "float32[300]", "; 300)",
	} {
		if !strings.Contains(string(text), part) {
			t.Errorf("there is no %q in\n%s", part, text)
		}
	}
	for _, name := range []string{"TestDump.got.npy", "TestDump.want.npy"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() != 128+4*300 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}
