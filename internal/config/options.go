package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/datasets"
)

// NameFlag names the flag where an option is wrong; other errors stay as they are.
func NameFlag(err error) error {
	var option datasets.OptionError
	if !errors.As(err, &option) {
		return err
	}
	err = Usagef("pollen: %s: %s", flagOf(option.Option), option.Problem)
	if option.Option == "Test" || option.Option == "Validation" {
		err = Usagef("%v; --test 0 or --validation 0 holds nothing out", err)
	}
	return err
}

// flagOf is the flag for a field of options: max-body for MaxBody.
func flagOf(field string) string {
	if field == "Height" {
		return "size"
	}
	return strings.ToLower(regexp.MustCompile("(.)([A-Z])").ReplaceAllString(field, "$1-$2"))
}

// RejectZeros refuses a 0 that was given for a flag where package serve takes 0 for another number.
func RejectZeros(given *pflag.FlagSet) (err error) {
	given.Visit(func(f *pflag.Flag) {
		zero := f.Value.String()
		if slices.Contains([]string{"batch", "max-body", "max-pixels", "timeout"}, f.Name) && (zero == "0" || zero == "0s") {
			err = Usagef("pollen: %s: %s, wants more than 0", f.Name, zero)
		}
	})
	return err
}
