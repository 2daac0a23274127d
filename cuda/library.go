package cuda

import (
	"fmt"
	"os"
	"unsafe"

	"github.com/pkg/errors"
)

// DriverError is the error of a driver call.
type DriverError struct {
	Call    string // such as "cuMemAlloc_v2"
	Code    int    // a CUresult
	Name    string // the driver's name for it, such as "CUDA_ERROR_OUT_OF_MEMORY"
	Message string // the driver's description
}

// Error implements error.
func (e *DriverError) Error() string {
	return fmt.Sprintf("cuda: %s: %s (%d): %s", e.Call, e.Name, e.Code, e.Message)
}

// library is an initialized driver library.
type library struct {
	driver
	path    string
	version int // the newest CUDA that the driver supports: 1000 major + 10 minor
}

// openLibrary opens and initializes a driver library.
func openLibrary(path string) (*library, error) {
	d, path, err := openDriver(path)
	if err != nil {
		return nil, err
	}
	return newLibrary(d, path)
}

// newLibrary checks a driver's version and initializes it.
func newLibrary(d driver, path string) (*library, error) {
	l := &library{driver: d, path: path}
	var version int32
	code := l.cuDriverGetVersion(&version)
	if err := l.check("cuDriverGetVersion", code); err != nil {
		return nil, errors.Wrapf(err, "cuda: driver library %s%s", path, hint(code))
	}
	l.version = int(version)
	if l.version < minDriver {
		return nil, errors.Wrapf(tooOld(l.version), "cuda: driver library %s", path)
	}
	code = l.cuInit(0)
	if code == noDevice {
		return nil, l.noGPU()
	}
	if err := l.check("cuInit", code); err != nil {
		return nil, errors.Wrapf(err, "cuda: driver library %s of CUDA %s%s", path, versionString(l.version), hint(code))
	}
	return l, nil
}

// noGPU returns the error of a driver that finds no GPU. It mentions CUDA_VISIBLE_DEVICES, a cause
// that users overlook.
func (l *library) noGPU() error {
	hidden := ""
	if visible, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set {
		hidden = fmt.Sprintf("; CUDA_VISIBLE_DEVICES is %q, which may hide GPUs", visible)
	}
	return errors.Errorf("cuda: driver library %s of CUDA %s finds no GPU; nvidia-smi lists the machine's GPUs%s", l.path, versionString(l.version), hidden)
}

// hints has advice for a driver that does not start, a GPU that is not available, and kernels that
// cannot be compiled.
var hints = map[result]string{
	stubLibrary:       "this is the toolkit's stub, not the driver: remove its directory from LD_LIBRARY_PATH",
	deviceUnavailable: "another process uses the GPU exclusively: nvidia-smi shows processes and the compute mode",
	noJITCompiler: "the driver's compiler, libnvidia-ptxjitcompiler.so.1, is not installed next to the driver library: " +
		"a container has it with the driver capability compute",
	operatingSystem:    "the device files /dev/nvidia* cannot be used: check their permissions, or start the container with --gpus all",
	notPermitted:       "this user may not use the GPU: check the permissions of /dev/nvidia*",
	systemNotReady:     "the machine's GPUs are not initialized yet: check that the service nvidia-fabricmanager runs",
	driverMismatch:     "the library and the kernel module have different versions: restart the machine after a driver update",
	compatNotSupported: "this GPU does not support CUDA's compatibility package: remove its directory from LD_LIBRARY_PATH",
	unknownError:       "the kernel module may not be loaded: check that nvidia-smi works",
}

// hint returns a colon and the advice about a result, or "" if there is none.
func hint(code result) string {
	if text := hints[code]; text != "" {
		return ": " + text
	}
	return ""
}

// check turns a call's result into a *DriverError. Every call of the driver goes through it.
func (l *library) check(call string, code result) error {
	if code == success {
		return nil
	}
	e := &DriverError{Call: call, Code: int(code), Name: "unknown error", Message: "the driver has no description of it"}
	var text unsafe.Pointer
	if l.cuGetErrorName(code, &text) == success && text != nil {
		e.Name = goString(text)
	}
	if l.cuGetErrorString(code, &text) == success && text != nil {
		e.Message = goString(text)
	}
	return e
}

// goString copies a C string.
func goString(text unsafe.Pointer) string {
	n := 0
	for *(*byte)(unsafe.Add(text, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(text), n))
}

// cString returns a C string in Go's memory. The driver does not keep it beyond a call.
func cString(text string) *byte { return unsafe.SliceData(append([]byte(text), 0)) }
