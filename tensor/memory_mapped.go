//go:build unix && !race

package tensor

import "golang.org/x/sys/unix"

// isMapped reports whether mapBlock allocates outside of Go's heap.
const isMapped = true

// mapBlock returns n zeroed bytes from the system.
func mapBlock(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// unmapBlock returns a block of mapBlock to the system. It cannot fail for such a block.
func unmapBlock(block []byte) { _ = unix.Munmap(block) }
