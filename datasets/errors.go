package datasets

import (
	"fmt"
	"strings"

	"github.com/pkg/errors"
)

// OptionError is the error for an option that is invalid, or that the data cannot satisfy.
type OptionError struct {
	Option  string // the field of Options
	Problem string // "must be ..., got ..."
}

// Error names the option.
func (e *OptionError) Error() string { return "datasets: options: " + e.Option + ": " + e.Problem }

// ImageError is the reason why an image file could not be read.
type ImageError struct {
	File string // or the row of a Parquet file, as in "train.parquet[3]"
	Err  error
}

// Error names the file.
func (e ImageError) Error() string { return e.File + ": " + e.Err.Error() }

// Unwrap returns the reason.
func (e ImageError) Unwrap() error { return e.Err }

// NoClassesError is the error for images without classes. ReadImages may read them.
type NoClassesError struct {
	Path    string // a directory of images, or a file or directory of arrays or Parquet files
	Problem string // "must have ..."
}

// Error names the path, the accepted layouts and what was found.
func (e *NoClassesError) Error() string { return "datasets: " + e.Path + ": " + e.Problem }

// FewClassesError is the error for a directory with fewer classes than Options.MinClasses.
type FewClassesError struct {
	Data    string // its name
	Classes []string
	Min     int
}

// Error has the classes.
func (e *FewClassesError) Error() string {
	return fmt.Sprintf("datasets: %q must have at least %d classes, got %d: %q", e.Data, e.Min, len(e.Classes), e.Classes)
}

// NoSplitError is the error of Load for data that do not have the split.
type NoSplitError struct {
	Data  string
	Split Split
}

// Error names both.
func (e *NoSplitError) Error() string {
	return fmt.Sprintf("datasets: %s: must have a %s split, or a fraction of the images to draw for it", e.Data, e.Split)
}

// SkippedError is the error for more skipped files than Options.MaxSkipped allows.
type SkippedError struct {
	Subject string   // the directory, or the number of images
	Skipped []string // each "path: reason"
	Kept    int      // number of images that could be read
	Allowed float64  // the largest fraction that may be skipped
}

// Error has the first five of the skipped files.
func (e *SkippedError) Error() string {
	first := strings.Join(e.Skipped[:min(len(e.Skipped), 5)], "\n  ")
	all := len(e.Skipped) + e.Kept
	if e.Kept == 0 && all == 1 {
		return fmt.Sprintf("datasets: %s: must have a readable image, got an unreadable file:\n  %s", e.Subject, first)
	}
	if e.Kept == 0 {
		return fmt.Sprintf("datasets: %s: must have a readable image, got %d unreadable files. The first:\n  %s", e.Subject, all, first)
	}
	return fmt.Sprintf("datasets: %s: at most %g %% of the files may be skipped, got %d of %d. The first:\n  %s",
		e.Subject, 100*e.Allowed, len(e.Skipped), all, first)
}

func invalid(option, format string, values ...any) error {
	return errors.WithStack(&OptionError{option, strings.TrimPrefix(fmt.Sprintf(format, values...), "datasets: ")})
}
