package tensor

import "golang.org/x/sys/unix"

// adviseHugePages asks for large pages. It is a wish: a kernel without them refuses, and a full
// memory has none left, either of which costs time only.
func adviseHugePages(memory []byte) { _ = unix.Madvise(memory, unix.MADV_HUGEPAGE) }
