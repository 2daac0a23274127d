package rundir

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/pkg/errors"
)

// DamagedError is the error of a file of a run that is missing, was changed, or is a sample of a
// chain that diverged.
type DamagedError struct {
	File  string // its path
	Cause error
}

// Error names the file and the cause.
func (d *DamagedError) Error() string { return fmt.Sprintf("pollen: %s: %v", d.File, d.Cause) }

// Unwrap returns the cause.
func (d *DamagedError) Unwrap() error { return d.Cause }

// damaged returns a DamagedError, or the cause if it is already one of the same file.
func damaged(path string, cause error) error {
	if d := (*DamagedError)(nil); errors.As(cause, &d) && d.File == path {
		return cause
	}
	return errors.WithStack(&DamagedError{path, cause})
}

// LockedError is the error of writing to a directory that another process is writing to.
type LockedError struct {
	Dir     string
	Host    string // of the other process; "" if unknown
	Process int
	Cause   error
}

// Error names the other process.
func (b *LockedError) Error() string { return "pollen: " + b.Cause.Error() }

// Unwrap returns the cause.
func (b *LockedError) Unwrap() error { return b.Cause }

// NotARunError is the error of opening a directory that has no manifest.
type NotARunError struct {
	Dir   string
	Cause error
}

// Error names the directory.
func (e *NotARunError) Error() string {
	if errors.Is(e.Cause, os.ErrNotExist) {
		return fmt.Sprintf("pollen: %s is not the directory of a run: there is no %s", e.Dir, filepath.Join(e.Dir, ManifestFile))
	}
	return fmt.Sprintf("pollen: %s is not the directory of a run: %v", e.Dir, e.Cause)
}

// Unwrap returns why the manifest could not be read.
func (e *NotARunError) Unwrap() error { return e.Cause }

// notEmptyError is the error of a new run in a directory that has files. It is os.ErrExist.
type notEmptyError struct{ dir, advice string }

func (e *notEmptyError) Error() string {
	return "pollen: run directory " + e.dir + " is not empty" + e.advice
}

func (e *notEmptyError) Is(target error) bool { return target == os.ErrExist }
