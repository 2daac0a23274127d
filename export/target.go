package export

import (
	"os"
	"path/filepath"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/file"
)

// CheckTarget returns an error if an export cannot be written to path: a file, or a directory that
// must be new or empty. It is for callers that read images first, which takes time.
func CheckTarget(path string, isDir bool) error {
	if isDir {
		return checkNew(path)
	}
	return checkWritable(path)
}

// checkNew returns an error unless a directory is new or empty, and can be made.
func checkNew(dir string) error {
	partial, err := newPartial(dir)
	if err != nil {
		return err
	}
	return errors.Wrap(os.Remove(partial), "export")
}

// checkWritable returns an error if a file cannot be written.
func checkWritable(path string) error {
	pending, err := file.Create(path)
	if err != nil {
		return cannotWrite(path, err)
	}
	return errors.Wrap(pending.Close(), "export")
}

// cannotWrite wraps an error about a temporary file or directory, whose name means nothing to the
// user, in one about the target.
func cannotWrite(path string, err error) error {
	var failed *os.PathError
	if errors.As(err, &failed) {
		err = failed.Err
	}
	return errors.Wrapf(err, "export: cannot write %s", path)
}

// newPartial makes a directory next to dir, which must be new or empty.
func newPartial(dir string) (partial string, err error) {
	dir = filepath.Clean(dir) // it may end in a slash
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return "", invalid("%s must be a directory, got a file", dir)
	}
	if name := filepath.Base(dir); name == "." || name == ".." {
		return "", invalid("%s must be another directory than the working directory and those above it, which cannot be replaced", dir)
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return "", invalid("%s must be new or empty", dir)
	}
	if partial, err = os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+".*.partial"); err != nil {
		return "", cannotWrite(dir, err)
	}
	return partial, nil
}

// intoNew calls write with a new directory next to dir, and then renames it to dir, which must be
// new or empty.
func intoNew(dir string, write func(dir string) error) error {
	partial, err := newPartial(dir)
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	if err := write(partial); err != nil {
		return err
	}
	if err := os.Chmod(partial, 0o755); err != nil {
		return errors.Wrap(err, "export")
	}
	dir = filepath.Clean(dir)
	if err := os.Remove(dir); err != nil && !os.IsNotExist(err) {
		return errors.Wrap(err, "export")
	}
	return errors.Wrap(os.Rename(partial, dir), "export")
}
