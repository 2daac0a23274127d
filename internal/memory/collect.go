package memory

import (
	"os"
	"runtime"
	"runtime/debug"
)

// Garbage may take this much memory, and this fraction of what is available, before CollectLess
// lets the collector run.
const (
	garbageRoom     = 16 << 20
	garbageFraction = 16
)

// CollectLess makes garbage collections of a small heap rarer, for servers, whose requests leave
// tens of kilobytes of garbage each: a collection takes a part of the processors while it runs,
// and requests wait meanwhile. The heap should have what stays by then. It does nothing if GOGC is
// set.
func CollectLess() {
	if _, set := os.LookupEnv("GOGC"); set {
		return
	}
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	debug.SetGCPercent(garbagePercent(int64(stats.HeapAlloc), Available()))
}

// garbagePercent returns the garbage that may be there at a collection, in percent of a heap.
func garbagePercent(heap int64, l Limit) int {
	room := min(garbageRoom, l.Bytes/garbageFraction)
	return int(max(100, 100*room/max(1, heap)))
}
