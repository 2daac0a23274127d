package command

import (
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen/internal/config"
)

// usage returns the error for a wrong command line or configuration.
func usage(format string, values ...any) error { return config.Usagef(format, values...) }

// noArguments returns an error if there are arguments other than flags.
func noArguments(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 {
		return nil
	}
	hint := ""
	if command.Flags().Lookup("data") != nil {
		hint = "; --data names the data"
	}
	return usage("pollen: %s takes no arguments, got %q%s", command.Name(), arguments[0], hint)
}

// repeatedFlag returns the command that the arguments name, and an error if they have a flag twice
// that is not a list: all of its values except the last would be lost. It leaves other mistakes to
// the command, and shows help or the version in any case.
func repeatedFlag(root *cobra.Command, arguments []string) (*cobra.Command, error) {
	command, arguments, err := root.Find(arguments)
	if err != nil {
		return command, nil
	}
	command.InitDefaultHelpFlag()
	command.InitDefaultVersionFlag()
	seen := map[*pflag.Flag]bool{}
	var repeated *pflag.Flag
	shows := false
	_ = command.Flags().ParseAll(arguments, func(f *pflag.Flag, value string) error {
		shows = shows || (f.Name == "help" || f.Name == "version") && value == "true"
		if _, list := f.Value.(pflag.SliceValue); seen[f] && !list && repeated == nil {
			repeated = f
		}
		seen[f] = true
		return nil
	})
	if repeated == nil || shows {
		return command, nil
	}
	return command, usage("pollen: --%s is given twice", repeated.Name)
}

func requireRun(command *cobra.Command, runs []string) error {
	if len(runs) != 1 {
		return usage("pollen: %s needs the directory of one run", command.Name())
	}
	return nil
}

func requireRuns(command *cobra.Command, runs []string) error {
	if len(runs) == 0 {
		return usage("pollen: %s needs the directory of at least one run", command.Name())
	}
	for i, run := range runs {
		if among(runs[:i], run) >= 0 {
			return usage("pollen: %s is given twice", run)
		}
	}
	return nil
}

// among returns the position of a directory among others, however its path is written, or -1.
func among(dirs []string, dir string) int {
	return slices.IndexFunc(dirs, func(other string) bool { return filepath.Clean(other) == filepath.Clean(dir) })
}
