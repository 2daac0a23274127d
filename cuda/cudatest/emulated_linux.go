package cudatest

import (
	"testing"

	"github.com/pollen-ml/pollen/cuda/emulator"
)

// emulated returns the path of an emulated driver's library, and checks for leaks when the test
// ends.
func emulated(t testing.TB, gpus int) string {
	t.Helper()
	return emulator.Open(t, emulator.Options{GPUs: gpus}).Path
}
