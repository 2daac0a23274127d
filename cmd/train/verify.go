package main

import (
	"fmt"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen"
)

func verifyCommand(c *console) *cobra.Command {
	return &cobra.Command{
		Use: "verify RUN...", Short: "check every file of runs, and say what can still be used",
		Long: "Compares every file of each run with its checksum and with the run's index, and names what is damaged, missing, foreign or\n" +
			"torn off. It changes nothing, and may be asked while the run samples. Figures and pages are not checked: they can be made\n" +
			"again. The exit code is 3 if anything is damaged.",
		Example: "  train verify runs/fit-1\n  train verify runs/*",
		Args:    wantRuns,
		RunE: func(_ *cobra.Command, folders []string) error {
			var first error
			for _, folder := range folders {
				v, err := pollen.Verify(folder)
				if err != nil {
					return err
				}
				fmt.Fprintf(c.out, "%s: %v\n", folder, v)
				if len(v.Damaged) > 0 && first == nil {
					first = errors.WithStack(v.Damaged[0])
				}
			}
			return first
		},
	}
}

// bindWithoutDamaged binds the flag that goes on without damaged samples.
func bindWithoutDamaged(f *pflag.FlagSet, without *bool) {
	f.BoolVar(without, "without-damaged", false, "go on without samples, or a calibration, that are damaged or missing, and say which")
}

// withDamaged are the options of that flag.
func withDamaged(without bool) (options []pollen.Option) {
	if without {
		options = append(options, pollen.WithoutDamaged())
	}
	return options
}
