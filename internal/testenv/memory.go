package testenv

import (
	"bytes"
	"os"

	"github.com/pollen-ml/pollen/internal/file"
)

// roomInMemory is the minimum free memory for InMemory to use it.
const roomInMemory = 4 << 30

// InMemory makes temporary directories in memory if the system has a file system there that has
// enough room and allows executing files. It is for tests of whole runs, which otherwise spend
// much of their time waiting for a disk: a run syncs each of its files before it writes the next.
func InMemory() {
	const dir = "/dev/shm" // on Linux
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil || os.Getenv("TMPDIR") != "" {
		return
	}
	_, options, found := bytes.Cut(mounts, []byte(" "+dir+" "))
	options, _, _ = bytes.Cut(options, []byte("\n"))
	if free, err := file.Free(dir); err == nil && free >= roomInMemory && found && !bytes.Contains(options, []byte("noexec")) {
		os.Setenv("TMPDIR", dir)
	}
}
