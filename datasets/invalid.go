package datasets

import (
	"fmt"
	"strings"

	"github.com/pkg/errors"
)

// Invalid is the error of an option that makes no sense, or that the data cannot meet.
type Invalid struct {
	Option  string // the field of Options
	Problem string // what was got, and what is wanted
}

// Error names the option.
func (e Invalid) Error() string { return "datasets: options: " + e.Option + ": " + e.Problem }

func invalid(option, format string, values ...any) error {
	return errors.WithStack(Invalid{option, strings.TrimPrefix(fmt.Sprintf(format, values...), "datasets: ")})
}
