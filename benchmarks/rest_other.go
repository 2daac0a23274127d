//go:build !unix

package main

import "os/exec"

// Processes cannot be stopped here: peers' threads that spin do so while others are timed.
func restable(*exec.Cmd) {}

func (p *peer) rest() error { return nil }
func (p *peer) wake() error { return nil }

func (p *peer) kill() error { return p.command.Process.Kill() }
