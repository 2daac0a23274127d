package tensor

import "golang.org/x/sys/unix"

// adviseHugePages asks for huge pages. The error is ignored: the system may not support huge pages
// or have none left, and the program is then only slower.
func adviseHugePages(memory []byte) { _ = unix.Madvise(memory, unix.MADV_HUGEPAGE) }
