package cuda_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
)

// TestCompile has the driver compile all kernels that a GPU uses, and says how long that takes.
func TestCompile(t *testing.T) {
	times, err := cuda.CompileTimes(cudatest.GPU(t, cuda.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(times)) {
		t.Logf("%s: %v", name, times[name])
	}
}
