//go:build unix

package main

import (
	"os/exec"
	"syscall"

	"github.com/pkg/errors"
)

// restable gives the process a group of its own, in which rest and wake reach all that it starts. A
// stopped one ends with this program: the system hangs up on groups that nobody is left to wake.
func restable(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// rest stops the peer's threads, of which some would spin for work while others are timed.
func (p *peer) rest() error { return p.signal(syscall.SIGSTOP) }

// wake lets them go on.
func (p *peer) wake() error { return p.signal(syscall.SIGCONT) }

// kill ends the peer and all that it started.
func (p *peer) kill() error { return p.signal(syscall.SIGKILL) }

func (p *peer) signal(s syscall.Signal) error {
	return errors.Wrapf(syscall.Kill(-p.command.Process.Pid, s), "benchmarks: peer: %v", s)
}
