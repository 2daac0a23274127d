package rundir

import (
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"

	"github.com/pollen-ml/pollen/internal/lock"
	"github.com/pollen-ml/pollen/samples"
)

// Outcome is the content of OutcomeFile: how a run ended.
type Outcome struct {
	// State is "finished", "stopped" or "failed".
	State string `json:"state"`
	// Error is why the run stopped or failed.
	Error string `json:"error,omitempty"`
}

// failedState is the State of a run that stopped by an error other than its context's.
const failedState = "failed"

// Status is the progress of a run, as the files in its directory show it.
type Status struct {
	// Made is the number of steps made, by the last line of metrics. It may be ahead of the
	// checkpoint.
	Made int
	// Updated is when metrics, a checkpoint or the outcome were last written.
	Updated time.Time
	// Outcome is how the run ended; zero while it runs and after a kill.
	Outcome Outcome
	// Host and Process identify the process that writes, or wrote last.
	Host    string
	Process int
	// Running reports whether that process still writes, as far as this machine can see.
	Running bool
}

// ReadStatus reads the progress of the run in dir.
func ReadStatus(dir string) (s Status, err error) {
	path := filepath.Join(dir, MetricsFile)
	last, err := lastMetrics(path)
	if err != nil {
		return s, err
	}
	s.Made = last.Step
	info, err := os.Stat(path)
	if err != nil {
		return s, errors.Wrap(err, "pollen: progress")
	}
	s.Updated = info.ModTime()
	for _, name := range []string{CheckpointFile, OutcomeFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil && info.ModTime().After(s.Updated) {
			s.Updated = info.ModTime()
		}
	}
	if err := readJSON(dir, OutcomeFile, &s.Outcome); err != nil && !os.IsNotExist(errors.Cause(err)) {
		return s, err
	}
	owner, running := lock.Writing(dir)
	s.Host, s.Process, s.Running = owner.Host, owner.Process, running
	return s, nil
}

// Speed returns the steps per second of a run, by the times and names of the last two of its
// samples. It is NaN if they are of different chains, or if one of them was dropped after they
// were listed. A pause between them counts.
func Speed(files []string) (float64, error) {
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
