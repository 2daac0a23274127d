package serve

import "time"

// stopwatch returns a function that returns the seconds since the call of stopwatch. Latencies
// are for metrics, and for the time that a batch waits: no answer depends on them.
func stopwatch() func() float64 {
	start := time.Now()
	return func() float64 { return time.Since(start).Seconds() }
}
