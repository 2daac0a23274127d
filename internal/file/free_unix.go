//go:build linux || darwin || freebsd

package file

import (
	"github.com/pkg/errors"
	"golang.org/x/sys/unix"
)

// Free returns how many bytes can be written into a directory before its disk is full.
func Free(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, errors.Wrapf(err, "file: free space of %s", dir)
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
