package command

import (
	"cmp"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pollen-ml/pollen/internal/cluster"
)

func statusCommand(c *console) *cobra.Command {
	var every float64
	var asJSON bool
	command := &cobra.Command{
		Use: "status DIR...", Short: "Show the progress of runs",
		Long: "Shows the runs in or below the directories: state, host, progress, speed, remaining time, and why any failed. It only reads\n" +
			"the directories, and does not query a scheduler.",
		Example: "  pollen status /scratch/flowers\n  pollen status runs --watch 10\n  pollen status runs/fit-1 --json",
		Args:    requireRuns,
	}
	command.Flags().Float64Var(&every, "watch", 0, "refresh every given number of seconds, until Ctrl-C (default: show once)")
	command.Flags().BoolVar(&asJSON, "json", false, "print a list of the runs as JSON")
	command.RunE = func(command *cobra.Command, dirs []string) error {
		const day = 86400 // s
		if !(every >= 0 && every <= day) {
			return usage("pollen: --watch must be 0 to %d s, got %v", day, every)
		}
		if asJSON && every > 0 {
			return usage("pollen: --json shows the runs once, and cannot be combined with --watch")
		}
		if asJSON {
			runs, err := cluster.Statuses(dirs)
			if runs == nil {
				return err
			}
			return cmp.Or(c.json(runs), err)
		}
		for {
			if every > 0 && c.live {
				fmt.Fprint(c.out.To, "\x1b[H\x1b[2J") // home, and clear
			}
			if unread, err := showStatus(c, dirs, every > 0); err != nil || every == 0 {
				return cmp.Or(err, unread)
			}
			select {
			case <-command.Context().Done():
				return command.Context().Err()
			case <-time.After(time.Duration(every * float64(time.Second))):
			}
		}
	}
	return command
}

// showStatus prints the table of the runs, and returns the error of runs that cannot be read. If
// the table is shown again later, directories may have no runs yet.
func showStatus(c *console, dirs []string, again bool) (unread, err error) {
	runs, unread := cluster.Statuses(dirs)
	switch {
	case runs == nil && again:
		_, err = fmt.Fprintf(c.out, "\n%s\n", errorText(unread))
		return nil, err
	case runs == nil:
		return unread, nil
	}
	table, summary, err := cluster.StatusTable(runs, c.now())
	if err != nil {
		return nil, err
	}
	if err := table.WriteText(c.out); err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(c.out, "\n%s\n", summary)
	return unread, err
}
