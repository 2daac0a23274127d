package config

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/datasets"
)

// FlagError turns an error of pflag into a UsageError that suggests another flag for an unknown
// one, or states what the flag's value must be.
func FlagError(flags *pflag.FlagSet, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		if strings.HasPrefix(unknown.GetSpecifiedName(), "temperature") { // of other programs' calibration
			return Usagef("pollen: %v: fit and calibrate scale probabilities without a flag, and --unscaled of predict, serve and export leaves them as they are; "+
				"fit --temperature samples a tempered posterior", err)
		}
		return Usagef("pollen: %v%s", err, hint(flags, unknown.GetSpecifiedName()))
	case errors.As(err, &invalid):
		return Usagef("pollen: --%s must be %s, got %q", invalid.GetFlag().Name, typeName(invalid.GetFlag()), invalid.GetValue())
	default:
		return Usagef("pollen: %v", err)
	}
}

// NameFlag turns a datasets.OptionError into a UsageError that names the flag. Other errors are
// returned unchanged.
func NameFlag(err error) error {
	var option *datasets.OptionError
	if !errors.As(err, &option) {
		return err
	}
	err = Usagef("pollen: %s: %s", flagOf(option.Option), option.Problem)
	if option.Option == "Test" || option.Option == "Validation" {
		err = Usagef("%v; --test 0 or --validation 0 disables the split", err)
	}
	return err
}

// flagOf returns the name of the flag for a field of options: max-body for MaxBody,
// tls-cert for TLSCert.
func flagOf(field string) string {
	switch field {
	case "Height":
		return "size"
	case "Hosts", "CORSOrigins":
		field = strings.TrimSuffix(field, "s")
	}
	field = regexp.MustCompile("([A-Z])([A-Z][a-z])").ReplaceAllString(field, "$1-$2") // TLSCert
	return strings.ToLower(regexp.MustCompile("([a-z])([A-Z])").ReplaceAllString(field, "$1-$2"))
}

// RejectZeros returns an error if a flag of serve was set to 0, which package serve would replace
// by the default.
func RejectZeros(given *pflag.FlagSet) (err error) {
	given.Visit(func(f *pflag.Flag) {
		value := f.Value.String()
		if slices.Contains([]string{"batch", "max-body", "max-pixels", "timeout"}, f.Name) && (value == "0" || value == "0s") {
			err = Usagef("pollen: %s: must be positive, got %s", f.Name, value)
		}
	})
	return err
}
