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

// RunStatus is the progress of a run, as programs read it.
type RunStatus struct {
	Run   string `json:"run"`   // its directory
	State string `json:"state"` // a bayes.State, or unreadable
	Error string `json:"error,omitempty"`

	Host    string `json:"host,omitempty"`
	Process int    `json:"process,omitempty"`

	// Made is the number of steps made, of Steps, and Samples the number of samples on disk, of
	// Expected. WarmStart is whether the run is in its warm start, and WarmEpochs the number of
	// epochs made there, of at most MaxWarmEpochs.
	Made          int  `json:"made"`
	Steps         int  `json:"steps"`
	Samples       int  `json:"samples"`
	Expected      int  `json:"expected"`
	WarmStart     bool `json:"warmStart,omitempty"`
	WarmEpochs    int  `json:"warmEpochs,omitempty"`
	MaxWarmEpochs int  `json:"maxWarmEpochs,omitempty"`

	StepsPerSecond float64    `json:"stepsPerSecond,omitempty"` // 0 if unknown
	SecondsLeft    float64    `json:"secondsLeft,omitempty"`    // of a running run; 0 if unknown
	Updated        *time.Time `json:"updated,omitempty"`        // when it last wrote something; nil if unreadable
}

// unreadable is the state of a run that cannot be read.
const unreadable = "unreadable"

// Statuses returns the progress of the runs in or below the directories, and the first error of
// those that cannot be read. If a directory has no runs, there is only an error.
func Statuses(dirs []string) (all []RunStatus, err error) {
	var unread error
	err = Walk(dirs, func(dir string, run *bayes.Run, p bayes.Progress, err error) error {
		if err != nil {
			all = append(all, RunStatus{Run: dir, State: unreadable, Error: err.Error()})
			if unread == nil {
				unread = err
			}
			return nil
		}
		s := RunStatus{
			Run: dir, State: string(p.State), Host: p.Host, Process: p.Process, Made: p.Made, Steps: p.Steps,
			Samples: p.Samples, Expected: p.Expected, WarmStart: p.WarmStart, WarmEpochs: p.WarmEpochs, Updated: &p.Updated,
		}
		if p.State != bayes.Running && p.State != bayes.Finished {
			s.Error = p.Error
		}
		if p.WarmStart {
			s.MaxWarmEpochs = run.Manifest().Spec.WarmEpochs
		}
		if p.PerSecond > 0 {
			s.StepsPerSecond = p.PerSecond
			if seconds := float64(p.Steps-p.Made) / p.PerSecond; p.State == bayes.Running && seconds < math.MaxInt32 {
				s.SecondsLeft = seconds
			}
		}
		all = append(all, s)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, unread
}

// StatusTable returns a table of the runs, and a text with the number of runs in each state and the
// reasons of failures. Ages are relative to now.
func StatusTable(runs []RunStatus, now time.Time) (*report.Table, string, error) {
	table := report.NewTable("run", report.Column{Title: "state"}, report.Column{Title: "host, process"}, report.Column{Title: "steps"},
		report.Column{Title: "samples"}, report.Column{Title: "steps/s"}, report.Column{Title: "time left"})
	states := map[string]int{}
	var why []string
	for _, s := range runs {
		states[s.State]++
		if err := table.Add(s.Run, s.row(now)...); err != nil {
			return nil, "", err
		}
		switch {
		case s.State == unreadable:
			why = append(why, s.Error)
		case s.Error != "" && s.State == string(bayes.Failed):
			why = append(why, s.Run+": "+s.Error)
		}
	}
	var counts []string
	for state, n := range states {
		counts = append(counts, fmt.Sprintf("%d %s", n, state))
	}
	slices.Sort(counts)
	return table, strings.Join(append([]string{strings.Join(counts, ", ")}, why...), "\n"), nil
}

// row returns the run's cells in the table.
func (s RunStatus) row(now time.Time) []any {
	if s.State == unreadable {
		return []any{s.State, "-", "-", "-", "-", "-"}
	}
	where, speed, left := "-", "-", "-"
	if s.Process != 0 {
		where = fmt.Sprintf("%s, %d", s.Host, s.Process)
	}
	if s.StepsPerSecond > 0 {
		speed = fmt.Sprintf("%.3g", s.StepsPerSecond)
	}
	if s.SecondsLeft > 0 {
		left = time.Duration(s.SecondsLeft * float64(time.Second)).Round(time.Second).String()
	}
	state := s.State
	if s.State != string(bayes.Finished) {
		state += ", " + now.Sub(*s.Updated).Round(time.Second).String() + " ago"
	}
	steps := fmt.Sprintf("%d of %d", s.Made, s.Steps)
	if s.WarmStart {
		steps = "warm start"
		if s.WarmEpochs > 0 {
			steps += fmt.Sprintf(", epoch %d of up to %d", s.WarmEpochs, s.MaxWarmEpochs)
		}
	}
	return []any{state, where, steps, fmt.Sprintf("%d of %d", s.Samples, s.Expected), speed, left}
}
