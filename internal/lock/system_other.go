//go:build !unix

package lock

// openFlags do not exist here.
const openFlags = 0

// unsupported reports whether an error means that a file system has no locks, which is not known
// here.
func unsupported(error) bool { return false }

// ended reports whether a process is known to have ended, which is not known here.
func ended(Owner) bool { return false }
