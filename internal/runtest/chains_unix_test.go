//go:build unix

package runtest

import (
	"math"
	"syscall"
	"testing"
	"time"

	"github.com/pollen-ml/pollen/internal/testenv"
)

// processorTime returns the time that processors have spent on this process.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	must(t, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// Chains of one run share its data, program and overhead: four of them take less time than four
// runs of one chain.
func TestChainsTakeLessThanRuns(t *testing.T) {
	testenv.NeedsAll(t, "measures time")
	data := trainOn(squares(t, 300, 4, 1))
	spec := quick()
	spec.Network, spec.Epochs = "mlp-200-200", 4
	fastest := func(chains int) time.Duration {
		spec.Chains = chains
		least := time.Duration(math.MaxInt64)
		for range 3 {
			began := processorTime(t)
			fit(t, spec, data, with(t, 1))
			least = min(least, processorTime(t)-began)
		}
		return least
	}
	one, four := fastest(1), fastest(4)
	if four >= 4*one {
		t.Errorf("four chains take %v, want less than four times the %v of one", four, one)
	}
	t.Logf("one chain %v, four chains %v", one, four)
}
