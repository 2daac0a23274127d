//go:build darwin || freebsd

package memory

import (
	"math"
	"runtime"

	"golang.org/x/sys/unix"
)

// system returns the machine's memory: how much of it is available is unknown.
func system() Limit {
	name := map[string]string{"darwin": "hw.memsize", "freebsd": "hw.physmem"}[runtime.GOOS]
	bytes, err := unix.SysctlUint64(name)
	if err != nil || bytes > math.MaxInt64 {
		return unlimited
	}
	return Limit{int64(bytes), "the machine's memory"}
}
