package cuda

import (
	"fmt"

	"github.com/pkg/errors"
)

// minDriver is the first CUDA whose driver reads the kernels' PTX, as cuDriverGetVersion reports
// it: 11.8.
const minDriver = 11080

// versionString formats a version of CUDA, 1000 major + 10 minor, as "13.0".
func versionString(version int) string { return fmt.Sprintf("%d.%d", version/1000, version%1000/10) }

func tooOld(version int) error {
	return errors.Errorf("it supports CUDA %s, but the kernels need %s: update NVIDIA's driver", versionString(version), versionString(minDriver))
}
