//go:build linux && cu

package cuda

import (
	"reflect"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/pkg/errors"
	"gorgonia.org/cu"
)

// linkedDriver calls the driver through gorgonia.org/cu, for programs that use one of its contexts.
// It makes the calls that package cu lacks by the function's address in the library that the
// program is linked to. Package cu initializes the driver when the program starts, and ends the
// program if that fails.
type linkedDriver struct{ *symbols }

func openDriver(path string) (driver, string, error) {
	if path != "" {
		return nil, path, errors.Errorf("cuda: driver library %s: this program was built with -tags cu, is linked to its driver and cannot open another", path)
	}
	path = "libcuda.so.1, which the program is linked to"
	found, err := findSymbols(purego.RTLD_DEFAULT)
	return linkedDriver{found}, path, errors.Wrapf(err, "cuda: driver library %s", path)
}

// codeOf returns the CUresult in an error of package cu, which does not export the error's type.
func codeOf(err error) result {
	if err == nil {
		return success
	}
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int {
		return result(v.Int())
	}
	return unknownError
}

// as converts between a driver handle and an object of package cu, a struct whose only content is
// the handle.
func as[To, From any](from From) To { return *(*To)(unsafe.Pointer(&from)) }

func (linkedDriver) cuDriverGetVersion(version *int32) result {
	*version = int32(cu.Version())
	return success
}

func (linkedDriver) cuDeviceGetCount(count *int32) result {
	n, err := cu.NumDevices()
	*count = int32(n)
	return codeOf(err)
}

func (linkedDriver) cuDeviceGet(device *int32, ordinal int32) result {
	d, err := cu.GetDevice(int(ordinal))
	*device = int32(d)
	return codeOf(err)
}

func (linkedDriver) cuDeviceGetName(name *byte, length int32, device int32) result {
	text, err := cu.Device(device).Name()
	copy(unsafe.Slice(name, length), text)
	return codeOf(err)
}

func (linkedDriver) cuDeviceGetAttribute(value *int32, attribute attribute, device int32) result {
	v, err := cu.Device(device).Attribute(cu.DeviceAttribute(attribute))
	*value = int32(v)
	return codeOf(err)
}

func (linkedDriver) cuDeviceTotalMem_v2(bytes *uint64, device int32) result {
	n, err := cu.Device(device).TotalMem()
	*bytes = uint64(n)
	return codeOf(err)
}

func (linkedDriver) cuDevicePrimaryCtxRetain(context *handle, device int32) result {
	c, err := cu.Device(device).RetainPrimaryCtx()
	*context = as[handle](c)
	return codeOf(err)
}

func (linkedDriver) cuDevicePrimaryCtxRelease_v2(device int32) result {
	return codeOf(cu.Device(device).ReleasePrimaryCtx())
}

func (linkedDriver) cuCtxSetCurrent(context handle) result {
	return codeOf(cu.SetCurrentContext(as[cu.CUContext](context)))
}

func (linkedDriver) cuMemGetInfo_v2(free, total *uint64) result {
	f, t, err := cu.MemInfo()
	*free, *total = uint64(f), uint64(t)
	return codeOf(err)
}

func (linkedDriver) cuMemAlloc_v2(memory *address, bytes uint64) result {
	m, err := cu.MemAlloc(int64(bytes))
	*memory = address(m)
	return codeOf(err)
}

func (linkedDriver) cuMemFree_v2(memory address) result {
	return codeOf(cu.MemFree(cu.DevicePtr(memory)))
}

func (linkedDriver) cuMemFreeHost(memory unsafe.Pointer) result {
	return codeOf(cu.MemFreeHost(memory))
}

func (linkedDriver) cuMemcpyHtoDAsync_v2(to address, from unsafe.Pointer, bytes uint64, stream handle) result {
	return codeOf(cu.MemcpyHtoDAsync(cu.DevicePtr(to), from, int64(bytes), as[cu.Stream](stream)))
}

func (linkedDriver) cuMemcpyDtoHAsync_v2(to unsafe.Pointer, from address, bytes uint64, stream handle) result {
	return codeOf(cu.MemcpyDtoHAsync(to, cu.DevicePtr(from), int64(bytes), as[cu.Stream](stream)))
}

func (linkedDriver) cuMemcpyDtoDAsync_v2(to, from address, bytes uint64, stream handle) result {
	return codeOf(cu.MemcpyDtoDAsync(cu.DevicePtr(to), cu.DevicePtr(from), int64(bytes), as[cu.Stream](stream)))
}

func (linkedDriver) cuMemsetD8Async(memory address, value uint8, bytes uint64, stream handle) result {
	return codeOf(cu.MemsetD8Async(cu.DevicePtr(memory), value, int64(bytes), as[cu.Stream](stream)))
}

func (linkedDriver) cuStreamCreate(stream *handle, flags uint32) result {
	s, err := cu.MakeStream(cu.StreamFlags(flags))
	*stream = as[handle](s)
	return codeOf(err)
}

func (linkedDriver) cuStreamDestroy_v2(stream handle) result {
	s := as[cu.Stream](stream)
	return codeOf(s.Destroy())
}

func (linkedDriver) cuStreamSynchronize(stream handle) result {
	return codeOf(as[cu.Stream](stream).Synchronize())
}

func (linkedDriver) cuModuleLoadDataEx(module *handle, image *byte, count uint32, options *jitOption, values *uintptr) result {
	var log []byte
	for i, option := range unsafe.Slice(options, count) {
		if option == errorLog {
			at := as[*byte](unsafe.Slice(values, count)[i])
			log = unsafe.Slice(at, jitLogBytes)
		}
	}
	m, err := cu.LoadDataEx(goString(unsafe.Pointer(image)), &cu.JITErrorLogBuffer{Buffer: log})
	*module = as[handle](m)
	return codeOf(err)
}

func (linkedDriver) cuModuleGetFunction(function *handle, module handle, name *byte) result {
	f, err := as[cu.Module](module).Function(goString(unsafe.Pointer(name)))
	*function = as[handle](f)
	return codeOf(err)
}

func (linkedDriver) cuModuleUnload(module handle) result {
	return codeOf(as[cu.Module](module).Unload())
}
