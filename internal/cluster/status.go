package cluster

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/pollen-ml/pollen/bayes"
	"github.com/pollen-ml/pollen/report"
)

// Status returns a table of the runs in or below the directories, and a text with the number of
// runs in each state and the reasons of failures. Ages are relative to now. Runs that cannot be
// read are in the table and the text as well, and Status returns the first of their errors.
func Status(dirs []string, now time.Time) (*report.Table, string, error) {
	table := report.NewTable("run", report.Column{Title: "state"}, report.Column{Title: "host, process"}, report.Column{Title: "steps"},
		report.Column{Title: "samples"}, report.Column{Title: "steps/s"}, report.Column{Title: "time left"})
	states := map[bayes.State]int{}
	var why []string
	var unread error
	err := Walk(dirs, func(dir string, run *bayes.Run, p bayes.Progress, err error) error {
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
		if p.Error != "" && p.State == bayes.Failed {
			why = append(why, dir+": "+p.Error)
		}
		where, speed, left := "-", "-", "-"
		if p.Process != 0 {
			where = fmt.Sprintf("%s, %d", p.Host, p.Process)
		}
		if p.PerSecond > 0 {
			speed = fmt.Sprintf("%.3g", p.PerSecond)
			if seconds := float64(p.Steps-p.Made) / p.PerSecond; p.State == bayes.Running && seconds < math.MaxInt32 {
				left = time.Duration(seconds * float64(time.Second)).Round(time.Second).String()
			}
		}
		state := string(p.State)
		if p.State != bayes.Finished {
			state += ", " + now.Sub(p.Updated).Round(time.Second).String() + " ago"
		}
		steps := fmt.Sprintf("%d of %d", p.Made, p.Steps)
		if p.WarmStart {
			steps = "warm start"
			if p.WarmEpochs > 0 {
				steps += fmt.Sprintf(", epoch %d of up to %d", p.WarmEpochs, run.Manifest().Spec.WarmEpochs)
			}
		}
		return table.Add(dir, state, where, steps, fmt.Sprintf("%d of %d", p.Samples, p.Expected), speed, left)
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
