package file

import (
	"os"
	"path/filepath"
	"syscall"

	"github.com/pkg/errors"
)

// MakeDir creates a directory and those above it that are missing, with mode 0755 before the umask.
// If it returns no error, their names are on the disk, so that a power failure does not lose what
// is written in them. It is no error if the directory exists.
func MakeDir(dir string) error {
	dir = filepath.Clean(dir)
	if info, err := os.Stat(dir); err == nil {
		if info.IsDir() {
			return nil
		}
		return errors.WithStack(&os.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR})
	}
	above := filepath.Dir(dir)
	if above != dir {
		if err := MakeDir(above); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		if info, stat := os.Stat(dir); stat == nil && info.IsDir() { // another process made it
			return nil
		}
		return errors.WithStack(err)
	}
	return errors.Wrapf(syncDir(above, dir), "file: create %s", dir)
}
