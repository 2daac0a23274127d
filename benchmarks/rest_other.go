//go:build !unix

package main

import "os/exec"

// No process can be stopped here: threads of peers that spin for work do so while others are timed.
func restable(*exec.Cmd) {}

func (p *peer) rest() error { return nil }
func (p *peer) wake() error { return nil }

func (p *peer) kill() error { return p.command.Process.Kill() }
