package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// FlagOf is the flag for a field of the options of packages datasets and serve: max-body for
// MaxBody.
func FlagOf(field string) string {
	if field == "Height" {
		return "size"
	}
	return strings.ToLower(regexp.MustCompile("(.)([A-Z])").ReplaceAllString(field, "$1-$2"))
}

// RefuseZeros refuses a 0 that was given for a flag where package serve takes 0 for another number.
func RefuseZeros(given *pflag.FlagSet) (err error) {
	given.Visit(func(f *pflag.Flag) {
		zero := f.Value.String()
		if slices.Contains([]string{"batch", "max-body", "max-pixels", "timeout"}, f.Name) && (zero == "0" || zero == "0s") {
			err = Mistake("train: %s: %s, wants more than 0", f.Name, zero)
		}
	})
	return err
}
