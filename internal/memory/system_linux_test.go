package memory

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// files writes files below a new directory, and returns it.
func files(t *testing.T, contents map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, content := range contents {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func TestMachine(t *testing.T) {
	root := files(t, map[string]string{"meminfo": "MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:    400 kB\n"})
	if got := machine(root); got.Bytes != 400<<10 || got.Reason != "the machine's memory" {
		t.Errorf("machine = %v, want 400 KiB", got)
	}
	if got := machine(t.TempDir()); got.Known() {
		t.Errorf("machine without meminfo = %v, want an unknown limit", got)
	}
}

const (
	mountsOne = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n" +
		"38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n"
	mountsTwo = "35 31 0:32 / /sys/fs/cgroup rw,relatime shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	inside    = "35 31 0:32 /docker/1234 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n" // a container's own group
	statOne   = "inactive_file 7\ntotal_inactive_file 100\ntotal_active_file 20\n"
	statTwo   = "anon 500\ninactive_file 100\nactive_file 20\n"
	one, two  = "sys/fs/cgroup/memory/", "sys/fs/cgroup/"
)

func TestCgroups(t *testing.T) {
	for name, c := range map[string]struct {
		files  map[string]string
		bytes  int64 // -1: unknown
		reason string
	}{
		"none": {nil, -1, ""},
		"version 1": {map[string]string{
			"proc/self/cgroup": "9:blkio:/x\n4:cpu,memory:/job/a\n", "proc/self/mountinfo": mountsOne,
			one + "job/a/memory.limit_in_bytes": "9223372036854771712\n", one + "job/a/memory.usage_in_bytes": "600\n",
			one + "job/memory.limit_in_bytes": "1000\n", one + "job/memory.usage_in_bytes": "600\n", one + "job/memory.stat": statOne,
		}, 520, "memory.limit_in_bytes of /sys/fs/cgroup/memory/job"},
		"version 1 in a container": {map[string]string{
			"proc/self/cgroup": "4:memory:/docker/1234\n", "proc/self/mountinfo": inside,
			one + "memory.limit_in_bytes": "1000\n", one + "memory.usage_in_bytes": "300\n",
		}, 700, "memory.limit_in_bytes of /sys/fs/cgroup/memory"},
		"version 1 outside of what is mounted": {map[string]string{
			"proc/self/cgroup": "4:memory:/other/5\n", "proc/self/mountinfo": inside,
			one + "memory.limit_in_bytes": "1000\n", one + "memory.usage_in_bytes": "300\n",
		}, 700, "memory.limit_in_bytes of /sys/fs/cgroup/memory"},
		"version 2": {map[string]string{
			"proc/self/cgroup": "0::/job/a\n", "proc/self/mountinfo": mountsTwo,
			two + "job/a/memory.max": "max\n", two + "job/a/memory.high": "max\n", two + "job/a/memory.current": "700\n",
			two + "job/memory.max": "1000\n", two + "job/memory.high": "max\n", two + "job/memory.current": "700\n", two + "job/memory.stat": statTwo,
		}, 420, "memory.max of /sys/fs/cgroup/job"},
		"version 2, high": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountsTwo,
			two + "memory.max": "1000\n", two + "memory.high": "900\n", two + "memory.current": "700\n",
		}, 200, "memory.high of /sys/fs/cgroup"},
		"used up": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountsTwo, two + "memory.max": "1000\n", two + "memory.current": "1700\n",
		}, 0, "memory.max of /sys/fs/cgroup"},
		"no limit": {map[string]string{
			"proc/self/cgroup": "0::/\n", "proc/self/mountinfo": mountsTwo, two + "memory.max": "max\n", two + "memory.current": "7\n",
		}, -1, ""},
		"unmounted": {map[string]string{"proc/self/cgroup": "0::/\n4:memory:/\n", "proc/self/mountinfo": "garbage\n1 2 - x\n"}, -1, ""},
	} {
		got := cgroups(files(t, c.files))
		if c.bytes < 0 {
			if got.Known() {
				t.Errorf("%s: %v, want no limit", name, got)
			}
			continue
		}
		if got.Bytes != c.bytes || got.Reason != c.reason {
			t.Errorf("%s: %v, want %d by %s", name, got, c.bytes, c.reason)
		}
	}
}

// The unused part of the heap is the rest of its last arena, and what the collector has freed.
func TestUnusedHeap(t *testing.T) {
	if n := unusedHeap(); n < 0 || n > heapArena {
		t.Errorf("unusedHeap() = %d, want 0 to %d", n, heapArena)
	}
	block := make([]byte, 3*heapArena)
	block[len(block)-1] = 1
	runtime.KeepAlive(block)
	runtime.GC()
	if n := unusedHeap(); n != heapArena {
		t.Errorf("unusedHeap() = %d when three arenas were freed, want %d", n, heapArena)
	}
}

// TestResourceLimits sets limits far above what the process uses.
func TestResourceLimits(t *testing.T) {
	const room = 1 << 40
	status, err := os.ReadFile("/proc/self/status")
	size, ok := field(status, "VmSize:")
	if err != nil || !ok {
		t.Fatalf("no VmSize (%v)", err)
	}
	limit := uint64(size<<10 + room) // the race detector takes terabytes
	for kind, read := range map[int]func() Limit{unix.RLIMIT_AS: addressSpace, unix.RLIMIT_DATA: dataSegment} {
		var before unix.Rlimit
		if err := unix.Getrlimit(kind, &before); err != nil {
			t.Fatal(err)
		}
		if before.Cur < 2*limit {
			t.Skip("the test runs under a limit")
		}
		if err := unix.Setrlimit(kind, &unix.Rlimit{Cur: limit, Max: before.Max}); err != nil {
			t.Fatal(err)
		}
		got := read()
		if err := unix.Setrlimit(kind, &before); err != nil {
			t.Fatal(err)
		}
		if kind == unix.RLIMIT_AS && got.Bytes >= room || got.Bytes < room/2 || got.Reason == "" {
			t.Errorf("limit %d: %v, want somewhat less than %d", kind, got, room)
		}
		if got := read(); got.Known() {
			t.Errorf("limit %d: %v, want none", kind, got)
		}
	}
}
