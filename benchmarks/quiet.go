package main

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"
)

// maxBusy is the fraction of the processors' time that others may take while nothing is timed.
const maxBusy = 0.03

// quietFor is how long the processors are watched.
const quietFor = 2 * time.Second

// quiet returns an error unless the machine is idle: on a busy machine, figures measure the load.
// It is called before the first side runs and after the last one, when this program and the peers
// do nothing.
func quiet() error {
	return quietBy(func() ([]byte, error) { return os.ReadFile("/proc/stat") }, quietFor)
}

// quietBy is quiet, by reading Linux's counters in /proc/stat twice.
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
		return errors.Errorf("benchmarks: quiet-check: other programs take %.1f %% of the processors' time; at most %.0f %% is allowed", 100*share, 100*maxBusy)
	}
	return nil
}

// processorTime parses the first line of /proc/stat: what all processors have done, in ticks of
// user, nice, system, idle, iowait, irq, softirq and steal, the time that a hypervisor took away.
func processorTime(stat string) (busy, all float64, err error) {
	const idle, wait, last = 4, 5, 8
	line, _, _ := strings.Cut(stat, "\n")
	fields := strings.Fields(line)
	if len(fields) <= last || fields[0] != "cpu" {
		return 0, 0, errors.Errorf("benchmarks: quiet-check: /proc/stat must begin with cpu and at least %d numbers, got %q", last, line)
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
