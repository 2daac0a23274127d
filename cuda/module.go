package cuda

import (
	"bytes"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/kernels"
)

// ptxFile is a file of PTX. The driver compiles each of its kernels as a module of its own, when a
// workload first needs it, so that a program waits for few kernels. The driver caches what it has
// compiled, by the text of the PTX, in the user's directory (CUDA C++ Programming Guide,
// just-in-time compilation: CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE, CUDA_CACHE_DISABLE). A later
// program with the same kernels starts faster.
type ptxFile struct {
	name         string
	capability   int  // the lowest that it runs on, 10 major + minor
	archSpecific bool // whether it runs only on that one, as sm_90a does
	minCUDA      int  // the first CUDA whose driver reads this version of PTX, 1000 major + 10 minor
	symbols      []string
	entries      map[string]kernels.Entry // the kernels, by symbol
	head         string                   // the file's text before the first kernel, which every kernel needs
}

// ptxFiles returns all kernels, those that programs have added included.
func ptxFiles() ([]ptxFile, error) {
	files, err := kernels.Files()
	if err != nil {
		return nil, errors.Wrap(err, "cuda")
	}
	var all []ptxFile
	for _, f := range files {
		reads, err := minCUDAFor(f.Version)
		if err != nil {
			return nil, errors.WithMessage(err, "cuda: "+f.Name)
		}
		s := ptxFile{name: f.Name, capability: f.Capability, archSpecific: f.Exact, minCUDA: reads, head: f.Head, entries: map[string]kernels.Entry{}}
		for _, e := range f.Entries {
			s.symbols = append(s.symbols, e.Name)
			s.entries[e.Name] = e
		}
		all = append(all, s)
	}
	return all, nil
}

// minCUDAFor returns the first CUDA, 1000 major + 10 minor, whose driver reads a version of PTX, 10
// major + minor. It follows the release history in the PTX ISA: up to PTX 8.5, of CUDA 12.5, the
// minor versions agree; CUDA 12.6 brought no new PTX; PTX 9.0 came with CUDA 13.0.
func minCUDAFor(version int) (int, error) {
	switch {
	case 70 <= version && version <= 78, 80 <= version && version <= 85, 90 <= version && version <= 91:
		return 1000*(version/10+4) + 10*(version%10), nil
	case 86 <= version && version <= 88:
		return 12010 + 10*(version%10), nil
	}
	return 0, errors.Errorf("PTX %d.%d is not in the table of CUDA versions", version/10, version%10)
}

// selectKernels returns, for each kernel, the file for the highest capability that the GPU has and
// whose PTX its driver reads.
func selectKernels(sources []ptxFile, capability, cuda int) map[string]*ptxFile {
	chosen := map[string]*ptxFile{}
	for i := range sources {
		s := &sources[i]
		if s.minCUDA > cuda || s.capability > capability || s.archSpecific && s.capability != capability {
			continue
		}
		for _, symbol := range s.symbols {
			if best := chosen[symbol]; best == nil || best.capability < s.capability {
				chosen[symbol] = s
			}
		}
	}
	return chosen
}

// NoKernel is the error of loading a launch that has no kernel for the GPU. Tests' ops, for
// example, may have only a host function.
type NoKernel struct{ Kernel, GPU string }

// Error implements error.
func (e *NoKernel) Error() string { return fmt.Sprintf("cuda: no kernel %s for %s", e.Kernel, e.GPU) }

// jitLogBytes is the space for the messages of the driver's compiler.
const jitLogBytes = 8192

// variant names one of the two programs that a kernel is compiled to. With pdl, the kernel may
// begin before the one that it follows has ended, and first waits for that one (pdl.go).
type variant struct {
	symbol string
	pdl    bool
}

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

// compile has the driver compile a kernel. The error has the compiler's log.
func (g *gpu) compile(s *ptxFile, symbol string, pdl bool) (handle, error) {
	log := make([]byte, jitLogBytes)
	// The driver writes through an address inside values, which the garbage collector does not see.
	var pinned runtime.Pinner
	pinned.Pin(&log[0])
	defer pinned.Unpin()
	options := []jitOption{errorLog, errorLogBytes}
	values := []uintptr{uintptr(unsafe.Pointer(&log[0])), jitLogBytes}
	var module handle
	code := g.cuModuleLoadDataEx(&module, cString(g.ptx(s, symbol, pdl)), uint32(len(options)), &options[0], &values[0])
	if err := g.check("cuModuleLoadDataEx", code); err != nil {
		text, _, _ := bytes.Cut(log, []byte{0})
		return 0, errors.Wrapf(err, "%s of %s: the driver's compiler reports %q%s", symbol, s.name, text, hint(code))
	}
	g.modules = append(g.modules, module)
	return module, nil
}
