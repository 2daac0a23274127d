//go:build !linux

package cuda

import (
	"runtime"

	"github.com/pkg/errors"
)

func openDriver(path string) (driver, string, error) {
	return nil, path, errors.Errorf("cuda: the device is supported only on Linux, this is %s", runtime.GOOS)
}
