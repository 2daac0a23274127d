package cuda

import (
	"cmp"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/cuda/internal/plan"
	"github.com/pollen-ml/pollen/cuda/kernels"
)

// stagingBytes is the size of the pinned host memory through which a GPU's memory is read and
// written. A copy from pageable memory would not be asynchronous. The memory is used in two halves:
// while the GPU fills or empties one, the host works on the other.
const stagingBytes = 8 << 20

// gpu is one GPU, with its primary context and one stream. All work is ordered by that stream.
type gpu struct {
	*library
	Info
	device    int32
	context   handle
	stream    handle
	maxShared int // bytes of shared memory that a block may have

	features // those that the environment allows and this GPU has

	kernelFiles   map[string]*ptxFile // the file to compile each kernel from, by its symbol
	modules       []handle            // one for each compiled kernel
	functions     map[variant]handle
	dynamicShared map[handle]int // bytes of dynamic shared memory that a function may be launched with

	staging     unsafe.Pointer
	stagingHalf int // bytes of half the staging memory
	stagingUsed int // bytes of it that copies in flight still read

	mu       sync.Mutex
	lost     error // the first fatal error
	closed   bool
	loaded   int  // number of loaded workloads
	retained bool // whether the primary context was retained
}

// openGPU retains a GPU's primary context and creates what all workloads share: the stream and the
// staging memory, of twice half bytes. It uses the features that are allowed and that the GPU has.
func openGPU(l *library, index int, sources []ptxFile, half int, allowed features) (*gpu, error) {
	g := &gpu{library: l, features: allowed, stagingHalf: half, functions: map[variant]handle{}, dynamicShared: map[handle]int{}}
	var err error
	if g.Info, g.device, err = l.gpuInfo(index); err != nil {
		return nil, err
	}
	if g.Info.capability() < minCapability {
		return nil, errors.Errorf("cuda: %v has compute capability %d.%d, but the kernels need 7.0 (Volta): use another GPU, or the CPU", g, g.Major, g.Minor)
	}
	g.pdl = g.pdl && g.capability() >= kernels.DependentCapability && l.version >= minPDLDriver
	g.kernelFiles = selectKernels(sources, g.capability(), l.version)
	g.wgmma = g.wgmma && g.kernelFiles[plan.WGMMAKernel()] != nil // older drivers do not read their PTX
	if err := g.acquire(); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// acquire retains the primary context, which other libraries of the process share, and creates the
// stream and the staging memory.
func (g *gpu) acquire() error {
	code := g.cuDevicePrimaryCtxRetain(&g.context, g.device)
	if err := g.check("cuDevicePrimaryCtxRetain", code); err != nil {
		return errors.Wrapf(err, "cuda: opening%s", hint(code))
	}
	g.retained = true
	return g.do(func() error {
		if err := g.check("cuStreamCreate", g.cuStreamCreate(&g.stream, streamNonBlocking)); err != nil {
			return err
		}
		limit, err := g.attribute(sharedMemoryPerBlock, g.device)
		g.maxShared = int(limit)
		if err != nil {
			return err
		}
		return g.check("cuMemAllocHost_v2", g.cuMemAllocHost_v2(&g.staging, uint64(2*g.stagingHalf)))
	})
}

// capability returns the compute capability that plans assume, 10 major + minor: the GPU's, unless
// CapabilityVariable limits it.
func (g *gpu) capability() int { return g.features.capability(g.Info.capability()) }

// capabilityText returns "9.0", or "9.0 limited to 8.0" if CapabilityVariable limits it.
func (g *gpu) capabilityText() string {
	has, assumed := g.Info.capability(), g.capability()
	text := fmt.Sprintf("%d.%d", has/10, has%10)
	if assumed < has {
		text += fmt.Sprintf(" limited to %d.%d", assumed/10, assumed%10)
	}
	return text
}

// target returns what a workload with a number of chains on this GPU is planned for.
func (g *gpu) target(precision Precision, chains int) plan.Target {
	return g.features.target(precision, g.capability(), g.Multiprocessors, g.maxShared, chains)
}

// String returns "GPU 0 (NVIDIA H200)".
func (g *gpu) String() string { return fmt.Sprintf("GPU %d (%s)", g.Index, g.Info.Name) }

// check turns a call's result into an error. After a fatal result the GPU is lost: its context
// returns the same error for every later call, so check keeps the first one.
func (g *gpu) check(call string, code result) error {
	if code == success {
		return nil
	}
	err := errors.Wrap(g.library.check(call, code), g.String())
	if fatal[code] && g.lost == nil {
		g.lost = err
	}
	return err
}

// IsLost reports whether an error has destroyed the GPU's context. This process cannot use the GPU
// any more; another process can.
func IsLost(err error) bool {
	var failed *DriverError
	return errors.As(err, &failed) && fatal[result(failed.Code)]
}

// do runs work with the GPU's context current on this thread. It allows one goroutine at a time,
// because the staging memory and the order of the stream are shared.
func (g *gpu) do(work func() error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return errors.Errorf("cuda: %v is used after Close", g)
	}
	if g.lost != nil {
		return errors.Wrapf(g.lost, "cuda: %v is lost since an earlier error; restart the program", g)
	}
	return g.withContext(work)
}

// withContext runs work with the context current. The current context is a property of the thread,
// so the goroutine must not move to another one.
func (g *gpu) withContext(work func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := g.check("cuCtxSetCurrent", g.cuCtxSetCurrent(g.context)); err != nil {
		return err
	}
	return work()
}

// synchronize waits for the stream. Errors of earlier asynchronous calls surface here.
func (g *gpu) synchronize() error {
	g.stagingUsed = 0
	return g.check("cuStreamSynchronize", g.cuStreamSynchronize(g.stream))
}

// releaser makes a series of calls that release resources. It makes all of them even if some fail,
// and keeps the first error. It ignores the errors of a GPU that was already lost, whose resources
// the driver releases with the context.
type releaser struct {
	g       *gpu
	wasLost bool
	first   error
}

func (r *releaser) check(call string, code result) {
	if err := r.g.check(call, code); err != nil && r.first == nil && !r.wasLost {
		r.first = err
	}
}

// close releases everything, in the reverse order of openGPU. A second call does nothing. Workloads
// must have been closed: they would free their memory in a context that no longer exists.
func (g *gpu) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	if g.loaded > 0 {
		return errors.Errorf("cuda: %v cannot be closed while %d workloads are loaded", g, g.loaded)
	}
	g.closed = true
	r := &releaser{g: g, wasLost: g.lost != nil}
	if !g.retained {
		return nil
	}
	err := g.withContext(func() error {
		if g.stream != 0 {
			r.check("cuStreamSynchronize", g.cuStreamSynchronize(g.stream))
		}
		for _, module := range g.modules {
			r.check("cuModuleUnload", g.cuModuleUnload(module))
		}
		if g.staging != nil {
			r.check("cuMemFreeHost", g.cuMemFreeHost(g.staging))
			// The address may be reused by Go's heap, and the garbage collector rejects pointers
			// into its heap that it did not hand out.
			g.staging = nil
		}
		if g.stream != 0 {
			r.check("cuStreamDestroy_v2", g.cuStreamDestroy_v2(g.stream))
		}
		r.check("cuCtxSetCurrent", g.cuCtxSetCurrent(0))
		return nil
	})
	r.check("cuDevicePrimaryCtxRelease_v2", g.cuDevicePrimaryCtxRelease_v2(g.device))
	if r.wasLost {
		return nil
	}
	return cmp.Or(err, r.first)
}
