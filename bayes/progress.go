package bayes

import (
	"fmt"
	"math"
	"time"

	"github.com/pollen-ml/pollen/internal/rundir"
)

// State is the state of a run.
type State string

// The states. A run is Interrupted if no process runs it and it did not record how it ended: its
// process was killed, or its machine is gone. Interrupted, Stopped and Failed runs can be resumed.
const (
	Running     State = "running"
	Finished    State = "finished"
	Failed      State = "failed"
	Stopped     State = "stopped" // by a signal or its context; it can be resumed
	Interrupted State = "interrupted"
)

// Progress is how far a run is, by the files in its directory.
type Progress struct {
	State State
	// Error is why the run failed or was stopped.
	Error string
	// Host and Process identify the process that runs it, or ran it last.
	Host    string
	Process int
	// Made is the number of steps made, of Steps.
	Made, Steps int
	// WarmStart is whether the run has a warm start that is not finished, and WarmEpochs the number
	// of its epochs, of at most the WarmEpochs of the Spec; false and 0 for gathered runs.
	WarmStart  bool
	WarmEpochs int
	// Samples is the number of samples on disk, of all chains, and Expected the number in the
	// finished run.
	Samples, Expected int
	// Updated is when it last wrote metrics, a checkpoint or how it ended.
	Updated time.Time
	// PerSecond is the number of steps per second, by the times of its last two samples; NaN before
	// there are two.
	PerSecond float64
}

// String returns the progress in a line: "stopped, 252 of 500 steps, 4 of 20 samples".
func (p Progress) String() string {
	text := fmt.Sprintf("%s, %d of %d steps, %d of %d samples", p.State, p.Made, p.Steps, p.Samples, p.Expected)
	if p.WarmStart {
		text += fmt.Sprintf(", %d epochs of the warm start", p.WarmEpochs)
	}
	if p.Error != "" {
		text += ": " + p.Error
	}
	return text
}

// Progress returns how far the run is; another process may be running it. For a gathered run, it
// adds up the progress of the parts.
func (r *Run) Progress() (p Progress, err error) {
	parts, err := r.Parts()
	if err != nil {
		return p, err
	}
	if parts != nil {
		return progressOf(parts)
	}
	p = Progress{State: Interrupted, Steps: r.manifest.Steps, PerSecond: math.NaN()}
	if p.Expected, err = r.Expected(); err != nil {
		return p, err
	}
	files, err := r.Samples()
	if err != nil {
		return p, err
	}
	p.Samples = len(files)
	s, err := rundir.ReadStatus(r.dir)
	if err != nil {
		return p, err
	}
	p.Made, p.Updated, p.Host, p.Process = s.Made, s.Updated, s.Host, s.Process
	if s.Made == 0 && r.manifest.Spec.WarmStart != nil {
		warm := rundir.ReadMeasurement(r.dir, warmName)
		if p.WarmStart = len(warm) < 2 || warm[0] == 0; p.WarmStart && len(warm) > 1 {
			p.WarmEpochs = int(warm[1])
		}
	}
	switch {
	case s.Running:
		p.State = Running
	case s.Outcome != rundir.Outcome{}:
		p.State, p.Error = State(s.Outcome.State), s.Outcome.Error
	}
	p.PerSecond, err = rundir.Speed(files)
	return p, err
}

// progressOf adds up the progress of runs. Their state is the one that most needs attention: a
// failed part makes the whole failed, and it is finished only if all parts are.
func progressOf(parts []*Run) (all Progress, err error) {
	rank := map[State]int{Finished: 0, Running: 1, Stopped: 2, Interrupted: 3, Failed: 4}
	all.State, all.PerSecond = Finished, math.NaN()
	for _, part := range parts {
		p, err := part.Progress()
		if err != nil {
			return all, err
		}
		if rank[p.State] > rank[all.State] {
			all.State, all.Error = p.State, p.Error
			if p.Error != "" {
				all.Error = part.dir + ": " + p.Error
			}
		}
		all.Made, all.Steps = all.Made+p.Made, all.Steps+p.Steps
		all.Samples, all.Expected = all.Samples+p.Samples, all.Expected+p.Expected
		if p.Updated.After(all.Updated) {
			all.Updated = p.Updated
		}
		switch {
		case p.State == Finished || math.IsNaN(p.PerSecond):
		case math.IsNaN(all.PerSecond):
			all.PerSecond = p.PerSecond
		default:
			all.PerSecond += p.PerSecond
		}
	}
	return all, nil
}
