package main

import (
	"syscall"
	"time"
)

// pause sleeps. The timers of package time are up to a millisecond late while nothing else runs.
func pause(d time.Duration) {
	if d <= 0 {
		return
	}
	t := syscall.NsecToTimespec(int64(d))
	for syscall.Nanosleep(&t, &t) == syscall.EINTR {
	}
}
