//go:build linux

package cuda

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"syscall"
	"testing"
	"unsafe"
)

// fakeDriver is a driver in Go's memory. It is as lazy as the real one may be: work on a stream is
// done only when the stream is synchronized. It rejects handles and addresses that it has not
// returned.
type fakeDriver struct {
	mu       sync.Mutex
	t        testing.TB
	gpus     int
	total    uint64 // bytes of each GPU
	calls    int
	failAt   int    // the number of the call that fails, from 1; 0 for none
	failCall string // the function whose first call fails, "" for none
	failWith result
	failed   string // the call that failed
	version  int32
	major    int32
	lost     map[int]result // of each GPU
	next     handle
	names    map[result][]byte

	retained []int
	current  map[int]handle // context of each thread
	memory   map[address]*fakeMemory
	pinned   map[unsafe.Pointer]fakePinned
	owner    map[handle]int // the GPU of a graph or a module
	streams  map[handle]*fakeStream
	graphs   map[handle]*fakeGraph
	ready    map[handle]*fakeGraph
	modules  map[handle]bool
	granted  map[string]int32
	kernels  map[string]fakeKernel
	launched int
	waits    int // synchronisations

	followers, inLine, early int // calls in graphs that follow others; calls that follow a single call as its only follower; calls that may begin early
}

type fakeMemory struct {
	bytes []byte
	taken uint64
	gpu   int
}

type fakePinned struct {
	bytes []byte
	gpu   int
}

type fakeStream struct {
	queue []func()
	gpu   int
}

// fakeKernel is a kernel as a Go function: the arguments' sizes, and what one chain's blocks do.
type fakeKernel struct {
	handle handle
	sizes  []int
	run    func(arguments []unsafe.Pointer, chain int)
}

func newFakeDriver(t testing.TB) *fakeDriver {
	d := &fakeDriver{
		t: t, gpus: 3, total: 1 << 30, version: 12040, major: 9, next: 100,
		lost: map[int]result{}, names: map[result][]byte{}, current: map[int]handle{}, owner: map[handle]int{}, granted: map[string]int32{},
		memory: map[address]*fakeMemory{}, pinned: map[unsafe.Pointer]fakePinned{}, streams: map[handle]*fakeStream{},
		graphs: map[handle]*fakeGraph{}, ready: map[handle]*fakeGraph{}, modules: map[handle]bool{}, kernels: toyKernels(),
	}
	d.retained = make([]int, d.gpus)
	for name, k := range d.kernels {
		k.handle = d.fresh()
		d.kernels[name] = k
	}
	return d
}

func (d *fakeDriver) fresh() handle {
	d.next++
	d.owner[d.next] = d.gpuOf()
	return d.next
}

// begin counts a call and returns the error that the GPU's state or an injected failure gives it.
// gpu is none for calls that do not concern a GPU.
func (d *fakeDriver) begin(call string, gpu int) result {
	d.calls++
	if d.lost[gpu] != success {
		return d.lost[gpu]
	}
	if d.calls == d.failAt || call == d.failCall {
		d.failed, d.failCall = call, ""
		if fatal[d.failWith] {
			d.lost[gpu] = d.failWith
		}
		return d.failWith
	}
	return success
}

// used returns the allocated memory of a GPU in bytes.
func (d *fakeDriver) used(gpu int) (bytes uint64) {
	for _, m := range d.memory {
		if m.gpu == gpu {
			bytes += m.taken
		}
	}
	return bytes
}

// left describes all resources that have not been released, or returns "".
func (d *fakeDriver) left() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	held := slices.ContainsFunc(d.retained, func(n int) bool { return n != 0 })
	if len(d.memory)+len(d.pinned)+len(d.streams)+len(d.graphs)+len(d.ready)+len(d.modules) == 0 && !held {
		return ""
	}
	return fmt.Sprintf("%d pieces of memory, %d of pinned memory, %d streams, %d graphs, %d executable graphs, %d modules, contexts held %v",
		len(d.memory), len(d.pinned), len(d.streams), len(d.graphs), len(d.ready), len(d.modules), d.retained)
}

// gpuOf returns the GPU of this thread's context.
func (d *fakeDriver) gpuOf() int { return int(d.current[syscall.Gettid()]) - 1 }

const (
	none = -1 // of the GPUs

	invalidContext result = 201
	invalidHandle  result = 400
)

func (d *fakeDriver) cuInit(uint32) result { return d.begin("cuInit", none) }

func (d *fakeDriver) cuDriverGetVersion(version *int32) result {
	*version = d.version
	return d.begin("cuDriverGetVersion", none)
}

func (d *fakeDriver) cuGetErrorName(code result, name *unsafe.Pointer) result {
	if d.names[code] == nil {
		d.names[code] = []byte(fmt.Sprintf("CUDA_ERROR_%d\x00", code))
	}
	*name = unsafe.Pointer(&d.names[code][0])
	return success
}

func (d *fakeDriver) cuGetErrorString(code result, text *unsafe.Pointer) result {
	return d.cuGetErrorName(code, text)
}

func (d *fakeDriver) cuDeviceGetCount(count *int32) result {
	*count = int32(d.gpus)
	return d.begin("cuDeviceGetCount", none)
}

