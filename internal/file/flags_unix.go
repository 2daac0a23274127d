//go:build unix

package file

import "syscall"

// noWait opens a FIFO without waiting for its other end. noFollow refuses a symbolic link.
const (
	noWait   = syscall.O_NONBLOCK
	noFollow = syscall.O_NOFOLLOW
)
