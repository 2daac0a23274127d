package command

import (
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/internal/config"
)

// usage returns the error for a wrong command line or configuration.
func usage(format string, values ...any) error { return config.Usagef(format, values...) }

// noArguments returns an error if there are arguments other than flags.
func noArguments(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	return usage("pollen: %s takes no arguments, got %q", command.Name(), arguments[0])
}
