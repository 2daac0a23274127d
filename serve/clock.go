package serve

import "time"

// stopwatch returns a function that returns the seconds since. Latencies are for the operator: no
// answer depends on them.
func stopwatch() func() float64 {
	start := time.Now()
	return func() float64 { return time.Since(start).Seconds() }
}
