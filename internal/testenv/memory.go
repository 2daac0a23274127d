package testenv

import (
	"os"

	"github.com/pollen-ml/pollen/internal/file"
)

// roomInMemory is the free memory from which on InMemory takes some of it.
const roomInMemory = 4 << 30

// InMemory makes temporary directories in memory, where the system has files there and room for
// them. It is for tests of whole runs, most of whose time is otherwise that of a disk: a run syncs
// each of its files before it writes the next.
func InMemory() {
	const dir = "/dev/shm" // on Linux
	if free, err := file.Free(dir); err == nil && free >= roomInMemory && os.Getenv("TMPDIR") == "" {
		os.Setenv("TMPDIR", dir)
	}
}
