package command

import (
	"cmp"
	"fmt"

	"github.com/pkg/errors"
	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/internal/cluster"
)

func verifyCommand(c *console) *cobra.Command {
	var d digestFlags
	command := &cobra.Command{
		Use: "verify DIR...", Short: "Check the files of runs against their checksums",
		Long: "Checks every file of each run in or below the directories against its checksum and the run's index, and lists damaged,\n" +
			"missing, foreign and truncated files. It changes nothing, and can be used while a run samples. Figures and pages are not\n" +
			"checked, since they can be regenerated. The exit code is 3 if a file is damaged.\n\n" +
			"Checksums detect damage, not tampering. --digest prints one SHA-256 of all that a run's results depend on: sign it, and\n" +
			"--expect checks that a run is the one that was signed. See docs/serving.md.",
		Example: "  pollen verify runs/fit-1\n  pollen verify runs/*\n" +
			"  pollen verify --digest runs/fit-1 > fit-1.digest\n  pollen verify --expect $(cat fit-1.digest) runs/fit-1",
		Args: requireRuns,
		RunE: func(command *cobra.Command, dirs []string) error {
			if d.print || command.Flags().Changed("expect") {
				return d.run(dirs, c)
			}
			return verify(dirs, c)
		},
	}
	command.Flags().BoolVar(&d.print, "digest", false, "check one run and print its digest")
	command.Flags().StringVar(&d.expected, "expect", "", "check one run and that it has this digest")
	return command
}

// verify checks all runs, even after an error. It returns damage before any other error, and the
// error for a directory without a run only if there is no run at all. It prints the errors that it
// does not return.
func verify(dirs []string, c *console) error {
	var damage, failure, none error
	found := false
	errs := make([]error, len(dirs))
	for i, dir := range dirs {
		err := cluster.Walk([]string{dir}, func(dir string, _ *bayes.Run, _ bayes.Progress, _ error) error {
			v, err := bayes.Verify(dir)
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
		errs[i] = err
		if errors.As(err, new(*cluster.NoRunError)) {
			none = err
		} else if err != nil {
			failure = err
		}
	}
	if found {
		none = nil
	}
	result := cmp.Or(damage, failure, none)
	for i, err := range errs {
		if err != nil && err != result {
			fmt.Fprintf(c.out, "%s: %v\n", dirs[i], err)
		}
	}
	return result
}
