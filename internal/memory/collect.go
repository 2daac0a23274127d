package memory

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Garbage may take this much memory, and this fraction of what is available, before CollectLess
// lets the collector run.
const (
	garbageRoom     = 16 << 20
	garbageFraction = 16
)

// CollectLess lets a server with a small heap collect garbage less often, until the context ends:
// each request leaves tens of kilobytes of garbage, and a collection takes processor time from
// requests. Call it after the networks are loaded. It does nothing if GOGC is set.
func CollectLess(ctx context.Context) {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	runtime.GC()
	repeat(ctx, collectLess) // requests and reloaded networks change what is alive
}

// collectLess sets the percentage for the present live heap, unless it is last, and returns it.
func collectLess(last int64) int64 {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	percent := garbagePercent(int64(live[0].Value.Uint64()), Available())
	if percent != last {
		debug.SetGCPercent(int(percent))
	}
	return percent
}

// garbagePercent returns the percentage of the live heap, a multiple of 50 and at least 100, that
// garbage may take for the room above.
func garbagePercent(live int64, l Limit) int64 {
	room := min(garbageRoom, l.Bytes/garbageFraction)
	return max(100, 100*room/max(1, live)/50*50)
}
