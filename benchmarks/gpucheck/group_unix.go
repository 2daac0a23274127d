//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// endAll has all that a command starts end with it when its context does.
func endAll(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}
