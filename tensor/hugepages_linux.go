package tensor

import "golang.org/x/sys/unix"

// adviseHugePages asks for huge pages. The error is ignored: a kernel without them refuses and a
// full memory has none left, and both cost only time.
func adviseHugePages(memory []byte) { _ = unix.Madvise(memory, unix.MADV_HUGEPAGE) }
