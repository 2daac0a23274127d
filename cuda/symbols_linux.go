package cuda

import (
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/pkg/errors"
)

// symbols are the addresses of a driver library's functions.
type symbols struct {
	init, driverGetVersion, getErrorName, getErrorString                                           uintptr
	deviceGetCount, deviceGet, deviceGetName, deviceGetAttribute, deviceTotalMem                   uintptr
	primaryCtxRetain, primaryCtxRelease, ctxSetCurrent                                             uintptr
	memGetInfo, memAlloc, memFree, memAllocHost, memFreeHost                                       uintptr
	memcpyHtoD, memcpyDtoH, memcpyDtoD, memset                                                     uintptr
	streamCreate, streamDestroy, streamSynchronize                                                 uintptr
	graphCreate, graphAddKernelNode, graphInstantiate, graphLaunch, graphExecDestroy, graphDestroy uintptr
	graphAddDependencies                                                                           uintptr // 0 before CUDA 12.3
	moduleLoad, moduleGetFunction, moduleUnload, funcSetAttribute, funcGetAttribute, launchKernel  uintptr
}

// findSymbols looks up the functions in a library that dlopen returned.
func findSymbols(library uintptr) (*symbols, error) {
	s := new(symbols)
	for name, place := range map[string]*uintptr{
		"cuInit": &s.init, "cuDriverGetVersion": &s.driverGetVersion, "cuGetErrorName": &s.getErrorName, "cuGetErrorString": &s.getErrorString,
		"cuDeviceGetCount": &s.deviceGetCount, "cuDeviceGet": &s.deviceGet, "cuDeviceGetName": &s.deviceGetName,
		"cuDeviceGetAttribute": &s.deviceGetAttribute, "cuDeviceTotalMem_v2": &s.deviceTotalMem,
		"cuDevicePrimaryCtxRetain": &s.primaryCtxRetain, "cuDevicePrimaryCtxRelease_v2": &s.primaryCtxRelease, "cuCtxSetCurrent": &s.ctxSetCurrent,
		"cuMemGetInfo_v2": &s.memGetInfo, "cuMemAlloc_v2": &s.memAlloc, "cuMemFree_v2": &s.memFree,
		"cuMemAllocHost_v2": &s.memAllocHost, "cuMemFreeHost": &s.memFreeHost,
		"cuMemcpyHtoDAsync_v2": &s.memcpyHtoD, "cuMemcpyDtoHAsync_v2": &s.memcpyDtoH, "cuMemcpyDtoDAsync_v2": &s.memcpyDtoD, "cuMemsetD8Async": &s.memset,
		"cuStreamCreate": &s.streamCreate, "cuStreamDestroy_v2": &s.streamDestroy, "cuStreamSynchronize": &s.streamSynchronize,
		"cuGraphCreate": &s.graphCreate, "cuGraphAddKernelNode": &s.graphAddKernelNode,
		"cuGraphAddDependencies_v2":   &s.graphAddDependencies,
		"cuGraphInstantiateWithFlags": &s.graphInstantiate, "cuGraphLaunch": &s.graphLaunch,
		"cuGraphExecDestroy": &s.graphExecDestroy, "cuGraphDestroy": &s.graphDestroy,
		"cuModuleLoadDataEx": &s.moduleLoad, "cuModuleGetFunction": &s.moduleGetFunction, "cuModuleUnload": &s.moduleUnload,
		"cuFuncSetAttribute": &s.funcSetAttribute, "cuFuncGetAttribute": &s.funcGetAttribute, "cuLaunchKernel": &s.launchKernel,
	} {
		var err error
		if *place, err = purego.Dlsym(library, name); err != nil && place != &s.graphAddDependencies {
			return nil, errors.Wrapf(whyNoDriver(library), "it has no %s", name)
		}
	}
	return s, nil
}

// whyNoDriver explains why a library lacks functions of a driver: it is not one, or it is too old.
func whyNoDriver(library uintptr) error {
	getVersion, err := purego.Dlsym(library, "cuDriverGetVersion")
	if err != nil {
		return errors.New("it is no CUDA driver")
	}
	var version int32
	if code := invoke(getVersion, uintptr(unsafe.Pointer(&version))); code != success {
		return errors.Errorf("cuDriverGetVersion returns %d", code)
	}
	if version >= minDriver {
		return errors.Errorf("it supports CUDA %s, but is incomplete", versionString(int(version)))
	}
	return tooOld(int(version))
}

