//go:build unix

package main

import (
	"os"
	"syscall"
)

// pause stops a process, as a debugger does.
func pause(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// processorSeconds returns the processor time of this process.
func processorSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return float64(usage.Utime.Nano()+usage.Stime.Nano()) / 1e9
}

// peak returns the maximum memory of a process that has ended, in bytes.
func peak(p *os.ProcessState) int64 {
	if usage, ok := p.SysUsage().(*syscall.Rusage); ok {
		return int64(usage.Maxrss) << 10
	}
	return 0
}
