package file

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/pkg/errors"
)

// Appended is a file that grows. A kill may cut off what was written anywhere, and a power failure
// before Sync may lose it.
type Appended struct {
	path string
	file *os.File
}

// Append opens a regular file to write at its end, and creates it if there is none. A symbolic link
// is an error, since it may lead out of the directory.
func Append(path string) (*Appended, error) {
	if _, err := ask(CallCreate, path, 0); err != nil {
		return nil, errors.Wrapf(err, "file: append to %s", path)
	}
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.Errorf("file: append to %s: must be a regular file, got a %s", path, kind(info.Mode()))
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY|noWait|noFollow, 0o644)
	if err != nil {
		return nil, errors.Wrapf(err, "file: append to %s", path)
	}
	return &Appended{path, file}, nil
}

// Write adds to the content. It implements io.Writer.
func (a *Appended) Write(content []byte) (int, error) {
	n, err := write(a.file, a.path, content)
	return n, errors.Wrapf(err, "file: append to %s", a.path)
}

// Sync returns once all that was written is on the disk.
func (a *Appended) Sync() error {
	_, err := ask(CallSync, a.path, 0)
	if err == nil {
		err = a.file.Sync()
	}
	return errors.Wrapf(err, "file: append to %s", a.path)
}

// Close closes the file.
func (a *Appended) Close() error { return errors.Wrapf(a.file.Close(), "file: append to %s", a.path) }

// write writes to a file, unless a Fault tears it.
func write(to *os.File, path string, content []byte) (int, error) {
	if keep, err := ask(CallWrite, path, len(content)); err != nil {
		n, failed := to.Write(content[:min(max(keep, 0), len(content))])
		if failed != nil {
			err = failed
		}
		return n, err
	}
	return to.Write(content)
}

// Move renames a file within its directory, atomically, and replaces any file of the new name.
func Move(from, to string) error {
	if err := checkPlace(to); err != nil {
		return err
	}
	return errors.Wrapf(replace(from, to), "file: move %s to %s", from, to)
}

// IsReadOnly reports whether an error means that a process must not write at a path: it lacks the
// permission, or the file system is read-only.
func IsReadOnly(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)
}