// twoHandles recycles the arguments of invokeOn: purego passes them on by pointer, so they escape
// to the heap.
var twoHandles = sync.Pool{New: func() any { return new([2]uintptr) }}

// invokeOn calls a function of one or two handles without allocating. The calls of a run go through
// it.
func invokeOn(function uintptr, handles ...handle) result {
	arguments := twoHandles.Get().(*[2]uintptr)
	defer twoHandles.Put(arguments)
	for i, h := range handles {
		arguments[i] = uintptr(h)
	}
	code, _, _ := purego.SyscallN(function, arguments[:len(handles)]...)
	return result(int32(code))
}

// invoke calls a function of the library. A pointer among the arguments must be converted to
// uintptr within the call expression, which keeps what it points to alive.
//
//go:uintptrescapes
func invoke(function uintptr, arguments ...uintptr) result {
	code, _, _ := purego.SyscallN(function, arguments...)
	return result(int32(code))
}

func (s *symbols) cuInit(flags uint32) result { return invoke(s.init, uintptr(flags)) }

func (s *symbols) cuDriverGetVersion(version *int32) result {
	return invoke(s.driverGetVersion, uintptr(unsafe.Pointer(version)))
}

func (s *symbols) cuGetErrorName(code result, name *unsafe.Pointer) result {
	return invoke(s.getErrorName, uintptr(code), uintptr(unsafe.Pointer(name)))
}

func (s *symbols) cuGetErrorString(code result, text *unsafe.Pointer) result {
	return invoke(s.getErrorString, uintptr(code), uintptr(unsafe.Pointer(text)))
}

func (s *symbols) cuDeviceGetCount(count *int32) result {
	return invoke(s.deviceGetCount, uintptr(unsafe.Pointer(count)))
}

func (s *symbols) cuDeviceGet(device *int32, ordinal int32) result {
	return invoke(s.deviceGet, uintptr(unsafe.Pointer(device)), uintptr(ordinal))
}

func (s *symbols) cuDeviceGetName(name *byte, length int32, device int32) result {
	return invoke(s.deviceGetName, uintptr(unsafe.Pointer(name)), uintptr(length), uintptr(device))
}

func (s *symbols) cuDeviceGetAttribute(value *int32, attribute attribute, device int32) result {
	return invoke(s.deviceGetAttribute, uintptr(unsafe.Pointer(value)), uintptr(attribute), uintptr(device))
}

func (s *symbols) cuDeviceTotalMem_v2(bytes *uint64, device int32) result {
	return invoke(s.deviceTotalMem, uintptr(unsafe.Pointer(bytes)), uintptr(device))
}

func (s *symbols) cuDevicePrimaryCtxRetain(context *handle, device int32) result {
	return invoke(s.primaryCtxRetain, uintptr(unsafe.Pointer(context)), uintptr(device))
}

func (s *symbols) cuDevicePrimaryCtxRelease_v2(device int32) result {
	return invoke(s.primaryCtxRelease, uintptr(device))
}

func (s *symbols) cuCtxSetCurrent(context handle) result {
	return invokeOn(s.ctxSetCurrent, context)
}

func (s *symbols) cuMemGetInfo_v2(free, total *uint64) result {
	return invoke(s.memGetInfo, uintptr(unsafe.Pointer(free)), uintptr(unsafe.Pointer(total)))
}

func (s *symbols) cuMemAlloc_v2(memory *address, bytes uint64) result {
	return invoke(s.memAlloc, uintptr(unsafe.Pointer(memory)), uintptr(bytes))
}

func (s *symbols) cuMemFree_v2(memory address) result { return invoke(s.memFree, uintptr(memory)) }

func (s *symbols) cuMemAllocHost_v2(memory *unsafe.Pointer, bytes uint64) result {
	return invoke(s.memAllocHost, uintptr(unsafe.Pointer(memory)), uintptr(bytes))
}

func (s *symbols) cuMemFreeHost(memory unsafe.Pointer) result {
	return invoke(s.memFreeHost, uintptr(memory))
}

func (s *symbols) cuMemcpyHtoDAsync_v2(to address, from unsafe.Pointer, bytes uint64, stream handle) result {
	return invoke(s.memcpyHtoD, uintptr(to), uintptr(from), uintptr(bytes), uintptr(stream))
}

