package cluster

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pollen-ml/pollen"
	"github.com/pollen-ml/pollen/report"
)

// Status is a table of the runs at or below the folders, and how many there are in each state, with
// why any failed. Times are until now. If some cannot be read, the table and the text say which and
// why, and the error is the first of theirs.
func Status(dirs []string, now time.Time) (*report.Table, string, error) {
	table := report.NewTable("run", report.Column{Title: "state"}, report.Column{Title: "where"}, report.Column{Title: "steps"},
		report.Column{Title: "samples"}, report.Column{Title: "steps/s"}, report.Column{Title: "done in"})
	states := map[pollen.State]int{}
	var why []string
	var unread error
	err := Walk(dirs, func(dir string, run *pollen.Run, p pollen.Progress, err error) error {
		if err != nil {
			const state = "unreadable"
			states[state]++
			why = append(why, err.Error())
			if unread == nil {
				unread = err
			}
			return table.Add(dir, state, "-", "-", "-", "-", "-")
		}
		states[p.State]++
		if p.Error != "" && p.State == pollen.Failed {
			why = append(why, dir+": "+p.Error)
		}
		where, speed, left := "-", "-", "-"
		if p.Process != 0 {
			where = fmt.Sprintf("%s, %d", p.Host, p.Process)
		}
		if p.PerSecond > 0 {
			speed = fmt.Sprintf("%.3g", p.PerSecond)
			if seconds := float64(p.Steps-p.Made) / p.PerSecond; p.State == pollen.Running && seconds < math.MaxInt32 {
				left = time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
			}
		}
		state := string(p.State)
		if p.State != pollen.Finished {
			state += ", " + now.Sub(p.Updated).Round(time.Second).String() + " ago"
		}
		return table.Add(dir, state, where, fmt.Sprintf("%d of %d", p.Made, p.Steps), fmt.Sprintf("%d of %d", p.Samples, p.Expected), speed, left)
	})
	if err != nil {
		return nil, "", err
	}
	var counts []string
	for state, n := range states {
		counts = append(counts, fmt.Sprintf("%d %s", n, state))
	}
	slices.Sort(counts)
	return table, strings.Join(append([]string{strings.Join(counts, ", ")}, why...), "\n"), unread
}
