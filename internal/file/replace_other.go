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
	if _, err := ask(CallRename, to, 0); err != nil {
		return err
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncOpened(dir, to)
}

// syncDir puts the names in a directory on the disk; changed is the new one.
func syncDir(path, changed string) error {
	dir, err := os.Open(path)
	if os.IsPermission(err) {
		return nil // a directory that may be written but not read cannot be synchronised
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	return syncOpened(dir, changed)
}

// syncOpened is syncDir of an open directory.
func syncOpened(dir *os.File, changed string) error {
	_, err := ask(CallSyncDir, changed, 0)
	if err == nil {
		err = dir.Sync()
	}
	// Some network file systems cannot synchronise a directory, and report that the call is
	// invalid.
	if err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOTSUP) {
		return errors.Wrap(err, "it is in its place, but may be lost when the power fails")
	}
	return nil
}
