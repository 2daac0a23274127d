package cuda

import (
	"bytes"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/pkg/errors"
)

// NoKernel is the error of loading a launch that has no kernel for the GPU. Tests' ops, for
// example, may have only a host function.
type NoKernel struct{ Kernel, GPU string }

// Error implements error.
func (e *NoKernel) Error() string { return fmt.Sprintf("cuda: no kernel %s for %s", e.Kernel, e.GPU) }

// jitLogBytes is the space for the messages of the driver's compiler.
const jitLogBytes = 8192

// function returns a kernel that may be launched with shared bytes of dynamic shared memory. It
// compiles the kernel on first use.
func (g *gpu) function(symbol string, shared int, pdl bool) (handle, error) {
	if shared > g.maxShared {
		return 0, errors.Errorf("cuda: %s needs %d bytes of shared memory, %v has %d", symbol, shared, g, g.maxShared)
	}
	// A kernel is looked up for each of its calls, and compiled for the first.
	f, ok := g.functions[variant{symbol, pdl}]
	if !ok {
		s := g.kernelFiles[symbol]
		if s == nil {
			return 0, &NoKernel{Kernel: symbol, GPU: fmt.Sprintf("%v of compute capability %s", g, g.capabilityText())}
		}
		module, err := g.compile(s, symbol, pdl)
		if err != nil {
			return 0, err
		}
		if err := g.check("cuModuleGetFunction", g.cuModuleGetFunction(&f, module, cString(symbol))); err != nil {
			return 0, errors.Wrapf(err, "%s of %s", symbol, s.name)
		}
		g.functions[variant{symbol, pdl}] = f
	}
	// Without this attribute a kernel may have 48 KiB of shared memory, less its static arrays, so
	// even smaller requests would fail for some kernels.
	if shared > g.dynamicShared[f] {
		if err := g.check("cuFuncSetAttribute", g.cuFuncSetAttribute(f, dynamicSharedMemory, int32(shared))); err != nil {
			return 0, errors.Wrapf(err, "%d bytes of shared memory for %s", shared, symbol)
		}
		g.dynamicShared[f] = shared
	}
	return f, nil
}

// compile has the driver compile a kernel. The error contains the compiler's log.
func (g *gpu) compile(s *ptxFile, symbol string, pdl bool) (handle, error) {
	log := make([]byte, jitLogBytes)
	// The driver writes through an address inside values, which the garbage collector does not see.
	var pinned runtime.Pinner
	pinned.Pin(&log[0])
	defer pinned.Unpin()
	options := []jitOption{errorLog, errorLogBytes}
	values := []uintptr{uintptr(unsafe.Pointer(&log[0])), jitLogBytes}
	var module handle
	code := g.cuModuleLoadDataEx(&module, cString(s.ptx(symbol, pdl)), uint32(len(options)), &options[0], &values[0])
	if err := g.check("cuModuleLoadDataEx", code); err != nil {
		text, _, _ := bytes.Cut(log, []byte{0})
		return 0, errors.Wrapf(err, "%s of %s: the driver's compiler reports %q%s", symbol, s.name, text, hint(code))
	}
	g.modules = append(g.modules, module)
	return module, nil
}
