package datasets

import (
	"fmt"
	"strings"

	"github.com/pkg/errors"
)

// OptionError is the error of an option that makes no sense, or that the data cannot meet.
type OptionError struct {
	Option  string // the field of Options
	Problem string // what was got, and what is wanted
}

// Error names the option.
func (e OptionError) Error() string { return "datasets: options: " + e.Option + ": " + e.Problem }

// NoClassesError is the error of a folder in which nothing gives classes; ReadImages may read it.
type NoClassesError struct{ Dir string }

// Error says what was looked for.
func (e NoClassesError) Error() string {
	return "datasets: " + e.Dir + ": no class folders and no CSV file with a file and a class column, want a folder of pictures for each class"
}

func invalid(option, format string, values ...any) error {
	return errors.WithStack(OptionError{option, strings.TrimPrefix(fmt.Sprintf(format, values...), "datasets: ")})
}
