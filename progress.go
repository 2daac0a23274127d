package pollen

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/lock"
	"github.com/pollen-ml/pollen/samples"
)

// outcomeFile says how the run ended; there is none while it runs, or when its process was killed.
const outcomeFile = "outcome.json"

// State is where a run stands.
type State string

// The states. A run that neither runs nor says how it ended is Interrupted: its process was killed,
// or its machine is gone.
const (
	Running     State = "running"
	Finished    State = "finished"
	Failed      State = "failed"
	Stopped     State = "stopped" // as it was told to; it goes on when it is resumed
	Interrupted State = "interrupted"
)

// Progress is how far a run is, from what is in its folder.
type Progress struct {
	State             State
	Error             string // why it failed or stopped
	Host              string // where it runs, or was last
	Process           int    // there
	Made, Steps       int
	Samples, Expected int
	Updated           time.Time // when it last wrote to its folder
	PerSecond         float64   // steps, by the times of its last two samples; NaN before
}

// outcome is the content of outcomeFile.
type outcome struct {
	State State  `json:"state"`
	Error string `json:"error,omitempty"`
}

// note leaves a note of how the run ended that has this error, and returns the error, or that of
// the note. If another process has taken the run over, that is the error, whatever else went wrong.
func (t *training) note(ctx context.Context, err error) error {
	if lost := t.writer.stillHeld(); lost != nil {
		if err == nil || errors.As(lost, new(*LockedError)) {
			return lost
		}
		return err
	}
	ended := outcome{State: Finished}
	switch {
	case err != nil && ctx.Err() != nil:
		ended = outcome{Stopped, err.Error()}
	case err != nil:
		ended = outcome{Failed, err.Error()}
	}
	return cmp.Or(err, writeJSON(t.dir, outcomeFile, ended, ""))
}

// Progress reads how far the run is, which another process may be running. Of a gathered run it is
// that of its parts together.
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
	path := filepath.Join(r.dir, metricsFile)
	last, err := lastMetrics(path)
	if err != nil {
		return p, err
	}
	p.Made = last.Step
	info, err := os.Stat(path)
	if err != nil {
		return p, errors.Wrap(err, "pollen: progress")
	}
	p.Updated = info.ModTime()
	var ended outcome
	switch err := readJSON(r.dir, outcomeFile, &ended, r.manifest.Format); {
	case err == nil:
		p.State, p.Error = ended.State, ended.Error
	case !os.IsNotExist(errors.Cause(err)):
		return p, err
	}
	owner, running := lock.Writing(r.dir)
	if p.Host, p.Process = owner.Host, owner.Process; running {
		p.State, p.Error = Running, ""
	}
	p.PerSecond, err = speedOf(files)
	return p, err
}

// progressOf adds up the progress of runs; the states that want somebody's attention come first.
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

// lastMetrics is the last whole line of the metrics; zero if there is none.
func lastMetrics(path string) (line metricsLine, err error) {
	log, err := os.Open(path)
	if err != nil {
		return line, errors.Wrap(err, "pollen: progress")
	}
	defer log.Close()
	const tail = 4096
	if info, err := log.Stat(); err == nil && info.Size() > tail {
		if _, err := log.Seek(-tail, io.SeekEnd); err != nil {
			return line, errors.Wrap(err, "pollen: progress")
		}
	}
	content, err := io.ReadAll(log)
	if err != nil {
		return line, errors.Wrap(err, "pollen: progress")
	}
	lines := bytes.Split(content, []byte("\n"))
	for i := len(lines) - 1; i >= 0; i-- {
		if json.Unmarshal(lines[i], &line) == nil {
			return line, nil
		}
	}
	return metricsLine{}, nil
}

// speedOf is how many steps a run makes in a second, by the times and names of its last two
// samples; NaN if there are fewer in its last chain, or one of them went meanwhile, to keep no more
// than the run is to have. A pause between them counts.
func speedOf(files []string) (float64, error) {
	if len(files) < 2 {
		return math.NaN(), nil
	}
	var chains, steps [2]int
	var times [2]time.Time
	for i, path := range files[len(files)-2:] {
		var err error
		if chains[i], steps[i], err = samples.ParseFileName(path); err != nil {
			return 0, err
		}
		info, err := os.Stat(path)
		if os.IsNotExist(err) {
			return math.NaN(), nil
		}
		if err != nil {
			return 0, errors.Wrap(err, "pollen: progress")
		}
		times[i] = info.ModTime()
	}
	seconds := times[1].Sub(times[0]).Seconds()
	if chains[0] != chains[1] || steps[1] == steps[0] || seconds <= 0 {
		return math.NaN(), nil
	}
	return float64(steps[1]-steps[0]) / seconds, nil
}
