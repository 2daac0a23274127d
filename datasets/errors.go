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
func (e OptionError) Error() string { return "datasets: options: " + e.Option + ": " + e.Problem }

// NoClassesError is the error for a directory whose images have no classes. ReadImages may read it.
type NoClassesError struct{ Dir string }

// Error names the directory and the accepted layouts.
func (e NoClassesError) Error() string {
	return "datasets: " + e.Dir + ": must have a directory of images for each class, or a CSV file with columns of files and classes"
}

func invalid(option, format string, values ...any) error {
	return errors.WithStack(OptionError{option, strings.TrimPrefix(fmt.Sprintf(format, values...), "datasets: ")})
}
