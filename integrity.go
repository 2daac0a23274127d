package pollen

import (
	"fmt"

	"github.com/pkg/errors"
)

// Damaged is the error of a file of a run that is missing, or is not what was written. What is not
// damaged can still be used, see WithoutDamaged and Verify.
type Damaged struct {
	File  string
	Cause error
}

// Error names the file.
func (d *Damaged) Error() string { return fmt.Sprintf("pollen: %s: %v", d.File, d.Cause) }

// Unwrap returns what is wrong.
func (d *Damaged) Unwrap() error { return d.Cause }

func damaged(path string, cause error) error { return errors.WithStack(&Damaged{path, cause}) }

// WithoutDamaged goes on without samples that are damaged or missing, which are errors otherwise:
// Run.LeftOut names them, and the observer is told.
func WithoutDamaged() Option { return func(e *environment) { e.withoutDamaged = true } }
