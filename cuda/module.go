package cuda

import (
	"bytes"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/kernels"
)

// source is a file of PTX: the code of some kernels, each of which a GPU's driver compiles alone.
// So a program waits for those that it has, and finds those that other programs had: the driver
// keeps what it has compiled for a text of PTX in the user's folder (CUDA C++ Programming Guide,
// just-in-time compilation: CUDA_CACHE_PATH, CUDA_CACHE_MAXSIZE, CUDA_CACHE_DISABLE).
type ptxFile struct {
	name         string
	capability   int  // the lowest it runs on, 10 major + minor
	archSpecific bool // it runs on that one only, as sm_90a does
	minCUDA      int  // the first version of CUDA whose driver reads it
	symbols      []string
	entries      map[string]kernels.Entry // by symbol, as far as they are known
	head         string                   // of the text, which each entry's follows
}

// sources are all kernels.
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

// minCUDAFor is the first CUDA, 1000 major + 10 minor, whose driver reads a version of PTX, 10
// major + minor, by the release history in the PTX ISA: up to 8.5, which came with 12.5, the minor
// versions are the same; 12.6 brought none, and 9.0 came with 13.0.
func minCUDAFor(version int) (int, error) {
	switch {
	case 70 <= version && version <= 78, 80 <= version && version <= 85, 90 <= version && version <= 91:
		return 1000*(version/10+4) + 10*(version%10), nil
	case 86 <= version && version <= 88:
		return 12010 + 10*(version%10), nil
	}
	return 0, errors.Errorf("which CUDA reads PTX %d.%d is not known", version/10, version%10)
}

// choose finds the source that a GPU takes for each symbol: the one for the highest capability that
// the GPU has.
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

// NoKernel is the error of a launch that only the host can run, such as those of a test's own ops.
type NoKernel struct{ Kernel, GPU string }

// Error implements error.
func (e *NoKernel) Error() string { return fmt.Sprintf("cuda: no kernel %s for %s", e.Kernel, e.GPU) }

// jitLogBytes is the room for what the driver's compiler has to say.
const jitLogBytes = 8192

// version is one of the two programs of a kernel: one that may begin before the kernel that it
// follows has ended, and waits for that by itself, or one that may not.
type variant struct {
	symbol string
	pdl    bool
}

// function is a kernel, compiled when it is first asked for.
func (g *gpu) function(symbol string, shared int, early bool) (handle, error) {
	if shared > g.maxShared {
		return 0, errors.Errorf("cuda: %s asks for %d bytes of shared memory, %v has %d", symbol, shared, g, g.maxShared)
	}
	f, ok := g.functions[variant{symbol, early}]
	if !ok {
		s := g.kernelFiles[symbol]
		if s == nil {
			return 0, &NoKernel{Kernel: symbol, GPU: fmt.Sprintf("%v of compute capability %s", g, g.capabilityText())}
		}
		module, err := g.compile(s, symbol, early)
		if err != nil {
			return 0, err
		}
		if err := g.check("cuModuleGetFunction", g.cuModuleGetFunction(&f, module, cString(symbol))); err != nil {
			return 0, errors.Wrapf(err, "%s of %s", symbol, s.name)
		}
		g.functions[variant{symbol, early}] = f
	}
	// A kernel with arrays of its own gets less than the usual 48 KiB unless it asks: so it always
	// asks.
	if shared > g.dynamicShared[f] {
		if err := g.check("cuFuncSetAttribute", g.cuFuncSetAttribute(f, dynamicSharedMemory, int32(shared))); err != nil {
			return 0, errors.Wrapf(err, "%d bytes of shared memory for %s", shared, symbol)
		}
		g.dynamicShared[f] = shared
	}
	return f, nil
}

// compile has the driver compile a kernel.
func (g *gpu) compile(s *ptxFile, symbol string, early bool) (handle, error) {
	log := make([]byte, jitLogBytes)
	var pinned runtime.Pinner // the driver writes through an address that is no argument of the call
	pinned.Pin(&log[0])
	defer pinned.Unpin()
	options := []jitOption{errorLog, errorLogBytes}
	values := []uintptr{uintptr(unsafe.Pointer(&log[0])), jitLogBytes}
	var module handle
	code := g.cuModuleLoadDataEx(&module, cString(g.ptx(s, symbol, early)), uint32(len(options)), &options[0], &values[0])
	if err := g.check("cuModuleLoadDataEx", code); err != nil {
		text, _, _ := bytes.Cut(log, []byte{0})
		return 0, errors.Wrapf(err, "%s of %s: the driver's compiler says %q%s", symbol, s.name, text, hint(code))
	}
	g.modules = append(g.modules, module)
	return module, nil
}
