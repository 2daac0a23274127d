package command

import (
	"path/filepath"
	"slices"

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

func requireRuns(command *cobra.Command, runs []string) error {
	if len(runs) == 0 {
		return usage("pollen: %s needs the directory of at least one run", command.Name())
	}
	for i, run := range runs {
		if slices.ContainsFunc(runs[:i], func(other string) bool { return filepath.Clean(other) == filepath.Clean(run) }) {
			return usage("pollen: %s is given twice", run)
		}
	}
	return nil
}