func (d *fakeDriver) cuDeviceGet(device *int32, ordinal int32) result {
	*device = ordinal
	return d.begin("cuDeviceGet", none)
}

func (d *fakeDriver) cuDeviceGetName(name *byte, length int32, _ int32) result {
	copy(unsafe.Slice(name, length), "fake\x00")
	return d.begin("cuDeviceGetName", none)
}

func (d *fakeDriver) cuDeviceGetAttribute(value *int32, attribute attribute, _ int32) result {
	*value = map[wanted]int32{
		multiprocessorCount: 4, capabilityMajor: d.major, capabilityMinor: 0, sharedMemoryPerBlock: 227 << 10,
	}[attribute]
	return d.begin("cuDeviceGetAttribute", none)
}

// wanted is another name for attribute, where a parameter hides that one.
type wanted = attribute

func (d *fakeDriver) cuDeviceTotalMem_v2(bytes *uint64, _ int32) result {
	*bytes = d.total
	return d.begin("cuDeviceTotalMem_v2", none)
}

func (d *fakeDriver) cuDevicePrimaryCtxRetain(context *handle, device int32) result {
	d.mu.Lock()
	defer d.mu.Unlock()
	if code := d.begin("cuDevicePrimaryCtxRetain", int(device)); code != success {
		return code
	}
	d.retained[device]++
	*context = handle(device + 1)
	return success
}

// cuDevicePrimaryCtxRelease_v2 releases a context. If the GPU is lost, everything in the context is
// freed, as by the real driver.
func (d *fakeDriver) cuDevicePrimaryCtxRelease_v2(device int32) result {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.retained[device] == 0 {
		return invalidContext
	}
	d.retained[device]--
	if d.lost[int(device)] != success {
		d.reclaim(int(device))
	}
	return d.begin("cuDevicePrimaryCtxRelease_v2", int(device))
}

// reclaim frees everything in the context of a lost GPU. On other GPUs, the program must release
// everything itself.
func (d *fakeDriver) reclaim(gpu int) {
	maps.DeleteFunc(d.memory, func(_ address, m *fakeMemory) bool { return m.gpu == gpu })
	maps.DeleteFunc(d.streams, func(_ handle, s *fakeStream) bool { return s.gpu == gpu })
	maps.DeleteFunc(d.owner, func(h handle, owner int) bool {
		if owner == gpu {
			delete(d.graphs, h)
			delete(d.ready, h)
			delete(d.modules, h)
		}
		return owner == gpu
	})
	maps.DeleteFunc(d.pinned, func(_ unsafe.Pointer, p fakePinned) bool { return p.gpu == gpu })
}

func (d *fakeDriver) cuCtxSetCurrent(context handle) result {
	d.mu.Lock()
	defer d.mu.Unlock()
	if code := d.begin("cuCtxSetCurrent", int(context)-1); code != success {
		return code
	}
	if context != 0 && d.retained[context-1] == 0 {
		return invalidContext
	}
	d.current[syscall.Gettid()] = context
	return success
}

// do makes a call that needs a context.
func (d *fakeDriver) do(call string, work func() result) result {
	d.mu.Lock()
	defer d.mu.Unlock()
	if code := d.begin(call, d.gpuOf()); code != success {
		return code
	}
	if d.gpuOf() < 0 {
		return invalidContext
	}
	return work()
}

func (d *fakeDriver) cuMemGetInfo_v2(free, total *uint64) result {
	return d.do("cuMemGetInfo_v2", func() result {
		*free, *total = d.total-d.used(d.gpuOf()), d.total
		return success
	})
}

func (d *fakeDriver) cuMemAlloc_v2(memory *address, bytes uint64) result {
	return d.do("cuMemAlloc_v2", func() result {
		taken := (bytes + allocationGranularity - 1) / allocationGranularity * allocationGranularity
		if d.used(d.gpuOf())+taken > d.total {
			return outOfMemory
		}
		m := &fakeMemory{bytes: make([]byte, bytes), taken: taken, gpu: d.gpuOf()}
		for i := range m.bytes {
			m.bytes[i] = 0xCC
		}
		*memory = address(uintptr(unsafe.Pointer(&m.bytes[0])))
		d.memory[*memory] = m
		return success
	})
}

func (d *fakeDriver) cuMemFree_v2(memory address) result {
	return d.do("cuMemFree_v2", func() result {
		if d.memory[memory] == nil {
			return invalidValue
		}
		for _, s := range d.streams {
			if len(s.queue) > 0 && s.gpu == d.gpuOf() && d.failed != "cuStreamSynchronize" {
				d.t.Error("memory is freed while work is under way")
			}
		}
		delete(d.memory, memory)
		return success
	})
}

// at returns bytes of device memory. An access outside allocated memory is a fault, after which the
// GPU is lost.
func (d *fakeDriver) at(begin address, bytes uint64) []byte {
	for base, m := range d.memory {
		if begin >= base && begin+address(bytes) <= base+address(len(m.bytes)) {
			return m.bytes[begin-base:][:bytes]
		}
	}
	d.lost[d.gpuOf()] = illegalAddress
	return make([]byte, bytes)
}
