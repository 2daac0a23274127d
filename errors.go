package pollen

import (
	"fmt"

	"github.com/pkg/errors"
)

// Invalid is the error of a specification, of data or of an option that makes no sense: the
// caller's mistake, found before any work is done.
type Invalid struct{ error }

// Unwrap returns what is wrong.
func (e Invalid) Unwrap() error { return e.error }

func invalid(format string, values ...any) error {
	return Invalid{errors.Errorf("pollen: "+format, values...)}
}

// Unfinished, as a pointer, is the error of a run that ended before its last step: its context
// ended, or something failed. Its samples are kept, and Resume goes on from there, bit for bit.
type Unfinished struct {
	Folder      string
	Made, Steps int // made by now, and to be made
	Samples     int // kept in the folder
	Cause       error
}

// Error says how far the run came.
func (e *Unfinished) Error() string {
	return fmt.Sprintf("pollen: %s stopped after %d of %d steps, %d samples kept: %v", e.Folder, e.Made, e.Steps, e.Samples, e.Cause)
}

// Unwrap returns why: the context's error, or what failed.
func (e *Unfinished) Unwrap() error { return e.Cause }

// NotARun is the error of a folder that has no manifest.
type NotARun struct {
	Folder string
	Cause  error
}

// Error names the folder.
func (e *NotARun) Error() string {
	return fmt.Sprintf("pollen: %s is not a run's folder: %v", e.Folder, e.Cause)
}

// Unwrap returns why the manifest could not be read.
func (e *NotARun) Unwrap() error { return e.Cause }

// Damaged is the error of a file of a run that is missing or was changed. What is not damaged can
// still be used, see WithoutDamaged and Verify.
type Damaged struct {
	File  string
	Cause error
}

// Error names the file.
func (d *Damaged) Error() string { return fmt.Sprintf("pollen: %s: %v", d.File, d.Cause) }

// Unwrap returns what is wrong.
func (d *Damaged) Unwrap() error { return d.Cause }

func damaged(path string, cause error) error { return errors.WithStack(&Damaged{path, cause}) }
