package cuda

import "unsafe"

// driver is the part of NVIDIA's driver API that the device uses. Its methods have the names of the
// library's versioned symbols and their arguments in the same order. Results are written through
// pointers before a method returns. Memory that an asynchronous copy reads or writes must stay
// valid until the stream has been synchronized.
type driver interface {
	cuInit(flags uint32) result
	cuDriverGetVersion(version *int32) result
	cuGetErrorName(code result, name *unsafe.Pointer) result
	cuGetErrorString(code result, text *unsafe.Pointer) result

	cuDeviceGetCount(count *int32) result
	cuDeviceGet(device *int32, ordinal int32) result
	cuDeviceGetName(name *byte, length int32, device int32) result
	cuDeviceGetAttribute(value *int32, attribute attribute, device int32) result
	cuDeviceTotalMem_v2(bytes *uint64, device int32) result

	cuDevicePrimaryCtxRetain(context *handle, device int32) result
	cuDevicePrimaryCtxRelease_v2(device int32) result
	cuCtxSetCurrent(context handle) result

	cuMemGetInfo_v2(free, total *uint64) result
	cuMemAlloc_v2(memory *address, bytes uint64) result
	cuMemFree_v2(memory address) result
	cuMemAllocHost_v2(memory *unsafe.Pointer, bytes uint64) result
	cuMemFreeHost(memory unsafe.Pointer) result
	cuMemcpyHtoDAsync_v2(to address, from unsafe.Pointer, bytes uint64, stream handle) result
	cuMemcpyDtoHAsync_v2(to unsafe.Pointer, from address, bytes uint64, stream handle) result
	cuMemcpyDtoDAsync_v2(to, from address, bytes uint64, stream handle) result
	cuMemsetD8Async(memory address, value uint8, bytes uint64, stream handle) result

	cuStreamCreate(stream *handle, flags uint32) result
	cuStreamDestroy_v2(stream handle) result
	cuStreamSynchronize(stream handle) result

	cuGraphCreate(graph *handle, flags uint32) result
	cuGraphAddKernelNode(node *handle, graph handle, dependencies *handle, count uint64, parameters *kernelNode) result
	cuGraphAddDependencies_v2(graph handle, from, to *handle, edges *edgeData, count uint64) result
	cuGraphInstantiateWithFlags(executable *handle, graph handle, flags uint64) result
	cuGraphLaunch(executable, stream handle) result
	cuGraphExecDestroy(executable handle) result
	cuGraphDestroy(graph handle) result

	cuModuleLoadDataEx(module *handle, image *byte, count uint32, options *jitOption, values *uintptr) result
	cuModuleGetFunction(function *handle, module handle, name *byte) result
	cuModuleUnload(module handle) result
	cuFuncSetAttribute(function handle, attribute int32, value int32) result
	cuFuncGetAttribute(value *int32, attribute int32, function handle) result
	cuLaunchKernel(function handle, grid, block [3]uint32, shared uint32, stream handle, parameters *unsafe.Pointer) result
}

// result is a CUresult.
type result int32

// handle is a driver object: a context, stream, module, function, graph, or node of a graph.
type handle uintptr

// kernelNode is the CUDA_KERNEL_NODE_PARAMS from before CUDA 12, which the unversioned
// cuGraphAddKernelNode takes. The driver copies the values that parameters points to.
type kernelNode struct {
	function    handle
	grid, block [3]uint32
	shared      uint32 // bytes of dynamic shared memory
	parameters  *unsafe.Pointer
	extra       unsafe.Pointer // always nil: another way to pass parameters
}

// address is a CUdeviceptr.
type address uint64

// attribute is a CUdevice_attribute.
type attribute int32

// jitOption is a CUjit_option.
type jitOption int32

// Values of the driver's enumerations: CUresult, CUdevice_attribute, CUjit_option, CUstream_flags
// and CUfunction_attribute.
const (
	success              result    = 0
	invalidValue         result    = 1
	outOfMemory          result    = 2
	deinitialized        result    = 4
	stubLibrary          result    = 34
	deviceUnavailable    result    = 46
	noDevice             result    = 100
	eccUncorrectable     result    = 214
	nvlinkUncorrectable  result    = 220
	noJITCompiler        result    = 221
	contained            result    = 226
	operatingSystem      result    = 304
	notFound             result    = 500
	illegalAddress       result    = 700
	launchTimeout        result    = 702
	contextIsDestroyed   result    = 709
	assertion            result    = 710
	hardwareStackError   result    = 714
	illegalInstruction   result    = 715
	misalignedAddress    result    = 716
	invalidAddressSpace  result    = 717
	invalidProgramCount  result    = 718
	launchFailed         result    = 719
	notPermitted         result    = 800
	systemNotReady       result    = 802
	driverMismatch       result    = 803
	compatNotSupported   result    = 804
	unknownError         result    = 999
	multiprocessorCount  attribute = 16
	capabilityMajor      attribute = 75
	capabilityMinor      attribute = 76
	sharedMemoryPerBlock attribute = 97 // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: the most that cuFuncSetAttribute may allow a kernel

	infoLog       jitOption = 3
	infoLogBytes  jitOption = 4
	errorLog      jitOption = 5
	errorLogBytes jitOption = 6
	logVerbose    jitOption = 12

	streamNonBlocking = 1

	// CUfunction_attribute. Local memory is where registers spill to.
	maxThreadsPerBlock  = 0
	staticSharedMemory  = 1
	localMemory         = 3
	registersPerThread  = 4
	dynamicSharedMemory = 8
)

// fatal lists the results after which every call in the context fails with the same error. The GPU
// can be used again only with a new context, usually of another process.
var fatal = map[result]bool{
	deinitialized: true, eccUncorrectable: true, nvlinkUncorrectable: true, illegalAddress: true, launchTimeout: true,
	contained: true, contextIsDestroyed: true, assertion: true, hardwareStackError: true, illegalInstruction: true, misalignedAddress: true,
	invalidAddressSpace: true, invalidProgramCount: true, launchFailed: true, systemNotReady: true, unknownError: true,
}

// edgeData is a CUgraphEdgeData: the port of the first node, the port of the second, and the edge's
// type.
type edgeData struct {
	from, to, kind uint8
	reserved       [5]uint8
}
