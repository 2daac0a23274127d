//go:build linux && !cu

package cuda

import (
	"os"

	"github.com/ebitengine/purego"
	"github.com/pkg/errors"
)

// libraryName is the driver library's soname.
const libraryName = "libcuda.so.1"

// openDriver opens the driver library at run time, without cgo, so that the same binary runs on
// machines that have none.
func openDriver(path string) (driver, string, error) {
	from := "from Options.Driver"
	if path == "" {
		path, from = os.Getenv(DriverVariable), "from "+DriverVariable
	}
	if path == "" {
		path, from = libraryName, "of NVIDIA's driver, searched in LD_LIBRARY_PATH and the system's directories; "+
			"a container has it when started with --gpus all; "+DriverVariable+" can name another file"
	}
	library, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, path, errors.Wrapf(err, "cuda: no driver library %s (%s)", path, from)
	}
	found, err := findSymbols(library)
	return found, path, errors.Wrapf(err, "cuda: driver library %s", path)
}
