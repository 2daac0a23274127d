package memory

import (
	"os"
	"runtime/debug"
	"testing"
)

func TestGarbagePercent(t *testing.T) {
	known := func(bytes int64) Limit { return Limit{Bytes: bytes, Reason: "a test"} }
	for _, c := range []struct {
		heap  int64
		limit Limit
		want  int64
	}{
		{4 << 20, known(16 << 30), 400}, {4 << 20, unlimited, 400}, {64 << 20, known(16 << 30), 100}, {1 << 30, known(16 << 30), 100},
		{4 << 20, known(128 << 20), 200}, // a small container
	} {
		if got := garbagePercent(c.heap, c.limit); got != c.want {
			t.Errorf("a live heap of %d bytes with %v: %d %%, want %d", c.heap, c.limit, got, c.want)
		}
	}
}

func TestCollectLess(t *testing.T) {
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	t.Setenv("GOGC", "50")
	CollectLess(t.Context())
	if got := debug.SetGCPercent(70); got != 100 {
		t.Errorf("with GOGC the percentage is %d, want 100 as before", got)
	}
	if err := os.Unsetenv("GOGC"); err != nil {
		t.Fatal(err)
	}
	CollectLess(t.Context())
	if got := debug.SetGCPercent(70); got < 100 {
		t.Errorf("the percentage is %d, want at least 100", got)
	}
}
