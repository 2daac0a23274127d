package command

import (
	"cmp"
	"fmt"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/internal/cluster"
)

func verifyCommand(c *console) *cobra.Command {
	return &cobra.Command{
		Use: "verify FOLDER...", Short: "check every file of runs, and say what can still be used",
		Long: "Compares every file of each run at or below the folders with its checksum and with the run's index, and names what is damaged, missing, foreign or\n" +
			"torn off. It changes nothing, and may be asked while the run samples. Figures and pages are not checked: they can be made\n" +
			"again. The exit code is 3 if anything is damaged.",
		Example: "  pollen verify runs/fit-1\n  pollen verify runs/*",
		Args:    requireRuns,
		RunE:    func(_ *cobra.Command, dirs []string) error { return verify(dirs, c) },
	}
}

// verify checks all runs whatever is found; the error is damage before anything else, and a folder
// without a run only where there is no run at all.
func verify(dirs []string, c *console) error {
	var damage, failure, none error
	found := false
	for _, dir := range dirs {
		err := cluster.Walk([]string{dir}, func(dir string, _ *pollen.Run, _ pollen.Progress, _ error) error {
			v, err := pollen.Verify(dir)
			if err != nil {
				return err
			}
			found = true
			fmt.Fprintf(c.out, "%s: %v\n", dir, v)
			if len(v.Damaged) > 0 && damage == nil {
				damage = errors.WithStack(v.Damaged[0])
			}
			return nil
		})
		if err != nil {
			fmt.Fprintf(c.out, "%s: %v\n", dir, err)
		}
		if errors.As(err, new(*cluster.NoRunError)) {
			none = err
		} else if err != nil {
			failure = err
		}
	}
	if found {
		none = nil
	}
	return cmp.Or(damage, failure, none)
}

// bindWithoutDamaged binds the flag that goes on without damaged samples.
func bindWithoutDamaged(f *pflag.FlagSet, without *bool) {
	f.BoolVar(without, "without-damaged", false, "go on without samples, or a calibration, that are damaged or missing, and say which")
}

// withoutDamagedIf are the options of that flag.
func withoutDamagedIf(without bool) (options []pollen.Option) {
	if without {
		options = append(options, pollen.WithoutDamaged())
	}
	return options
}
