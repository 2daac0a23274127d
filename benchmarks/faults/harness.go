package main

import (
	"context"
	"fmt"
)

// sizes determine how much is tried.
type sizes struct {
	kills, flips, calls, samples, repeats int
	victims                               string
	seed                                  uint64
}

// harness makes faults and collects failures.
type harness struct {
	sizes
	ctx      context.Context // a signal ends it; the results so far are reported
	work     string          // directory for runs
	program  string          // path of pollen
	report   func(format string, values ...any)
	failures []string
}

func (h *harness) fail(format string, values ...any) {
	text := fmt.Sprintf(format, values...)
	h.failures = append(h.failures, text)
	h.report("FAILED: %s", text)
}
