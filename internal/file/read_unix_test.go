//go:build unix

package file

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pkg/errors"
)

// A FIFO without a writer would block its reader, and /dev/zero has no end.
func TestReadRefusesDevices(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o644); err != nil {
		t.Skip(err)
	}
	for _, path := range []string{fifo, "/dev/zero", "/dev/null"} {
		if _, err := Read(path, MaxJSON); !errors.As(err, new(*IrregularError)) {
			t.Errorf("Read(%s): %v, want IrregularError", path, err)
		}
	}
	if _, err := Append(fifo); err == nil {
		t.Error("Append to a FIFO: no error")
	}
}
