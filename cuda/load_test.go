package cuda_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pollen-ml/pollen/cuda"
	"github.com/pollen-ml/pollen/cuda/cudatest"
	"github.com/pollen-ml/pollen/cuda/emulator"
	"github.com/pollen-ml/pollen/graph/optest"
)

// TestCompile has the driver compile all kernels that a GPU uses. It logs a line for each, with the
// driver's figures for its code, and reports every kernel that does not compile.
func TestCompile(t *testing.T) {
	shard, shards, err := optest.Shard()
	if err != nil {
		t.Fatal(err)
	}
	var spilling []string
	compiled, failed := 0, 0
	all, err := cuda.CompileAll(cudatest.GPU(t, cuda.Options{}), shard, shards, func(c cuda.Compiled) {
		log := ""
		if c.Log != "" {
			log = fmt.Sprintf(" log=%q", c.Log)
		}
		if c.Err != nil {
			failed++
			t.Errorf("kernel-failed file=%s symbol=%s ms=%.1f%s error=%q", c.File, c.Symbol, 1e3*c.Time.Seconds(), log, c.Err)
			return
		}
		compiled++
		t.Logf("kernel file=%s symbol=%s ms=%.1f registers=%d local=%d shared=%d threads=%d%s",
			c.File, c.Symbol, 1e3*c.Time.Seconds(), c.Registers, c.Local, c.Shared, c.MaxThreads, log)
		if c.Local > 0 {
			spilling = append(spilling, fmt.Sprintf("%s (%d)", c.Symbol, c.Local))
		}
	})
	if err != nil {
		t.Error(err)
	}
	t.Logf("kernels compiled: %d, failed: %d, of %d in all, shard %d of %d", compiled, failed, all, shard, shards)
	if len(spilling) > 0 {
		t.Logf("kernels with local memory: %s", strings.Join(spilling, ", "))
	}
}

// TestCompileContinues: a kernel that does not compile is reported, and the others are compiled.
func TestCompileContinues(t *testing.T) {
	onlyEmulated(t)
	driver := emulator.Open(t, emulator.Options{})
	device, err := cuda.Open(cuda.Options{Driver: driver.Path})
	if err != nil {
		t.Fatal(err)
	}
	defer device.Close()
	var failed []int
	compiled := 0
	if _, err := cuda.CompileAll(device, 1, 64, func(c cuda.Compiled) {
		if c.Err != nil {
			failed = append(failed, compiled)
		}
		if compiled++; compiled == 1 {
			driver.Fail("cuModuleLoadDataEx", 1, 218)
		}
	}); err != nil {
		t.Error(err)
	}
	if compiled < 5 || !slices.Equal(failed, []int{1}) {
		t.Errorf("of %d kernels those at %v fail, want the second", compiled, failed)
	}
}
