package pollen

import (
	"fmt"

	"github.com/pkg/errors"
)

// InvalidError is the error of a specification, of data or of an option that makes no sense: the
// caller's mistake, found before any work is done.
type InvalidError struct{ error }

// Unwrap returns what is wrong.
func (e InvalidError) Unwrap() error { return e.error }

func invalid(format string, values ...any) error {
	return InvalidError{errors.Errorf("pollen: "+format, values...)}
}

// UnfinishedError, as a pointer, is the error of a run that ended before its last step: its context
// ended, or something failed. Its samples are kept, and Resume goes on from there, bit for bit.
type UnfinishedError struct {
	Dir         string
	Made, Steps int // made by now, and to be made
	Samples     int // kept in the folder
	Cause       error
}

// Error says how far the run came.
func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("pollen: %s stopped after %d of %d steps, %d samples kept: %v", e.Dir, e.Made, e.Steps, e.Samples, e.Cause)
}

// Unwrap returns why: the context's error, or what failed.
func (e *UnfinishedError) Unwrap() error { return e.Cause }

// NotARunError is the error of a folder that has no manifest.
type NotARunError struct {
	Dir   string
	Cause error
}

// Error names the folder.
func (e *NotARunError) Error() string {
	return fmt.Sprintf("pollen: %s is not a run's folder: %v", e.Dir, e.Cause)
}

// Unwrap returns why the manifest could not be read.
func (e *NotARunError) Unwrap() error { return e.Cause }

// DamagedError is the error of a file of a run that is missing or was changed. What is not damaged
// can still be used, see WithoutDamaged and Verify.
type DamagedError struct {
	File  string
	Cause error
}

// Error names the file.
func (d *DamagedError) Error() string { return fmt.Sprintf("pollen: %s: %v", d.File, d.Cause) }

// Unwrap returns what is wrong.
func (d *DamagedError) Unwrap() error { return d.Cause }

func damaged(path string, cause error) error { return errors.WithStack(&DamagedError{path, cause}) }
