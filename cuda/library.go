package cuda

import (
	"fmt"
	"os"
	"unsafe"

	"github.com/pkg/errors"
)

// DriverVariable names the environment variable that says which driver library to open.
const DriverVariable = "POLLEN_CUDA_DRIVER"

// minDriver is the first driver that reads the kernels' PTX, as cuDriverGetVersion writes it:
// CUDA 11.8.
const minDriver = 11080

// DriverError is a driver call that failed.
type DriverError struct {
	Call    string // "cuMemAlloc_v2"
	Code    int    // a CUresult
	Name    string // the driver's name for it, "CUDA_ERROR_OUT_OF_MEMORY"
	Message string // the driver's explanation
}

// Error implements error.
func (e *DriverError) Error() string {
	return fmt.Sprintf("cuda: %s: %s (%d): %s", e.Call, e.Name, e.Code, e.Message)
}

// library is an opened driver.
type library struct {
	driver
	path    string
	version int // of CUDA: 1000 major + 10 minor
}

// openLibrary opens and initialises a driver.
func openLibrary(path string) (*library, error) {
	d, path, err := openDriver(path)
	if err != nil {
		return nil, err
	}
	return newLibrary(d, path)
}

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

func tooOld(version int) error {
	return errors.Errorf("it is of CUDA %s, wants %s or later: update NVIDIA's driver", versionString(version), versionString(minDriver))
}

func (l *library) noGPU() error {
	hidden := ""
	if visible, set := os.LookupEnv("CUDA_VISIBLE_DEVICES"); set {
		hidden = fmt.Sprintf("; CUDA_VISIBLE_DEVICES is %q, which may hide some", visible)
	}
	return errors.Errorf("cuda: driver library %s of CUDA %s finds no GPU: nvidia-smi lists those of the machine%s", l.path, versionString(l.version), hidden)
}

// remedies are what to do if a driver does not start, a GPU is not available, or kernels cannot be
// compiled.
var hints = map[result]string{
	stubLibrary:        "this is the toolkit's stub, not the driver: take its folder out of LD_LIBRARY_PATH",
	deviceUnavailable:  "another process has the GPU for itself: nvidia-smi shows it, and the compute mode",
	noJITCompiler:      "the driver's compiler, libnvidia-ptxjitcompiler.so.1, is not installed beside it: a container has it with the capability compute",
	operatingSystem:    "the device files /dev/nvidia* cannot be used: look at their permissions, or start the container with --gpus all",
	notPermitted:       "this user may not use the GPU: look at the permissions of /dev/nvidia*",
	systemNotReady:     "the machine's GPUs are not started up yet: does the service nvidia-fabricmanager run?",
	driverMismatch:     "the library is of another version than the kernel's module: restart the machine after an update of the driver",
	compatNotSupported: "this GPU wants the driver's own library: take the compatibility package's folder out of LD_LIBRARY_PATH",
	unknownError:       "the kernel's module may not be loaded: does nvidia-smi work?",
}

// remedy is a colon and what to do about a result, if that is known.
func hint(code result) string {
	if text := hints[code]; text != "" {
		return ": " + text
	}
	return ""
}

// release is a version of CUDA as people write it.
func versionString(version int) string { return fmt.Sprintf("%d.%d", version/1000, version%1000/10) }

// check makes an error of a call's result: every call goes through it.
func (l *library) check(call string, code result) error {
	if code == success {
		return nil
	}
	e := &DriverError{Call: call, Code: int(code), Name: "an unknown error", Message: "the driver has no explanation"}
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

// cString is a C string in Go's memory.
func cString(text string) *byte { return unsafe.SliceData(append([]byte(text), 0)) }
