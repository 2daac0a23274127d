//go:build linux

package cuda_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/graph/op"
	"github.com/pollen-ml/pollen/graph/op/array"
	"github.com/pollen-ml/pollen/tensor"
)

// small returns a program that uses all that a session needs from a device: a metric, a state,
// data.
func small(t *testing.T) *graph.Program {
	t.Helper()
	b := graph.New(tensor.Float32)
	x := b.State("x", func(_ uint64, _ uint32, _ uint16, _ tensor.Shape, values []float64) { values[0] = 1 }, 1)
	b.Record("y", b.Apply(array.Element{}, b.Apply(op.Exp{}, x)))
	program, err := b.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// live opens the emulated GPU, runs some steps and closes it.
func live(program *graph.Program, o cuda.Options) error {
	device, err := cuda.Open(o)
	if err != nil {
		return err
	}
	session, err := program.Load(device, graph.LoadOptions{Chains: 2})
	if err == nil {
		err = session.Run(40)
		if closing := session.Close(); err == nil {
			err = closing
		}
	}
	if closing := device.Close(); err == nil {
		err = closing
	}
	return err
}

// TestFailuresBelow makes the calls of the emulated driver fail. The error must name the call and
// contain the driver's name for the failure.
func TestFailuresBelow(t *testing.T) {
	onlyEmulated(t)
	program := small(t)
	driver := emulator.Open(t, emulator.Options{})
	if err := live(program, cuda.Options{Driver: driver.Path}); err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{
		"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName", "cuDeviceGetAttribute", "cuDeviceTotalMem_v2",
		"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuCtxSetCurrent", "cuMemAlloc_v2", "cuMemFree_v2", "cuMemAllocHost_v2",
		"cuMemFreeHost", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD8Async", "cuStreamCreate",
		"cuStreamDestroy_v2", "cuStreamSynchronize", "cuGraphCreate", "cuGraphAddKernelNode", "cuGraphInstantiateWithFlags", "cuGraphLaunch",
		"cuGraphExecDestroy", "cuGraphDestroy", "cuModuleLoadDataEx", "cuModuleGetFunction", "cuModuleUnload", "cuLaunchKernel",
	} {
		for _, fail := range []func(call string, count, result int){driver.Fail, driver.Lose} {
			driver.Reset(emulator.Options{})
			fail(call, 1, 999)
			// Steps are CUDA graphs: kernels are launched one by one only on request.
			err := live(program, cuda.Options{Driver: driver.Path, Synchronous: call == "cuLaunchKernel"})
			if err == nil || !strings.Contains(err.Error(), call) || !strings.Contains(err.Error(), "CUDA_ERROR_UNKNOWN") {
				t.Errorf("%s fails: %v", call, err)
			}
		}
	}
	driver.Reset(emulator.Options{})
}

// TestOlderGPUs: tests in a precision are skipped on a GPU that does not support it.
func TestOlderGPUs(t *testing.T) {
	onlyEmulated(t)
	driver := emulator.Open(t, emulator.Options{Capability: 75})
	t.Setenv(cudatest.Variable, cudatest.CUDA)
	t.Setenv(cuda.DriverVariable, driver.Path)
	for precision, lacks := range map[cuda.Precision]bool{cuda.FP32: false, cuda.TF32: true, cuda.BF16: true} {
		skipped := false
		t.Run(string(precision), func(t *testing.T) {
			defer func() { skipped = t.Skipped() }()
			cudatest.GPU(t, cuda.Options{Precision: precision})
		})
		if skipped != lacks {
			t.Errorf("a test in %s is left out: %v, want %v", precision, skipped, lacks)
		}
	}
}

// TestMemoryComesBack opens, uses and closes the GPU many times. No memory may remain allocated
// afterwards.
func TestMemoryComesBack(t *testing.T) {
	onlyEmulated(t)
	program := small(t)
	driver := emulator.Open(t, emulator.Options{Memory: 16 << 20})
	for range 8 {
		if err := live(program, cuda.Options{Driver: driver.Path}); err != nil {
			t.Fatal(err)
		}
		if held := driver.Report(); held != "" {
			t.Fatalf("held after close: %s", held)
		}
	}
}

// TestLinkedDriver compiles the device for gorgonia.org/cu, links it to the emulated driver and
// runs tests with it. It takes a minute, so it runs only on request.
func TestLinkedDriver(t *testing.T) {
	if os.Getenv("POLLEN_LINKED") == "" {
		t.Skip("POLLEN_LINKED=1 compiles -tags cu, with cgo")
	}
	command := exec.Command("bash", "testdata/linked.sh", emulator.Build(t), "-run", "TestTrainingIsTheHosts|TestNotFinite|TestEveryCallMayFail|TestChainsAndGPUs")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
