package main

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// maxBusy is the share of the processors' time that others may take while nothing is timed.
const maxBusy = 0.03

// quietFor is how long they are watched.
const quietFor = 2 * time.Second

// quiet is an error unless the machine is at rest: figures of a loaded one are those of its load.
// It is asked before the first side runs and after the last one, when this program and the peers do
// nothing.
func quiet() error {
	return quietBy(func() ([]byte, error) { return os.ReadFile("/proc/stat") }, quietFor)
}

// quietBy is quiet by reading what Linux counts in /proc/stat twice.
func quietBy(read func() ([]byte, error), wait time.Duration) error {
	var busy, all [2]float64
	for i := range busy {
		if i > 0 {
			time.Sleep(wait)
		}
		text, err := read()
		if err != nil {
			return errors.Wrap(err, "benchmarks: quiet-check")
		}
		if busy[i], all[i], err = processorTime(string(text)); err != nil {
			return err
		}
	}
	if share := (busy[1] - busy[0]) / (all[1] - all[0]); !(share <= maxBusy) {
		return errors.Errorf("benchmarks: quiet-check: others take %.1f %% of the processors' time, wants at most %.0f %%", 100*share, 100*maxBusy)
	}
	return nil
}

// processorTime is what the first line of /proc/stat says that all processors have done, in ticks:
// user, nice, system, idle, iowait, irq, softirq and steal, the time that the host took away.
func processorTime(stat string) (busy, all float64, err error) {
	const idle, wait, last = 4, 5, 8
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) <= last || fields[0] != "cpu" {
		return 0, 0, errors.Errorf("benchmarks: quiet-check: /proc/stat begins with %q, wants cpu and %d numbers at least", line, last)
	}
	for i, field := range fields[1 : last+1] {
		ticks, err := strconv.ParseFloat(field, 64)
		if err != nil {
			return 0, 0, errors.Wrap(err, "benchmarks: quiet-check: /proc/stat")
		}
		all += ticks
		if i+1 != idle && i+1 != wait {
			busy += ticks
		}
	}
	return busy, all, nil
}
