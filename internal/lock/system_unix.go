//go:build unix

package lock

import (
	"os"
	"slices"
	"syscall"

	"github.com/pkg/errors"
)

// openFlags open the lock only if it is no symbolic link, and a FIFO without waiting for its other
// end.
const openFlags = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// unsupported reports whether an error means that a file system has no locks.
func unsupported(err error) bool {
	return slices.ContainsFunc([]error{syscall.ENOSYS, syscall.ENOLCK, syscall.ENOTSUP, syscall.EOPNOTSUPP, syscall.EINVAL},
		func(known error) bool { return errors.Is(err, known) })
}

// ended reports whether a process is known to have ended: one of this host that does not exist.
func ended(o Owner) bool {
	host, err := os.Hostname()
	return err == nil && host == o.Host && errors.Is(syscall.Kill(o.Process, 0), syscall.ESRCH)
}
