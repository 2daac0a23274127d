package pollen

import "time"

// clock is the clock by which Auto measures the device's speed, see WithClock.
func clock() time.Time { return time.Now() }