func (s *symbols) cuMemcpyDtoHAsync_v2(to unsafe.Pointer, from address, bytes uint64, stream handle) result {
	return invoke(s.memcpyDtoH, uintptr(to), uintptr(from), uintptr(bytes), uintptr(stream))
}

func (s *symbols) cuMemcpyDtoDAsync_v2(to, from address, bytes uint64, stream handle) result {
	return invoke(s.memcpyDtoD, uintptr(to), uintptr(from), uintptr(bytes), uintptr(stream))
}

func (s *symbols) cuMemsetD8Async(memory address, value uint8, bytes uint64, stream handle) result {
	return invoke(s.memset, uintptr(memory), uintptr(value), uintptr(bytes), uintptr(stream))
}

func (s *symbols) cuStreamCreate(stream *handle, flags uint32) result {
	return invoke(s.streamCreate, uintptr(unsafe.Pointer(stream)), uintptr(flags))
}

func (s *symbols) cuStreamDestroy_v2(stream handle) result {
	return invoke(s.streamDestroy, uintptr(stream))
}

func (s *symbols) cuStreamSynchronize(stream handle) result {
	return invokeOn(s.streamSynchronize, stream)
}

func (s *symbols) cuGraphCreate(graph *handle, flags uint32) result {
	return invoke(s.graphCreate, uintptr(unsafe.Pointer(graph)), uintptr(flags))
}

func (s *symbols) cuGraphAddKernelNode(node *handle, graph handle, dependencies *handle, count uint64, parameters *kernelNode) result {
	return invoke(s.graphAddKernelNode, uintptr(unsafe.Pointer(node)), uintptr(graph), uintptr(unsafe.Pointer(dependencies)), uintptr(count),
		uintptr(unsafe.Pointer(parameters)))
}

func (s *symbols) cuGraphAddDependencies_v2(graph handle, from, to *handle, edges *edgeData, count uint64) result {
	if s.graphAddDependencies == 0 {
		return notFound
	}
	return invoke(s.graphAddDependencies, uintptr(graph), uintptr(unsafe.Pointer(from)), uintptr(unsafe.Pointer(to)), uintptr(unsafe.Pointer(edges)),
		uintptr(count))
}

func (s *symbols) cuGraphInstantiateWithFlags(executable *handle, graph handle, flags uint64) result {
	return invoke(s.graphInstantiate, uintptr(unsafe.Pointer(executable)), uintptr(graph), uintptr(flags))
}

func (s *symbols) cuGraphLaunch(executable, stream handle) result {
	return invokeOn(s.graphLaunch, executable, stream)
}

func (s *symbols) cuGraphExecDestroy(executable handle) result {
	return invoke(s.graphExecDestroy, uintptr(executable))
}

func (s *symbols) cuGraphDestroy(graph handle) result { return invoke(s.graphDestroy, uintptr(graph)) }

func (s *symbols) cuModuleLoadDataEx(module *handle, image *byte, count uint32, options *jitOption, values *uintptr) result {
	return invoke(s.moduleLoad, uintptr(unsafe.Pointer(module)), uintptr(unsafe.Pointer(image)), uintptr(count),
		uintptr(unsafe.Pointer(options)), uintptr(unsafe.Pointer(values)))
}

func (s *symbols) cuModuleGetFunction(function *handle, module handle, name *byte) result {
	return invoke(s.moduleGetFunction, uintptr(unsafe.Pointer(function)), uintptr(module), uintptr(unsafe.Pointer(name)))
}

func (s *symbols) cuModuleUnload(module handle) result {
	return invoke(s.moduleUnload, uintptr(module))
}

func (s *symbols) cuFuncSetAttribute(function handle, attribute int32, value int32) result {
	return invoke(s.funcSetAttribute, uintptr(function), uintptr(attribute), uintptr(value))
}

func (s *symbols) cuFuncGetAttribute(value *int32, attribute int32, function handle) result {
	return invoke(s.funcGetAttribute, uintptr(unsafe.Pointer(value)), uintptr(attribute), uintptr(function))
}

func (s *symbols) cuLaunchKernel(function handle, grid, block [3]uint32, shared uint32, stream handle, parameters *unsafe.Pointer) result {
	return invoke(s.launchKernel, uintptr(function), uintptr(grid[0]), uintptr(grid[1]), uintptr(grid[2]),
		uintptr(block[0]), uintptr(block[1]), uintptr(block[2]), uintptr(shared), uintptr(stream), uintptr(unsafe.Pointer(parameters)), 0)
}
