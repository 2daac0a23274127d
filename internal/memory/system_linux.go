package memory

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// heapArena is the address space that Go reserves when its heap grows (heapArenaBytes in the
// runtime). It counts as used towards a limit of the address space.
const heapArena = 64 << 20

// threadStacks is the address space of the stacks of threads to come. The C library, which package
// cuda needs, makes them of 8 MiB each.
const threadStacks = 64 << 20

// system returns the tightest limit.
func system() Limit {
	return machine("/proc").tighter(cgroups("/")).tighter(addressSpace()).tighter(dataSegment())
}

// machine returns the machine's available memory: what programs can take without swapping, free or
// in caches.
func machine(proc string) Limit {
	content, err := os.ReadFile(filepath.Join(proc, "meminfo"))
	if err != nil {
		return unlimited
	}
	kilobytes, ok := field(content, "MemAvailable:")
	if !ok {
		return unlimited
	}
	return Limit{kilobytes << 10, "the machine's memory"}
}

// field returns the integer after a name at the begin of a line.
func field(content []byte, name string) (int64, bool) {
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		if words := strings.Fields(lines.Text()); len(words) > 1 && words[0] == name {
			n, err := strconv.ParseInt(words[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// addressSpace returns the address space below RLIMIT_AS that is left.
func addressSpace() Limit {
	content, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return unlimited
	}
	pages, _, _ := strings.Cut(string(content), " ")
	used, err := strconv.ParseInt(pages, 10, 64)
	if err != nil {
		return unlimited
	}
	return resource(unix.RLIMIT_AS, used*int64(os.Getpagesize())+heapArena-unusedHeap()+threadStacks, "the address space, ulimit -v")
}

// unusedHeap returns how much of the address space of Go's heap is unused, at most heapArena. It
// is subtracted from the used space, so that the result hardly depends on whether the heap has
// just grown.
func unusedHeap() int64 {
	classes := []metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(classes)
	var heap int64
	for _, c := range classes {
		heap += int64(c.Value.Uint64())
	}
	unused := int64(classes[0].Value.Uint64() + classes[1].Value.Uint64())
	return min(unused+(heapArena-heap%heapArena)%heapArena, heapArena)
}

// dataSegment returns the memory below RLIMIT_DATA that is left. The limit counts all private
// writable memory.
func dataSegment() Limit {
	content, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return unlimited
	}
	used, ok := field(content, "VmData:")
	if !ok {
		return unlimited
	}
	return resource(unix.RLIMIT_DATA, used<<10, "the data of a process, ulimit -d")
}

func resource(kind int, used int64, reason string) Limit {
	var r unix.Rlimit
	if unix.Getrlimit(kind, &r) != nil || r.Cur >= math.MaxInt64 {
		return unlimited
	}
	return Limit{max(int64(r.Cur)-used, 0), reason}
}

// mount is a mounted hierarchy of cgroups.
type mount struct {
	root, dir string // the directory of the hierarchy that is mounted at dir
}

// cgroups returns the tightest limit of the process's cgroup and of those above it, as far as they
// are mounted. root is "/", or a directory that stands for it in tests.
func cgroups(root string) Limit {
	limit := unlimited
	content, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return limit
	}
	v1, v2 := cgroupMounts(filepath.Join(root, "proc/self/mountinfo"))
	for line := range strings.Lines(string(content)) {
		// 0::/path of version 2; number:controllers:/path of version 1.
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(parts) < 3:
		case parts[1] == "" && v2 != nil:
			limit = limit.tighter(v2.above(root, parts[2], versionTwo))
		case strings.Contains(","+parts[1]+",", ",memory,") && v1 != nil:
			limit = limit.tighter(v1.above(root, parts[2], versionOne))
		}
	}
	return limit
}

// cgroupMounts returns where the memory controller of version 1 and the hierarchy of version 2 are
// mounted; nil if they are not.
func cgroupMounts(path string) (v1, v2 *mount) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, nil
	}
	for line := range strings.Lines(string(content)) {
		// number parent device root dir options [fields] - type source superoptions
		place, kind, ok := strings.Cut(line, " - ")
		words, types := strings.Fields(place), strings.Fields(kind)
		if !ok || len(words) < 5 || len(types) < 3 {
			continue
		}
		switch m := (&mount{words[3], words[4]}); {
		case types[0] == "cgroup2":
			v2 = m
		case types[0] == "cgroup" && strings.Contains(","+types[2]+",", ",memory,"):
			v1 = m
		}
	}
	return v1, v2
}

// above returns the tightest limit of a cgroup and of those above it. In a container, the path of
// the cgroup may be outside of what is mounted, which then is the cgroup itself.
func (m *mount) above(root, path string, read func(dir string) Limit) Limit {
	below, ok := strings.CutPrefix(path, strings.TrimSuffix(m.root, "/"))
	if !ok || strings.HasPrefix(below, "/..") {
		below = ""
	}
	limit := unlimited
	for {
		if l := read(filepath.Join(root, m.dir, below)); l.Known() {
			l.Reason += " of " + filepath.Join(m.dir, below)
			limit = limit.tighter(l)
		}
		if below == "" || below == "/" || below == "." {
			return limit
		}
		below = filepath.Dir(below)
	}
}

// versionTwo reads the limits of a cgroup of version 2. A process above memory.high is slowed down
// until it makes no progress.
func versionTwo(dir string) Limit {
	used, ok := number(filepath.Join(dir, "memory.current"))
	if !ok {
		return unlimited
	}
	used -= fileCache(dir, "")
	limit := unlimited
	for _, name := range []string{"memory.max", "memory.high"} {
		if n, ok := number(filepath.Join(dir, name)); ok {
			limit = limit.tighter(Limit{max(n-used, 0), name})
		}
	}
	return limit
}

// versionOne reads the limit of a cgroup of version 1, which without a limit is close to 2^63.
func versionOne(dir string) Limit {
	const name, none = "memory.limit_in_bytes", 1 << 60
	used, ok := number(filepath.Join(dir, "memory.usage_in_bytes"))
	n, has := number(filepath.Join(dir, name))
	if !ok || !has || n >= none {
		return unlimited
	}
	return Limit{max(n-used+fileCache(dir, "total_"), 0), name}
}

// fileCache returns how much of a cgroup's memory is cached files, which the system drops when
// programs need it.
func fileCache(dir, prefix string) (bytes int64) {
	content, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return 0
	}
	for _, name := range []string{"inactive_file", "active_file"} {
		n, _ := field(content, prefix+name)
		bytes += n
	}
	return bytes
}

// number reads a file with one number; false if it has none, such as "max".
func number(path string) (int64, bool) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	var n int64
	_, err = fmt.Sscan(string(content), &n)
	return n, err == nil
}
