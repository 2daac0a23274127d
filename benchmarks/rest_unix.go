//go:build unix

package main

import (
	"os/exec"
	"syscall"
	"time"

	"github.com/pkg/errors"
)

// restable puts the process into its own group, so that rest and wake reach all its children. A
// stopped group ends with this program: the system sends SIGHUP to stopped groups that are
// orphaned.
func restable(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// rest stops the peer's threads, some of which would spin while others are timed.
func (p *peer) rest() error { return p.signal(syscall.SIGSTOP) }

// wake resumes them.
func (p *peer) wake() error { return p.signal(syscall.SIGCONT) }

// kill ends the peer and its children.
func (p *peer) kill() error { return p.signal(syscall.SIGKILL) }

func (p *peer) signal(s syscall.Signal) error {
	return errors.Wrapf(syscall.Kill(-p.command.Process.Pid, s), "benchmarks: peer: %v", s)
}

// timeOfThreads returns the processor time that this program has used.
func timeOfThreads() (time.Duration, error) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, errors.Wrap(err, "benchmarks")
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), nil
}
