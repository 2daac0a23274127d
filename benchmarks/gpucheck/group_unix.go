//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endAll makes the end of the command's context kill all processes that the command has started.
func endAll(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}
