package cudatest

import (
	"os"
	"sync"
	"testing"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/tensor"
)

// Variable names the environment variable that selects the device of tests: CPU, CUDA, Emulator or
// PTX.
const Variable = emulator.Variable

// The values of Variable.
const (
	CPU      = "cpu"
	CUDA     = "cuda"
	Emulator = "emulator"   // the emulated GPU, with the kernels' sources
	PTX      = emulator.PTX // the emulated GPU, with the committed PTX
)

// Device returns the device that the environment selects; by default, a host with threads threads.
// A GPU is opened once for all tests of the process; a host is closed when the test ends.
func Device(t testing.TB, threads int) tensor.Device {
	t.Helper()
	kind := os.Getenv(Variable)
	switch kind {
	case "", CPU:
		host := tensor.NewHost(threads)
		t.Cleanup(func() { host.Close() })
		return host
	case CUDA, Emulator, PTX:
	default:
		t.Fatalf("cudatest: %s must be cpu, cuda, emulator or ptx, got %q", Variable, kind)
	}
	shared.Lock()
	defer shared.Unlock()
	if shared.device == nil {
		var o cuda.Options
		if kind != CUDA {
			o.Driver = emulator.Build(t)
		}
		device, err := cuda.Open(o)
		if err != nil {
			t.Fatal(err)
		}
		shared.device = device
	}
	return shared.device
}

// SkipWithoutKernel skips a test if err reports that the program has a custom op without a GPU
// kernel.
func SkipWithoutKernel(t testing.TB, err error) {
	t.Helper()
	var missing *cuda.NoKernel
	if errors.As(err, &missing) {
		t.Skip(missing)
	}
}

var shared struct {
	sync.Mutex
	device tensor.Device
}

// GPU opens the real GPU if the environment selects it, else the emulated one. The test is skipped
// if there are too few GPUs, or if one lacks tensor cores for the precision.
func GPU(t testing.TB, o cuda.Options) tensor.Device {
	t.Helper()
	if os.Getenv(Variable) != CUDA {
		o.Driver = emulated(t, max(1, len(o.GPUs)))
		return openGPU(t, o)
	}
	installed, err := cuda.List()
	if err != nil {
		t.Fatal(err)
	}
	if len(installed.GPUs) < len(o.GPUs) {
		t.Skipf("the test needs %d GPUs, there are %d", len(o.GPUs), len(installed.GPUs))
	}
	return openGPU(t, o)
}

func openGPU(t testing.TB, o cuda.Options) tensor.Device {
	t.Helper()
	device, err := cuda.Open(o)
	var lacks *cuda.NoPrecision
	if errors.As(err, &lacks) {
		t.Skip(lacks)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := device.Close(); err != nil {
			t.Error(err)
		}
	})
	return device
}
