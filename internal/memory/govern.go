package memory

import (
	"context"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// The garbage collector may use the fraction headroom of the available memory, which is measured
// once in each interval.
const (
	headroom = 0.9
	interval = time.Second
)

// Govern keeps the soft memory limit of Go's heap at the heap's present size plus most of the
// available memory, until the context ends. Near the limit of a machine or a cgroup, the garbage
// collector then runs more often instead of the system ending the process. It is for programs; it
// does nothing if GOMEMLIMIT is set.
func Govern(ctx context.Context) {
	if _, set := os.LookupEnv("GOMEMLIMIT"); set || !Available().Known() {
		return
	}
	repeat(ctx, govern)
}

// repeat calls govern(0) at once and then, in each interval until the context ends, govern with
// its last result.
func repeat(ctx context.Context, govern func(last int64) int64) {
	last := govern(0)
	go func() {
		ticks := time.NewTicker(interval)
		defer ticks.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticks.C:
				last = govern(last)
			}
		}
	}()
}

// govern sets the limit if it is to differ from the last one by more than a few percent, and
// returns it.
func govern(last int64) int64 {
	const tolerance = 0.03
	limit := softLimit(heapBytes(), Available())
	if math.Abs(float64(limit-last)) <= tolerance*float64(last) {
		return last
	}
	debug.SetMemoryLimit(limit)
	return limit
}

// softLimit returns the limit for a heap of some bytes.
func softLimit(heap int64, l Limit) int64 {
	if !l.Known() {
		return math.MaxInt64
	}
	return heap + int64(headroom*float64(l.Bytes))
}

// heapBytes returns the memory that counts towards the soft limit.
func heapBytes() int64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return int64(samples[0].Value.Uint64() - samples[1].Value.Uint64())
}
