//go:build linux || darwin || freebsd

package file

import (
	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// Free is how many bytes can be written into a folder before its disk is full.
func Free(folder string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, errors.Wrapf(err, "file: free space of %s", folder)
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
