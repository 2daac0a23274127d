package emulator

import (
	"os"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// caller calls the driver's functions by name, on one thread, with memory whose address the driver
// receives.
type caller struct {
	t       *testing.T
	library uintptr
	out     *[8]uint64 // results
}

func newCaller(t *testing.T, o Options) (*caller, *Driver) {
	t.Helper()
	d := Open(t, o)
	library, err := purego.Dlopen(d.Path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	return &caller{t: t, library: library, out: new([8]uint64)}, d
}

// gives fails the test unless a call returns the result.
func (c *caller) gives(want int, name string, arguments ...uintptr) {
	c.t.Helper()
	f, err := purego.Dlsym(c.library, name)
	if err != nil {
		c.t.Fatal(err)
	}
	got, _, _ := purego.SyscallN(f, arguments...)
	runtime.KeepAlive(c.out)
	if int(int32(got)) != want {
		c.t.Fatalf("%s gives %d, want %d", name, int32(got), want)
	}
}

// result returns the address for result i.
func (c *caller) result(i int) uintptr { return uintptr(unsafe.Pointer(&c.out[i])) }

func (c *caller) value(i int) uintptr { return uintptr(c.out[i]) }

// begin initialises the driver and makes a context and a stream, result 1.
func (c *caller) begin() {
	c.t.Helper()
	c.gives(0, "cuInit", 0)
	c.gives(0, "cuDevicePrimaryCtxRetain", c.result(0), 0)
	c.gives(0, "cuCtxSetCurrent", c.value(0))
	c.gives(0, "cuStreamCreate", c.result(1), 1)
}

func (c *caller) end() {
	c.t.Helper()
	c.gives(0, "cuStreamDestroy_v2", c.value(1))
	c.gives(0, "cuDevicePrimaryCtxRelease_v2", 0)
}

func TestMisuse(t *testing.T) {
	c, _ := newCaller(t, Options{GPUs: 2, Memory: 1 << 20})
	c.gives(3, "cuDeviceGetCount", c.result(0))
	c.gives(0, "cuInit", 0)
	c.gives(0, "cuDeviceGetCount", c.result(0))
	if c.value(0) != 2 {
		t.Errorf("%d GPUs, want 2", c.value(0))
	}
	c.gives(101, "cuDeviceGet", c.result(0), 2)
	c.gives(0, "cuCtxSetCurrent", 0)
	c.gives(201, "cuMemAlloc_v2", c.result(2), 64)
	c.begin()
	c.gives(2, "cuMemAlloc_v2", c.result(2), 2<<20)
	c.gives(1, "cuMemAlloc_v2", c.result(2), 0)
	c.gives(0, "cuMemAlloc_v2", c.result(2), 1000)
	c.gives(1, "cuMemsetD8Async", c.value(2), 0, 1001, c.value(1))
	c.gives(1, "cuMemFree_v2", c.value(2)+8)
	c.gives(0, "cuMemFree_v2", c.value(2))
	c.gives(1, "cuMemFree_v2", c.value(2))
	c.gives(400, "cuStreamSynchronize", 12345)
	c.gives(1, "cuGraphLaunch", 12345, c.value(1))
	c.gives(400, "cuModuleUnload", 12345)
	c.end()
	c.gives(201, "cuDevicePrimaryCtxRelease_v2", 0)
	c.gives(201, "cuStreamCreate", c.result(1), 1)
}

// TestCopiesAreLate: a copy of page-locked memory happens when the stream is synchronized. A copy
// of memory that has been freed by then destroys the context.
func TestCopiesAreLate(t *testing.T) {
	c, d := newCaller(t, Options{})
	c.begin()
	c.gives(0, "cuMemAllocHost_v2", c.result(2), 8)
	c.gives(0, "cuMemAlloc_v2", c.result(3), 8)
	host := (*uint64)(*(*unsafe.Pointer)(unsafe.Pointer(&c.out[2])))
	*host = 1
	c.gives(0, "cuMemcpyHtoDAsync_v2", c.value(3), c.value(2), 8, c.value(1))
	*host = 2
	c.gives(0, "cuStreamSynchronize", c.value(1))
	c.gives(0, "cuMemcpyDtoHAsync_v2", c.value(2), c.value(3), 8, c.value(1))
	*host = 3
	if *host != 3 {
		t.Error("the copy did not wait")
	}
	c.gives(0, "cuStreamSynchronize", c.value(1))
	if *host != 2 {
		t.Errorf("the device was given %d, want what the memory held at the end, 2", *host)
	}
	c.gives(0, "cuMemcpyDtoHAsync_v2", c.value(2), c.value(3), 8, c.value(1))
	c.gives(0, "cuMemFreeHost", c.value(2))
	c.gives(700, "cuStreamSynchronize", c.value(1))
	c.gives(700, "cuMemFree_v2", c.value(3))
	if report := d.Report(); !strings.Contains(report, "fault: an asynchronous copy") || !strings.Contains(report, "held: 1 allocations of device memory") {
		t.Errorf("the report says %q", report)
	}
	c.gives(0, "cuDevicePrimaryCtxRelease_v2", 0)
}

func TestModules(t *testing.T) {
	c, _ := newCaller(t, Options{Capability: 75, CUDA: 11080})
	c.begin()
	file := committed(t, "relu.ptx")
	load := func(want int, from, to string) {
		t.Helper()
		text := append([]byte(strings.Replace(string(file), from, to, 1)), 0)
		c.gives(want, "cuModuleLoadDataEx", c.result(2), uintptr(unsafe.Pointer(&text[0])), 0, 0, 0)
		runtime.KeepAlive(text)
	}
	load(209, "sm_70", "sm_80")
	load(209, "sm_70", "sm_70a")
	load(222, ".version 7.8", ".version 8.0")
	load(218, "relu_fwd_f32(", "other_f32(")
	load(218, "relu_fwd_f32_param_1[16]", "relu_fwd_f32_param_1[24]")
	if os.Getenv(Variable) == PTX { // elsewhere any text with the same entries will do
		load(218, "ret;", "ret; // another text")
	}
	load(0, "", "")
	name := func(text string) uintptr { return uintptr(unsafe.Pointer(&append([]byte(text), 0)[0])) }
	c.gives(500, "cuModuleGetFunction", c.result(3), c.value(2), name("relu_fwd"))
	c.gives(0, "cuModuleGetFunction", c.result(3), c.value(2), name("relu_fwd_f32"))
	launch := func(want int, threads, shared uintptr) {
		t.Helper()
		arguments := make([]uint64, 5)
		pointers := []uintptr{uintptr(unsafe.Pointer(&arguments[0])), uintptr(unsafe.Pointer(&arguments[2])), uintptr(unsafe.Pointer(&arguments[4]))}
		c.gives(want, "cuLaunchKernel", c.value(3), 1, 1, 1, threads, 1, 1, shared, c.value(1), uintptr(unsafe.Pointer(&pointers[0])), 0)
		runtime.KeepAlive(arguments)
	}
	launch(1, 257, 0)
	launch(1, 0, 0)
	launch(1, 32, 48<<10+1)
	c.gives(1, "cuFuncSetAttribute", c.value(3), 8, 64<<10+1)
	c.gives(0, "cuFuncSetAttribute", c.value(3), 8, 64<<10)
	launch(0, 256, 64<<10)
	c.gives(0, "cuStreamSynchronize", c.value(1))
	c.gives(0, "cuModuleUnload", c.value(2))
	launch(400, 32, 0)
	c.end()
}

// TestSharedMemory: a launch cannot request the shared memory that a kernel's static arrays take.
func TestSharedMemory(t *testing.T) {
	file := committed(t, "bias.ptx")
	const own = 2048 + 256 // bytes of bias_bwd_f32's arrays
	for capability, most := range map[int]uintptr{75: 64 << 10, 80: 163 << 10, 86: 99 << 10, 90: 227 << 10, 100: 227 << 10, 120: 99 << 10} {
		c, _ := newCaller(t, Options{Capability: capability})
		c.begin()
		c.gives(0, "cuDeviceGetAttribute", c.result(2), 97, 0)
		if got := c.value(2); got != most {
			t.Errorf("a block has %d bytes at capability %d, want %d", got, capability, most)
		}
		text, name := append(file, 0), append([]byte("bias_bwd_f32"), 0)
		c.gives(0, "cuModuleLoadDataEx", c.result(3), uintptr(unsafe.Pointer(&text[0])), 0, 0, 0)
		c.gives(0, "cuModuleGetFunction", c.result(4), c.value(3), uintptr(unsafe.Pointer(&name[0])))
		runtime.KeepAlive(text)
		runtime.KeepAlive(name)
		c.gives(1, "cuLaunchKernel", c.value(4), 1, 1, 1, 32, 1, 1, 48<<10-own+1, c.value(1), 0, 0)
		c.gives(1, "cuFuncSetAttribute", c.value(4), 8, most-own+1)
		c.gives(0, "cuFuncSetAttribute", c.value(4), 8, most-own)
		c.gives(0, "cuModuleUnload", c.value(3))
		c.end()
	}
}

// TestVersions: drivers read the PTX of their CUDA version and older.
func TestVersions(t *testing.T) {
	file := committed(t, "relu.ptx")
	read := 0
	if os.Getenv(Variable) == PTX {
		read = 218 // it is read, and is not the text that was translated
	}
	for _, row := range []struct {
		cuda         int
		reads, lacks string
	}{{11080, "7.7", "8.0"}, {12050, "8.5", "8.6"}, {12060, "8.5", "8.6"}, {12070, "8.6", "8.7"}, {12090, "8.8", "9.0"}, {13010, "9.1", "9.2"}} {
		c, _ := newCaller(t, Options{CUDA: row.cuda})
		c.begin()
		for version, want := range map[string]int{row.reads: read, row.lacks: 222} {
			text := append([]byte(strings.Replace(string(file), ".version 7.8", ".version "+version, 1)), 0)
			c.gives(want, "cuModuleLoadDataEx", c.result(2), uintptr(unsafe.Pointer(&text[0])), 0, 0, 0)
			runtime.KeepAlive(text)
			if want == 0 {
				c.gives(0, "cuModuleUnload", c.value(2))
			}
		}
		c.end()
	}
}

func TestInjection(t *testing.T) {
	c, d := newCaller(t, Options{GPUs: None})
	c.gives(100, "cuInit", 0)
	d.Reset(Options{})
	c.begin()
	d.Fail("cuMemAlloc_v2", 2, 2)
	c.gives(0, "cuMemAlloc_v2", c.result(2), 64)
	c.gives(2, "cuMemAlloc_v2", c.result(3), 64)
	c.gives(0, "cuMemAlloc_v2", c.result(3), 64)
	if report := d.Report(); !strings.Contains(report, "held: 2 allocations") || !strings.Contains(report, "held: 1 streams") {
		t.Errorf("the report says %q", report)
	}
	d.Lose("", 2, 214)
	c.gives(0, "cuStreamSynchronize", c.value(1))
	for range 3 {
		c.gives(214, "cuStreamSynchronize", c.value(1))
	}
	d.Reset(Options{})
	if report := d.Report(); report != "" {
		t.Errorf("after a reset the report says %q", report)
	}
}
