//go:build !unix

package main

import (
	"os/exec"
	"time"

	"github.com/pkg/errors"
)

// Processes cannot be stopped here: peers' threads that spin do so while others are timed.
func restable(*exec.Cmd) {}

func (p *peer) rest() error { return nil }
func (p *peer) wake() error { return nil }

func (p *peer) kill() error { return p.command.Process.Kill() }

// timeOfThreads returns an error: there is no such clock.
func timeOfThreads() (time.Duration, error) {
	return 0, errors.New("benchmarks: --clock processor needs Unix")
}
