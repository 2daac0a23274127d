//go:build !windows

package file

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/pkg/errors"
)

// replace renames a file over another in the same directory, and puts the new name on the disk.
func replace(from, to string) error {
	dir, err := os.Open(filepath.Dir(to))
	if err != nil {
		return err
	}
	defer dir.Close()
	if _, err := ask(callRename, to, 0); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	if _, err = ask(callSyncDir, to, 0); err == nil {
		err = dir.Sync()
	}
	// Some network file systems cannot synchronise a directory, and report that the call is
	// invalid.
	if err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return errors.Wrap(err, "it is in its place, but may be lost when the power fails")
	}
	return nil
}
