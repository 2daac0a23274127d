//go:build !unix || race

package tensor

// isMapped reports whether mapBlock allocates outside of Go's heap. The race detector watches only
// memory of the heap.
const isMapped = false

// mapBlock returns n zeroed bytes of Go's heap.
func mapBlock(n int) ([]byte, error) { return make([]byte, n), nil }

// unmapBlock leaves the block to the garbage collector.
func unmapBlock([]byte) {}
