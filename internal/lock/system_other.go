//go:build !unix

package lock

// unsupported reports whether an error says that a file system has no locks: none is known to here.
func unsupported(error) bool { return false }

// ended reports whether a process is known to be no more, which cannot be told here.
func ended(Owner) bool { return false }
