//go:build linux && !cu

package cuda

import (
	"os"

	"github.com/ebitengine/purego"
	"github.com/pkg/errors"
)

// libraryName is what NVIDIA's driver installs.
const libraryName = "libcuda.so.1"

// openDriver opens the driver library at run time, without cgo: the same binary also runs where
// there is none.
func openDriver(path string) (driver, string, error) {
	from := "as asked for"
	if path == "" {
		path, from = os.Getenv(DriverVariable), "as "+DriverVariable+" says"
	}
	if path == "" {
		path, from = libraryName, "of NVIDIA's driver, looked for in LD_LIBRARY_PATH and the system's folders; "+
			"a container has it when started with --gpus all; "+DriverVariable+" can name another"
	}
	library, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, path, errors.Wrapf(err, "cuda: no driver library %s (%s)", path, from)
	}
	found, err := findSymbols(library)
	return found, path, errors.Wrapf(err, "cuda: driver library %s", path)
}
