package emulator

import (
	"cmp"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/pkg/errors"
)

// Driver is the emulated driver of this process. There is only one, so tests that use it must not
// run in parallel.
type Driver struct {
	Path string // of its library

	reset, fail, report uintptr // the addresses of its functions
}

// Open builds the library and resets it to these options. Resources that the program still holds
// when the test ends are an error.
func Open(t testing.TB, o Options) *Driver {
	t.Helper()
	d := &Driver{Path: Build(t)}
	library, err := purego.Dlopen(d.Path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	for name, place := range map[string]*uintptr{"pollenReset": &d.reset, "pollenFail": &d.fail, "pollenReport": &d.report} {
		if *place, err = purego.Dlsym(library, name); err != nil {
			t.Fatal(err)
		}
	}
	d.Reset(o)
	t.Cleanup(func() {
		if held := d.Report(); strings.Contains(held, "held:") && !t.Failed() {
			t.Errorf("emulator: at the end of the test\n%s", held)
		}
		d.Reset(Options{})
	})
	return d
}

// Reset releases everything and cancels injected failures. Options that are 0 take their defaults.
func (d *Driver) Reset(o Options) {
	defaults := Options{GPUs: 1, Capability: 90, Memory: 1 << 30, CUDA: 13000, Multiprocessors: 4}
	if n, err := strconv.Atoi(os.Getenv(multiprocessorsVariable)); err == nil {
		defaults.Multiprocessors = n
	}
	or := func(v, otherwise int) uintptr {
		v = cmp.Or(v, otherwise)
		return uintptr(v)
	}
	purego.SyscallN(d.reset, or(o.GPUs, defaults.GPUs), or(o.Capability, defaults.Capability), or(int(o.Memory), int(defaults.Memory)), or(o.CUDA, defaults.CUDA),
		or(o.Multiprocessors, defaults.Multiprocessors))
}

// Fail makes the count-th call of the named function from now on, or of any function if call is
// empty, return result.
func (d *Driver) Fail(call string, count, result int) { d.inject(call, count, result, 0) }

// Lose is like Fail, but all later calls fail, too, as when a GPU falls off the bus.
func (d *Driver) Lose(call string, count, result int) { d.inject(call, count, result, 1) }

// inject makes calls fail: one of them, or with lost = 1 all from that one on.
func (d *Driver) inject(call string, count, result int, lost uintptr) {
	name := append([]byte(call), 0)
	purego.SyscallN(d.fail, uintptr(unsafe.Pointer(&name[0])), uintptr(count), uintptr(result), lost)
	runtime.KeepAlive(name)
}

// Report lists the driver resources that the program still holds, one line "held:" for each kind,
// and the error of the last faulty kernel, as "fault:".
func (d *Driver) Report() string { return written(d.report, 4096) }

// NotRun returns the names of the kernels that no launch has run in this process so far.
func NotRun() ([]string, error) {
	path, err := Library()
	if err != nil {
		return nil, err
	}
	library, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, errors.Wrap(err, "emulator")
	}
	f, err := purego.Dlsym(library, "pollenNotRun")
	if err != nil {
		return nil, errors.Wrap(err, "emulator")
	}
	return strings.Fields(written(f, 1<<16)), nil
}

// written returns the text that a function of the library writes.
func written(f uintptr, room int) string {
	text := make([]byte, room)
	n, _, _ := purego.SyscallN(f, uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)))
	runtime.KeepAlive(text)
	return string(text[:min(int(n), len(text)-1)])
}
