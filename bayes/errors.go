package bayes

import (
	"fmt"
	"strings"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/graph"
	"github.com/pollen-ml/pollen/internal/memory"
	"github.com/pollen-ml/pollen/internal/rundir"
	"github.com/pollen-ml/pollen/langevin"
	"github.com/pollen-ml/pollen/samples"
)

// InvalidError is the error of a specification, data or an option that is not valid. It is a
// mistake of the caller, found before any work is done, so that nothing needs to be cleaned up or
// resumed.
type InvalidError struct {
	// Cause names the field and what it must be.
	Cause error
}

// Error is the text of the cause.
func (e *InvalidError) Error() string { return e.Cause.Error() }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Cause }

// asInvalid returns err as an InvalidError, unless it already is one, or a DamagedError.
func asInvalid(err error) error {
	if errors.As(err, new(*InvalidError)) || errors.As(err, new(*DamagedError)) {
		return err
	}
	return &InvalidError{err}
}

func invalid(format string, values ...any) error {
	return &InvalidError{errors.Errorf("pollen: "+format, values...)}
}

// UnfinishedError is the error of a run that ended before its last step, because its context ended
// or something failed. Its samples are kept, and Resume continues it bit for bit. errors.Is(err,
// context.Canceled) distinguishes a stop from a failure.
type UnfinishedError struct {
	// Dir is the directory to pass to Resume.
	Dir string
	// Made is the number of steps made so far, of Steps.
	Made, Steps int
	// WarmEpochs is the number of epochs that an unfinished warm start has made.
	WarmEpochs int
	// Samples is the number of samples on disk, of all chains.
	Samples int
	// Cause is the context's error or what failed.
	Cause error
}

// Error reports how far the run came, and the cause.
func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("pollen: %s stopped after %d of %d steps, %d samples kept: %s", e.Dir, e.Made, e.Steps, e.Samples,
		strings.TrimPrefix(e.Cause.Error(), "pollen: "))
}

// Unwrap returns the cause.
func (e *UnfinishedError) Unwrap() error { return e.Cause }

// DivergedError is the error of a run whose numbers did not stay finite: a loss, a weight or a
// prediction was NaN or infinite, or a loss was far above the loss of guessing at the end. It is
// within an UnfinishedError. The samples that were kept before are finite and can be used. Resume
// would repeat the same steps, and fail in the same one.
type DivergedError struct {
	// Method is the name of the method, or of the optimizer of its warm start.
	Method string
	// Advice completes "start a new run with", such as "smaller learning rates".
	Advice string
	// Cause names the step, the chain, and what was not finite.
	Cause error
}

// Error names the method and the step, and what may help.
func (e *DivergedError) Error() string {
	return fmt.Sprintf("%s diverged: %v; resuming would repeat this: start a new run with %s", e.Method, e.Cause, e.Advice)
}

// Unwrap returns the cause.
func (e *DivergedError) Unwrap() error { return e.Cause }

// explodedError is the error of a chain that diverged although its metrics are finite up to the
// last step.
type explodedError struct {
	chain  int // in the session
	window langevin.Window
	cause  error
}

func (e *explodedError) Error() string { return e.cause.Error() }

func (e *explodedError) Unwrap() error { return e.cause }

// isNotFinite reports whether numbers that are not finite, or weights that exploded, caused an
// error.
func isNotFinite(err error) bool {
	return errors.As(err, new(*explodedError)) || errors.As(err, new(*graph.NotFinite)) || errors.As(err, new(*samples.NotFiniteError))
}

// DiskFullError is the error of a run that stopped before its disk was full. Its last checkpoint is
// whole, and Resume continues from there once there is room.
type DiskFullError struct {
	Dir            string
	Free, Required uint64 // bytes
}

// Error reports how much room there is.
func (d *DiskFullError) Error() string {
	return fmt.Sprintf("pollen: %s: the disk is nearly full: %.1f MB are free, and the next checkpoint needs %.1f MB",
		d.Dir, megabytes(d.Free), megabytes(d.Required))
}

func megabytes(bytes uint64) float64 { return float64(bytes) / 1e6 }

// NotARunError is the error of opening a directory, Dir, that has no manifest. Cause is the reason.
type NotARunError = rundir.NotARunError

// DamagedError is the error of a file of a run that is missing, was changed, or is a sample of a
// chain that diverged. File is its path, and Cause the reason. The other files can still be used,
// see WithoutDamaged and Verify.
type DamagedError = rundir.DamagedError

// LockedError is the error of writing to the directory Dir while another process writes there.
// Process is its number and Host its machine, "" if unknown. Reading the directory is still
// possible.
type LockedError = rundir.LockedError

// MemoryError is the error of a call that needs more memory than the process can take. Need and
// Limit are in bytes, and Advice lists settings that need less. It is returned before the work
// begins.
type MemoryError = memory.Error
